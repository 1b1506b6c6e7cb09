"""Lane maps that a user gives: accepted where they say what the hardware does.

A register is 64 bytes, of which a message fills one after the other. Lanes are counted
in it by elements, or by words of 32 bits: those see 16 columns of f16 as 2 rows of 8
lanes with 2 neighbours each, which is the map in the example of the first RFC. The bits
are in the same place either way.
"""

from __future__ import annotations

from xdsl.dialects.builtin import FixedBitwidthType

from xetl.dialects.xetile import InitTileOp, SgMapAttr
from xetl_xegpu.lowering.fragments import LANES
from xetl_xegpu.lowering.to_xegpu.walker import Converter

_DATA = ((1, 1), (1, 2), (2, 1), (4, 1))
"""One column for each lane; two of them of bytes in A; pairs or fours of rows in B."""

_WORD = 32
_TWO_ROWS = (2, LANES // 2)
"""Lanes of words where a row is 32 bytes: two rows a register."""


def check_lane_map(c: Converter, op: InitTileOp) -> None:
    """Refuse a map that no message follows.

    Raises:
        IRError: lanes would have to hold other elements.
    """
    given = op.result.type.sg_map
    if given is None or _is_followed(given, op.result.type.element_type):
        return
    raise c.refusal(
        op,
        f"no message spreads a tile as `sg_map<wi_layout = {list(given.wi_layout)}, "
        f"wi_data = {list(given.wi_data)}>` says",
        f"leave `sg_map` out, or give `wi_layout = [1, {LANES}], wi_data = [1, 1]`",
    )


def _is_followed(given: SgMapAttr, element: object) -> bool:
    if given.wi_layout == (1, LANES):
        return given.wi_data in _DATA
    if not isinstance(element, FixedBitwidthType):
        return False
    neighbours = _WORD // element.bitwidth
    return given.wi_layout == _TWO_ROWS and given.wi_data == (1, neighbours)

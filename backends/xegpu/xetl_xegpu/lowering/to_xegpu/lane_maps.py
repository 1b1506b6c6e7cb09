"""Lane maps that a user gives: accepted where they say what the hardware does."""

from __future__ import annotations

from xetl.dialects.xetile import InitTileOp
from xetl_xegpu.lowering.fragments import LANES
from xetl_xegpu.lowering.to_xegpu.walker import Converter

_DATA = ((1, 1), (1, 2), (2, 1), (4, 1))
"""One column for each lane; two of them of bytes in A; pairs or fours of rows in B."""


def check_lane_map(c: Converter, op: InitTileOp) -> None:
    """Refuse a map that no message follows.

    Raises:
        IRError: lanes would have to hold other elements.
    """
    given = op.result.type.sg_map
    if given is None or (given.wi_layout == (1, LANES) and given.wi_data in _DATA):
        return
    raise c.refusal(
        op,
        f"no message spreads a tile as `sg_map<wi_layout = {list(given.wi_layout)}, "
        f"wi_data = {list(given.wi_data)}>` says",
        f"leave `sg_map` out, or give `wi_layout = [1, {LANES}], wi_data = [1, 1]`",
    )

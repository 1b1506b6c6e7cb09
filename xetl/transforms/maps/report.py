"""Tell the user where data changes hands that he did not ask for.

A remark for `kernel.explain()` always; a Python warning where he gave both maps.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.base import vector_type
from xetl.language.distribution import Layout
from xetl.transforms.maps.graph import Given, Node
from xetl.transforms.remarks import positions_of, remark

TOPIC = "maps"


def report_change(
    value: SSAValue,
    source: Layout,
    wanted: Layout,
    user: Operation,
    origin: Node,
    target: Node | None,
) -> None:
    """Report that ``value`` is converted for ``user``.

    Args:
        value: what changes hands.
        source: the map it has.
        wanted: the map it is needed with.
        user: the operation that needs it.
        origin: whose map ``source`` is.
        target: whose map ``wanted`` follows from; None: every subgroup needs all.
    """
    move = f"{_described(value)} changes from {_shown(source)} to {_shown(wanted)}"
    size = prod(origin.shape) * max(1, origin.bits // 8)
    remark(user, TOPIC, f"{move}: {size} bytes go through shared memory")
    if target is None or origin.origin is None or target.origin is None:
        return
    if origin.origin is not target.origin:
        _warn(move, user, origin.origin, target.origin)


def _warn(move: str, user: Operation, one: Given, other: Given) -> None:
    text = (
        f"the maps at {_place(one)} and {_place(other)} do not fit together: {move} "
        "through shared memory; write `tile_conv_layout` if that is meant"
    )
    remark(user, TOPIC, text, is_warning=True)


def _place(given: Given) -> str:
    found: FileLineColLoc | None = next(positions_of(given.op.location), None)
    return f"line {found.line.data}" if found else f"`{given.op.name}`"


def _described(value: SSAValue) -> str:
    type_ = vector_type(value)
    shape = "x".join(map(str, type_.get_shape()))
    return f"a value of {shape} {_element(type_.element_type)}"


def _element(type_: Attribute) -> str:
    return str(type_)


def _shown(layout: Layout) -> str:
    """As the user writes a map."""
    return f"wg_map({list(layout.sg_layout)}, {list(layout.sg_data)})"

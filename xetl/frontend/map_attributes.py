"""Maps of the user as attributes of the IR, checked against what they spread."""

from __future__ import annotations

from typing import TypeVar

from xdsl.ir import Operation

from xetl.dialects import xetile
from xetl.errors import TileMapError
from xetl.frontend.arguments import Call
from xetl.frontend.context import FirstMap
from xetl.frontend.types import Shape, describe, matrix_shape
from xetl.language.maps import SgMap, WgMap, XeMap, check_wg_map

OpT = TypeVar("OpT", bound=Operation)


def maps_of(
    call: Call, name: str, shape: Shape
) -> tuple[xetile.WgMapAttr | None, xetile.SgMapAttr | None]:
    """The maps that argument ``name`` gives for something of ``shape``.

    Raises:
        TileMapError: the argument is no map, or cannot spread the shape.
    """
    value = call.value(name)
    if value is None:
        return None, None
    if not isinstance(value, WgMap | SgMap | XeMap):
        raise call.error(
            "X0504",
            f"`{name}` of `{call.name}` must be a map",
            name,
            label=f"is {describe(value)}",
            help="for example xetile.wg_map(sg_layout=[2, 2], sg_data=[32, 32])",
        )
    wg = value if isinstance(value, WgMap) else None
    sg = value if isinstance(value, SgMap) else None
    if isinstance(value, XeMap):
        wg, sg = value.wg, value.sg
    if wg is not None:
        _check_spread(call, name, wg, shape)
        _check_subgroups(call, name, wg)
    return (
        None if wg is None else xetile.WgMapAttr(wg.sg_layout, wg.sg_data),
        None if sg is None else xetile.SgMapAttr(sg.wi_layout, sg.wi_data),
    )


def _check_spread(call: Call, name: str, wg: WgMap, shape: Shape) -> None:
    rows, columns, *blocks = matrix_shape(shape)
    if blocks:
        rows, columns = rows * blocks[0], columns * blocks[1]
    try:
        check_wg_map(wg, (rows, columns))
    except TileMapError as error:
        raise call.ctx.locate_error(error, call.args[name].node) from None


def _check_subgroups(call: Call, name: str, wg: WgMap) -> None:
    """All maps of a kernel spread over the same subgroups."""
    ctx, found = call.ctx, wg.sg_layout[0] * wg.sg_layout[1]
    first = ctx.first_map
    if first is None:
        line = ctx.frame.span(call.node)[0]
        ctx.first_map = FirstMap(found, line, repr(wg))
    elif first.subgroups != found:
        raise call.error(
            "X0505",
            f"this map has {found} subgroups, another one of the kernel"
            f" {first.subgroups}",
            name,
            label=f"{wg.sg_layout[0]} x {wg.sg_layout[1]}",
            notes=[f"the map at line {first.line} is {first.shown}"],
            help="the product of sg_layout is the same for all maps of a kernel",
        )


def mapped(call: Call, op: OpT, shape: Shape) -> OpT:
    """``op`` with the map that the call asks for, if any."""
    if "wg_map" in call.args:
        wg, _ = maps_of(call, "wg_map", shape)
        if wg is not None:
            op.attributes["map"] = wg
    return op

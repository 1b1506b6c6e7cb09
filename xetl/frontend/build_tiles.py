"""The IR of ``init_tile``, ``update_tile_offset``, ``slm`` and packing; users' maps."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TypeVar

from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Operation

from xetl.dialects import xetile
from xetl.dialects.upstream import arith, memref
from xetl.dialects.xetile.types import SHARED
from xetl.errors import CompileError, TileMapError
from xetl.frontend import gathers, types
from xetl.frontend.arguments import Arg, Call, builds, wrong_kind
from xetl.frontend.arithmetic import common_shape
from xetl.frontend.arrays import Base, matrix_base
from xetl.frontend.casts import to_int, whole
from xetl.frontend.context import FirstMap
from xetl.frontend.gathers import as_indices
from xetl.language.dtypes import DType
from xetl.language.maps import SgMap, WgMap, XeMap, check_wg_map

OpT = TypeVar("OpT", bound=Operation)


def maps_of(
    call: Call, name: str, shape: types.Shape
) -> tuple[xetile.WgMapAttr | None, xetile.SgMapAttr | None]:
    """Return the maps in argument ``name`` for a tile or vector of ``shape``.

    Raises:
        TileMapError: the argument is no map, or cannot distribute the shape.
    """
    value = call.value(name)
    if value is None:
        return None, None
    if not isinstance(value, WgMap | SgMap | XeMap):
        advice = "for example xetile.wg_map(sg_layout=[2, 2], sg_data=[32, 32])"
        raise call.must_be("X0504", name, "a map", advice)
    wg = value if isinstance(value, WgMap) else None
    sg = value if isinstance(value, SgMap) else None
    if isinstance(value, XeMap):
        wg, sg = value.wg, value.sg
    if wg is not None:
        rows, columns, *blocks = types.matrix_shape(shape)
        if blocks:
            rows, columns = rows * blocks[0], columns * blocks[1]
        try:
            check_wg_map(wg, (rows, columns))
        except TileMapError as error:
            raise call.ctx.locate_error(error, call.args[name].node) from None
        _check_subgroups(call, name, wg)
    return (
        None if wg is None else xetile.WgMapAttr(wg.sg_layout, wg.sg_data),
        None if sg is None else xetile.SgMapAttr(sg.wi_layout, sg.wi_data),
    )


def _check_subgroups(call: Call, name: str, wg: WgMap) -> None:
    """Refuse a map with another number of subgroups than the first one."""
    ctx, found = call.ctx, wg.sg_layout[0] * wg.sg_layout[1]
    first = ctx.first_map
    if first is None:
        ctx.first_map = FirstMap(found, ctx.frame.span(call.node)[0], repr(wg))
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


def mapped(call: Call, op: OpT, shape: types.Shape) -> OpT:
    """Add the map of the call, if it has one, to ``op``; return ``op``."""
    if "wg_map" in call.args:
        wg, _ = maps_of(call, "wg_map", shape)
        if wg is not None:
            op.attributes["map"] = wg
    return op


def inner_blocks(call: Call, shape: types.Shape) -> types.Shape:
    """Return argument ``inner_blocks`` for a tile or vector of ``shape``.

    Raises:
        TileShapeError: the blocks do not divide the shape.
    """
    blocks = tuple(call.int_list("inner_blocks"))
    if len(shape) != 2 or len(blocks) != 2 or min(blocks) <= 0:
        raise call.error(
            "X0204",
            f"`inner_blocks` of `{call.name}` must be two positive extents, of a"
            " matrix",
            "inner_blocks",
            label=f"is {list(blocks)} for {types.show_shape(shape)}",
        )
    if any(extent % block for extent, block in zip(shape, blocks, strict=True)):
        inner, whole = map(types.show_shape, (blocks, shape))
        problem = f"blocks of {inner} do not divide {whole}"
        raise call.error("X0204", problem, "inner_blocks")
    return blocks


@builds("tile_pack")
def _tile_pack(call: Call) -> types.Vector:
    value = call.vector("v")
    blocks = inner_blocks(call, value.shape)
    packed = call.ctx.emit(xetile.TilePackOp(value.ssa, blocks))
    return types.Vector(packed, types.packed(value.shape, blocks), value.dtype)


@builds("tile_unpack")
def _tile_unpack(call: Call) -> types.Vector:
    value = call.vector("v", blocked=True)
    if len(value.shape) != 4:
        problem = f"`tile_unpack` takes a blocked vector, not {types.describe(value)}"
        help_ = "xetile.tile_pack(v, [rows, columns]) makes one"
        raise call.error("X0210", problem, "v", help=help_)
    rows, columns, *blocks = value.shape
    op = xetile.TileUnpackOp(value.ssa, blocks)
    shape = (rows * blocks[0], columns * blocks[1])
    return types.Vector(call.ctx.emit(op), shape, value.dtype)


@builds("init_tile")
def _init_tile(call: Call) -> types.Tile:
    indices = _listed_vectors(call)
    if indices is not None and call.value("shape") is None:
        return _scatter_tile(call, indices)
    if call.value("shape") is None:
        help_ = "only a scatter tile, made with a vector of indices, needs none; the"
        help_ += " shape of one element is `(1,)`"
        raise call.error("X0204", "`init_tile` misses its argument `shape`", help=help_)
    base, dtype, space = _block_base(call)
    shape = call.shape("shape")
    offsets = _offsets(call, shape)
    wg, sg = maps_of(call, "wg_map", shape)
    blocks = None
    if call.value("inner_blocks") is not None:
        blocks = inner_blocks(call, shape)
    encoding = xetile.TileAttr(
        wg_map=wg,
        sg_map=sg,
        order=_order(call, base),
        memory_space=space,
        inner_blocks=blocks or (),
    )
    element = types.element_type(dtype)
    type_ = xetile.TileType(types.matrix_shape(shape), element, encoding)
    op = xetile.InitTileOp(base.source, offsets, type_, base.sizes, base.strides)
    origin = _origin(call, shape)
    return types.Tile(call.ctx.emit(op), shape, dtype, origin=origin, blocks=blocks)


def _origin(call: Call, shape: types.Shape) -> types.Origin:
    """Return the origin of a tile: the user's text, with the shape as numbers."""
    frame = call.ctx.frame
    parts = [frame.text(call.args[name].node) for name in ("base", "offsets")]
    line = frame.span(call.node)[0]
    text = f"init_tile({', '.join(parts)}, {types.show_shape(shape)})"
    return types.Origin(line, text)


def _block_base(call: Call) -> tuple[Base, types.Value, int]:
    """Return the matrix that a tile lies in, its dtype and its memory space."""
    value = call.value("base")
    if types.is_int(value):
        return _address_base(call), call.memory_dtype(), 0
    if not isinstance(value, types.Array):
        raise call.wrong_kind("base", "an array")
    if value.rank not in (1, 2):
        problem = f"`{value.name}` has rank {value.rank}: a tile lies in a matrix"
        help_ = "pass an array of rank 1 or 2"
        if value.rank > 2:
            help_ = f"select a matrix first: {value.name}[i]"
        raise call.error("X0206", problem, "base", help=help_)
    rank = len(_listed(call.value("offsets")))
    if rank < value.rank:
        raise _offset_count(call, value.rank, rank, f"`{value.name}`")
    return matrix_base(call.ctx, value), value.dtype, gathers.space_of(value)


def _address_base(call: Call) -> Base:
    sizes = _extents(call, "base_shape")
    strides = _extents(call, "base_strides")
    number = to_int(call.ctx, call.value("base"))
    address = call.ctx.emit(arith.IndexCastOp(number, types.I64))
    unit = 0 if strides[0] == 1 and strides[1] != 1 else 1
    if isinstance(strides[unit], int) and strides[unit] != 1:
        problem = "a tile at an address needs a stride of 1"
        raise call.error("X0503", problem, "base_strides")
    return Base(address, sizes, strides, unit)


def _extents(call: Call, name: str) -> tuple[types.Extent, ...]:
    values = _listed(call.value(name))
    if len(values) != 2:
        problem = f"a tile at an address needs `{name}` of two ints"
        at = None if call.value(name) is None else name
        raise call.error("X0204", problem, at)
    return tuple(_extent(call, value, name, n) for n, value in enumerate(values))


def _listed(value: types.Value) -> list[types.Value]:
    items = types.items_of(value)
    return [value] if items is None else items


def _extent(call: Call, value: types.Value, name: str, number: int) -> types.Extent:
    if types.is_int(value):
        is_known = isinstance(value, int)
        return whole(value, wraps=False) if is_known else value.ssa
    node = call.args[name].node
    if isinstance(node, ast.Tuple | ast.List) and number < len(node.elts):
        node = node.elts[number]
    problem = f"`{name}` of `{call.name}` must hold ints"
    help_ = "round it: `//` divides to an int" if types.is_scalar(value) else None
    if isinstance(value, types.Vector):
        help_ = "without a shape, init_tile(X, indices) has an element for each"
    label = f"is {types.describe(value)}"
    raise call.ctx.error("X0305", problem, node, label=label, help=help_)


def _offset_count(call: Call, wanted: int, found: int, what: str) -> CompileError:
    plural = "" if wanted == 1 else "s"
    problem = f"{what} needs {wanted} offset{plural}, not {found}"
    help_ = f"write [{', '.join(['row', 'column'][:wanted])}]"
    return call.error("X0207", problem, "offsets", help=help_)


def _offsets(call: Call, shape: types.Shape) -> list[types.Extent]:
    """Return row and column of the tile; rank 1 with one offset lies in row 0."""
    values = _listed(call.value("offsets"))
    if len(values) not in (len(shape), 2):
        problem = f"a tile of {types.show_shape(shape)}"
        raise _offset_count(call, len(shape), len(values), problem)
    offsets = [_extent(call, value, "offsets", n) for n, value in enumerate(values)]
    return offsets if len(offsets) == 2 else [0, *offsets]


def _order(call: Call, base: Base) -> tuple[int, int]:
    """Return the dims from fastest to slowest, according to the strides.

    Raises:
        TileMapError: argument ``order`` differs from the strides.
    """
    found = (0, 1) if base.unit_dim == 0 else (1, 0)
    if call.value("order") is None:
        return found
    order = tuple(call.int_list("order"))
    if order not in ((1, 0), (0, 1), (0,)):
        problem = f"`order` must be [1, 0] or [0, 1], not {list(order)}"
        help_ = "the fastest dim stands first: [1, 0] is row-major"
        raise call.error("X0503", problem, "order", help=help_)
    if len(order) == 2 and order != found and base.unit_dim is not None:
        raise call.error(
            "X0503",
            f"`order` is {list(order)}, but the strides say {list(found)}",
            "order",
            label=f"dimension {base.unit_dim} has stride 1",
            help="leave `order` out: it is read from the strides",
        )
    return found


# Scatter tiles ----------------------------------------------------------------------


def _scatter_tile(call: Call, indices: Sequence[Arg]) -> types.Tile:
    array = call.value("base")
    if not isinstance(array, types.Array):
        raise call.wrong_kind("base", "an array")
    shape = common_shape(call.ctx, "indices", indices)
    maps = maps_of(call, "wg_map", shape)
    return gathers.scatter_tile(call.ctx, array, indices, _origin(call, shape), maps)


def _listed_vectors(call: Call) -> list[Arg] | None:
    """Return the indices of a scatter tile: a vector, or a list with one; or None."""
    given = call.args["offsets"]
    if isinstance(given.value, types.Vector):
        return [given]
    values = _listed(given.value)
    if not any(isinstance(value, types.Vector) for value in values):
        return None
    nodes = getattr(given.node, "elts", [])
    nodes = nodes if len(nodes) == len(values) else [given.node] * len(values)
    return [Arg(value, node) for value, node in zip(values, nodes, strict=True)]


@builds("update_tile_offset")
def _update_tile_offset(call: Call) -> types.Tile:
    tile = call.tile("tile")
    if tile.scattered:
        step = call.vector("offsets")
        if step.shape != tile.shape:
            problem = (
                f"a scatter tile of {types.show_shape(tile.shape)} moves by a vector of"
                " that shape"
            )
            raise call.unfit("X0208", problem, "offsets")
        gathers.check_indices(call.ctx, [call.args["offsets"]])
        op = xetile.UpdateTileOffsetOp(tile.ssa, indices=as_indices(call.ctx, step))
        moved = call.ctx.emit(op)
    elif isinstance(call.value("offsets"), types.Vector):
        what, given = "`offsets` of a plain tile", call.args["offsets"]
        raise wrong_kind(call.ctx, what, "one int for each dim", given)
    else:
        offsets = _offsets(call, tile.shape)
        moved = call.ctx.emit(xetile.UpdateTileOffsetOp(tile.ssa, offsets))
    return replace(tile, ssa=moved)


# SLM --------------------------------------------------------------------------------


@builds("slm")
def _slm(call: Call) -> types.Array:
    shape, dtype = call.shape("shape"), call.memory_dtype()
    _check_size(call, shape, dtype)
    space = IntegerAttr(SHARED, types.I64)
    type_ = MemRefType(types.element_type(dtype), shape, memory_space=space)
    memory = call.ctx.emit(memref.AllocOp(type_))
    strides = (1,) if len(shape) == 1 else (shape[1], 1)
    return types.Array("slm", memory, dtype, 0, shape, strides, len(shape) - 1)


def _check_size(call: Call, shape: types.Shape, dtype: DType) -> None:
    """Add an array to the SLM of the kernel; refuse more than the target has."""
    ctx, size = call.ctx, prod(shape) * dtype.itemsize
    before = ctx.slm_bytes
    ctx.slm_bytes += size
    if ctx.slm_bytes <= ctx.slm_limit:
        return
    earlier = f" beside {before} bytes of other arrays" if before else ""
    raise call.error(
        "X0211",
        f"`slm` asks for {size} bytes{earlier}, but {ctx.slm_limit} are allowed",
        "shape",
        label=f"{types.show_shape(shape)} of {dtype}, {dtype.itemsize} bytes each",
        help="use a smaller shape or dtype, or read the array from memory",
    )

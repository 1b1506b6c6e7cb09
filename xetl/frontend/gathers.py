"""Gathers and scatters: elements of arrays of any rank at vectors of indices.

Indices are computed in 64 bits; those that count up have a first index.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, NoneAttr, VectorType, i1
from xdsl.ir import Operation, SSAValue

from xetl.dialects import xetile
from xetl.dialects.base import element_type as element_of
from xetl.dialects.base import is_vector, memref_type, vector_type
from xetl.dialects.literals import splat_value
from xetl.dialects.upstream import arith, memref, vector
from xetl.dialects.xetile import TileBroadcastOp, TileTransposeOp
from xetl.dialects.xetile.types import SHARED
from xetl.frontend.arguments import Arg
from xetl.frontend.arithmetic import common_shape
from xetl.frontend.arrays import (
    as_seen,
    base_of,
    check_element,
    index_array,
    mark_bounds,
    matrix_base,
    transpose,
)
from xetl.frontend.casts import broadcast, splat
from xetl.frontend.context import Context
from xetl.frontend.types import (
    Array,
    Extent,
    Origin,
    Shape,
    Tile,
    Vector,
    describe,
    element_type,
    is_int,
    matrix_shape,
    show_shape,
)
from xetl.ir.builder import remade
from xetl.language import dtypes
from xetl.worklist import sources_first

_ARITHMETIC = (
    *(arith.AddiOp, arith.SubiOp, arith.MuliOp),
    *(arith.MinsiOp, arith.MaxsiOp, arith.MinuiOp, arith.MaxuiOp),
)
_SHAPES = (vector.ShapeCastOp, TileBroadcastOp, TileTransposeOp)


def as_indices(ctx: Context, indices: Vector) -> SSAValue:
    """Convert an integer vector to a vector of `index`, computed in 64 bits.

    Its sums and products are computed again in 64 bits, where they do not overflow.
    """
    if indices.dtype == dtypes.index:
        return indices.ssa
    root = indices.ssa, indices.dtype.kind == "u"
    found: dict[_Number, SSAValue] = {}
    for number in sources_first(root, lambda each: _parts(ctx, *each)):
        parts = [found[part] for part in _parts(ctx, *number)]
        found[number] = _widened(ctx, number, parts)
    return found[root]


def _parts(ctx: Context, value: SSAValue, unsigned: bool) -> list[_Number]:
    """Return the operands of a sum, product, extension, select or reshape, else []."""
    op = value.owner
    if not isinstance(op, Operation) or value in ctx.divided:
        return []
    if isinstance(op, arith.ExtsiOp | arith.ExtuiOp):
        narrow = element_of(op.operands[0].type)
        return [] if narrow == i1 else [(op.operands[0], type(op) is arith.ExtuiOp)]
    if isinstance(op, arith.SelectOp):
        return [(op.true_value, unsigned), (op.false_value, unsigned)]
    if isinstance(op, (*_ARITHMETIC, *_SHAPES)):
        return [(operand, unsigned) for operand in op.operands]
    return []


def _widened(ctx: Context, number: _Number, parts: list[SSAValue]) -> SSAValue:
    """Compute a number in 64 bits from its parts in 64 bits, or convert it."""
    (value, unsigned), op = number, number[0].owner
    type_ = VectorType(IndexType(), vector_type(value).get_shape())
    if isinstance(op, arith.ExtsiOp | arith.ExtuiOp) and parts:
        return parts[0]
    if isinstance(op, Operation) and parts:
        condition = [op.condition] if isinstance(op, arith.SelectOp) else []
        return ctx.emit(remade(op, [*condition, *parts], [type_]))
    if isinstance(op, arith.IndexCastOp) and op.operands[0].type == type_:
        return op.operands[0]  # the value is of `arange`
    if isinstance(op, vector.BroadcastOp) and not is_vector(op.operands[0].type):
        scalar = op.operands[0].owner
        if isinstance(scalar, arith.IndexCastOp):
            # A scalar of the language has 64 bits.
            return ctx.emit(vector.BroadcastOp(scalar.operands[0], type_))
    cast = arith.IndexCastuiOp if unsigned else arith.IndexCastOp
    return ctx.emit(cast(value, type_))


_Number = tuple[SSAValue, bool]
"""A value, and whether it is an unsigned number."""


def first_of_counted(ctx: Context, indices: SSAValue) -> Extent | None:
    """Return the first of indices that count up by one; None if they do not."""
    build, first = ctx.builder(), 0
    while not isinstance(op := indices.owner, vector.StepOp):
        if not isinstance(op, Operation) or "map" in op.attributes:
            return None
        if isinstance(op, vector.ShapeCastOp):
            (indices,) = op.operands
        elif isinstance(op, arith.AddiOp) and (number := _number(op.rhs)) is not None:
            indices, first = op.lhs, build.plus(first, number)
        elif isinstance(op, arith.AddiOp) and (number := _number(op.lhs)) is not None:
            indices, first = op.rhs, build.plus(first, number)
        elif isinstance(op, arith.SubiOp) and (number := _number(op.rhs)) is not None:
            indices, first = op.lhs, build.minus(first, number)
        else:
            return None
    return first


def _number(value: SSAValue) -> Extent | None:
    """Return the number that all elements are; None if it is unknown."""
    op = value.owner
    if isinstance(op, vector.BroadcastOp) and not is_vector(op.source.type):
        return op.source
    if isinstance(op, vector.ShapeCastOp):
        return _number(op.operands[0])
    if isinstance(op, arith.IndexCastOp):  # of a constant: scalars are cast as such
        op = op.operands[0].owner
    number = splat_value(op.value) if isinstance(op, arith.ConstantOp) else None
    return None if number is None else int(number)


def space_of(array: Array) -> int:
    """Return the memory space of an array: 0, or that of SLM."""
    space = memref_type(array.root).memory_space
    return 0 if isinstance(space, NoneAttr) else SHARED


def scatter_tile(
    ctx: Context,
    array: Array,
    indices: Sequence[Arg],
    origin: Origin | None = None,
    maps: tuple[xetile.WgMapAttr | None, xetile.SgMapAttr | None] = (None, None),
) -> Tile:
    """Return a tile of the elements of ``array`` at indices, which broadcast.

    Raises:
        TileShapeError: the number of indices is not the rank, or their shapes do not
            broadcast.
        TileTypeError: an index is not an integer.
    """
    if len(indices) != array.rank:
        count = "1 index is" if len(indices) == 1 else f"{len(indices)} indices are"
        problem = f"`{array.name}` has rank {array.rank}, but {count} given"
        help_ = "vectors of indices choose elements: give one for each dim"
        raise ctx.error("X0206", problem, indices[0].node, help=help_)
    check_indices(ctx, indices)
    shape = common_shape(ctx, "indices", indices)
    if array.rank == 1:
        base = base_of(ctx, array)
        source, sizes, strides = base.source, base.sizes, base.strides
        positions = as_indices(ctx, indices[0].value)
    else:
        source, positions = _flattened(ctx, array, indices, shape)
        sizes = strides = ()
    wg, sg = maps
    encoding = xetile.TileAttr(
        wg_map=wg, sg_map=sg, scattered=True, memory_space=space_of(array)
    )
    type_ = xetile.TileType(matrix_shape(shape), element_type(array.dtype), encoding)
    op = xetile.InitTileOp(source, (), type_, sizes, strides, indices=positions)
    return Tile(ctx.emit(op), shape, array.dtype, True, origin)


def _tile_of(ctx: Context, array: Array, indices: Sequence[Arg]) -> Tile | None:
    """Return the tile of the elements at indices; None if they are no tile.

    They are one if a row of indices counts up, ``X[b, r, arange(N)]``, or a column and
    a row do, ``X[b, r + arange(M)[:, None], arange(N)[None, :]]``; the other indices
    are scalars. So products and block messages see what they see of `init_tile`.
    """
    check_indices(ctx, indices)
    shape = common_shape(ctx, "indices", indices)
    given = [arg.value for arg in indices if isinstance(arg.value, Vector)]
    shapes, row, column = [each.shape for each in given], (1, shape[-1]), (shape[0], 1)
    is_row = shape in ((shape[-1],), row) and shapes == [shape]
    is_matrix = shapes in ([column, row], [row, column])
    if len(indices) != array.rank or not (is_row or is_matrix):
        return None
    starts = [first_of_counted(ctx, as_indices(ctx, each)) for each in given]
    offsets = [start for start in starts if start is not None]
    if len(offsets) < len(starts):
        return None
    others = {i: arg for i, arg in enumerate(indices) if arg.value not in given}
    if others:
        chosen = index_array(ctx, array, [*others.values()], [*others])
        assert isinstance(chosen, Array)
        array = chosen
    if is_row:
        offsets = [0, *offsets]
    elif shapes != [column, row]:
        array, offsets = transpose(array), offsets[::-1]
    base = matrix_base(ctx, array)
    order = (0, 1) if base.unit_dim == 0 else (1, 0)
    how = xetile.TileAttr(order=order, memory_space=space_of(array))
    type_ = xetile.TileType(matrix_shape(shape), element_type(array.dtype), how)
    op = xetile.InitTileOp(base.source, offsets, type_, base.sizes, base.strides)
    if len(indices) == 1:
        mark_bounds(op, array, 0)
    return Tile(ctx.emit(op), shape, array.dtype)


def load_elements(ctx: Context, array: Array, indices: Sequence[Arg]) -> Vector:
    """Compile ``X[rows, cols]``; elements outside of the array are read as 0."""
    block = _tile_of(ctx, array, indices)
    if block is not None:
        loaded = ctx.emit(xetile.LoadTileOp(block.ssa))
        return Vector(loaded, block.shape, block.dtype)
    tile = scatter_tile(ctx, array, indices)
    mask = splat(ctx, True, tile.shape, dtypes.i1)
    loaded = ctx.emit(xetile.LoadGatherOp(tile.ssa, mask.ssa))
    return Vector(loaded, tile.shape, tile.dtype)


def store_elements(
    ctx: Context, array: Array, indices: Sequence[Arg], value: Arg
) -> None:
    """Compile ``X[rows, cols] = v``; elements outside of the array are not written.

    Raises:
        TileShapeError: ``v`` is a vector of another shape than the indices.
        TileTypeError: ``v`` is a vector of another dtype than the array.
    """
    tile = _tile_of(ctx, array, indices) or scatter_tile(ctx, array, indices)
    vector = value.value
    if not isinstance(vector, Vector):
        check_element(ctx, array.dtype, value)
        vector = splat(ctx, vector, tile.shape, array.dtype)
    if vector.shape != tile.shape:
        raise ctx.error(
            "X0208",
            f"{show_shape(vector.shape)} values cannot be stored at"
            f" {show_shape(tile.shape)} indices",
            value.node,
            label=f"is {describe(vector)}",
            help="the shapes must be equal: use xetile.tile_broadcast",
        )
    if vector.dtype != array.dtype:
        problem = f"{vector.dtype} cannot be stored in an array of {array.dtype}"
        help_ = f"convert the value: `.to(xetile.{array.dtype})`"
        label = f"is {describe(vector)}"
        raise ctx.error("X0311", problem, value.node, label=label, help=help_)
    if not tile.scattered:
        ctx.add(xetile.StoreTileOp(vector.ssa, tile.ssa))
        return
    mask = splat(ctx, True, tile.shape, dtypes.i1)
    ctx.add(xetile.StoreScatterOp(vector.ssa, mask.ssa, tile.ssa))


def check_indices(ctx: Context, indices: Sequence[Arg]) -> None:
    """Refuse indices that are neither integers nor vectors of integers."""
    for arg in indices:
        value = arg.value
        is_row = isinstance(value, Vector) and value.dtype.is_integer
        if not is_row and not is_int(value):
            found = value.dtype if isinstance(value, Vector) else describe(value)
            problem = f"indices must be integers, not {found}"
            help_ = "convert with `.to(xetile.i64)`"
            if value is ...:
                help_ = "write an index for each dim: a number or a vector"
            if isinstance(value, Vector) and value.dtype.is_bool:
                help_ = (
                    "choose with xetile.where, or pass the mask to xetile.load_gather"
                )
                help_ += " or xetile.store_scatter, with a tile of indices"
            raise ctx.error("X0305", problem, arg.node, help=help_)


# All dims as one ----------------------------------------------------------------------


def _flattened(
    ctx: Context, array: Array, indices: Sequence[Arg], shape: Shape
) -> tuple[SSAValue, SSAValue]:
    """Return the array as one dim of stride 1, and the indices of the elements there.

    An element that is outside in any dim gets the index -1, which is outside, too.
    """
    build = ctx.builder()
    # If a stride is negative, the element at index 0 is not the first in memory.
    start, end = array.offset, array.offset
    for size, stride in zip(array.sizes, array.strides, strict=True):
        way = build.times(build.minus(build.maximum(size, 1), 1), stride)
        start = build.plus(start, build.minimum(way, 0))
        end = build.plus(end, build.maximum(way, 0))
    length = build.plus(build.minus(end, start), 1)
    places = splat(ctx, as_seen(build.minus(array.offset, start)), shape, dtypes.index)
    line, inside = places.ssa, None
    for dim, arg in enumerate(indices):
        here, way = _one_dim(ctx, array, dim, arg)
        line = ctx.emit(arith.AddiOp(line, broadcast(ctx, way, shape).ssa))
        fits = broadcast(ctx, here, shape).ssa
        inside = fits if inside is None else ctx.emit(arith.AndiOp(inside, fits))
    assert inside is not None
    nowhere = splat(ctx, -1, shape, dtypes.index).ssa
    whole = ctx.emit(memref.ReinterpretCastOp.of(array.root, start, [length], [1]))
    return whole, ctx.emit(arith.SelectOp(inside, line, nowhere))


def _one_dim(ctx: Context, array: Array, dim: int, arg: Arg) -> tuple[Vector, Vector]:
    """Return a mask of the indices inside of a dim, and their distances in memory."""
    vector, size, stride = arg.value, array.sizes[dim], array.strides[dim]
    if not isinstance(vector, Vector):
        vector = splat(ctx, vector, (1,), dtypes.index)
    at, shape = as_indices(ctx, vector), vector.shape
    limit = splat(ctx, as_seen(size), shape, dtypes.index).ssa
    compared = arith.CmpiOp("ult", at, limit)
    mark_bounds(compared, array, dim)
    inside = ctx.emit(compared)
    step = splat(ctx, as_seen(stride), shape, dtypes.index).ssa
    way = ctx.emit(arith.MuliOp(at, step))
    return Vector(inside, shape, dtypes.i1), Vector(way, shape, dtypes.index)

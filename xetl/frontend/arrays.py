"""Arrays and their views: ``X[b]``, ``X.T``, and the memrefs of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.dialects import builtin
from xdsl.ir import Attribute, Operation, Region, SSAValue

from xetl.dialects.kernel_attributes import BOUNDS, DIM
from xetl.dialects.upstream import arith, memref, scf
from xetl.frontend import arithmetic, casts
from xetl.frontend.arguments import Arg
from xetl.frontend.context import Context
from xetl.frontend.operators import ADD, MUL
from xetl.frontend.types import (
    Array,
    Extent,
    Scalar,
    Value,
    Vector,
    describe,
    is_int,
    is_scalar,
    scalar_kind,
)
from xetl.language.dtypes import DType
from xetl.records import record


def as_seen(extent: Extent) -> Scalar | int:
    """Convert an extent, stride or index to a value of the language."""
    return extent if isinstance(extent, int) else Scalar(extent, "int")


def transpose(array: Array) -> Array:
    """Return ``X.T``: the last two dims are swapped; rank 1 is its own transpose."""
    if array.rank < 2:
        return array
    dims = [*range(array.rank - 2), array.rank - 1, array.rank - 2]
    unit = None if array.unit_dim is None else dims.index(array.unit_dim)
    return replace(
        array,
        name=f"{array.name}.T",
        sizes=tuple(array.sizes[dim] for dim in dims),
        strides=tuple(array.strides[dim] for dim in dims),
        unit_dim=unit,
        plain=False,
    )


# Indexing ---------------------------------------------------------------------------


def index_array(
    ctx: Context, array: Array, indices: Sequence[Arg], dims: Sequence[int] = ()
) -> Value:
    """Compile ``X[i, ...]``: return a view of the other dims, or a scalar.

    With an index outside of the array the view is empty, or the scalar is 0.

    Args:
        dims: the dims of the indices; by default the first ones.
    """
    _check_indices(ctx, array, indices)
    places = dict(zip(dims or range(len(indices)), (arg.value for arg in indices)))
    inside = _inside(ctx, array, places)
    if len(places) == array.rank:
        view = as_memref(ctx, array)
        positions = [casts.to_int(ctx, index) for index in places.values()]
        with ctx.into() as then_block:
            element = ctx.emit(memref.LoadOp(view, positions))
            ctx.add(scf.YieldOp(element))
        with ctx.into() as else_block:
            ctx.add(scf.YieldOp(casts.to_element(ctx, 0, array.dtype)))
        regions = Region(then_block), Region(else_block)
        loaded = ctx.emit(scf.IfOp(inside, [element.type], *regions))
        return casts.from_element(ctx, loaded, array.dtype)
    return _select_view(ctx, array, places, inside)


def _check_indices(ctx: Context, array: Array, indices: Sequence[Arg]) -> None:
    for arg in indices:
        if not is_int(arg.value):
            problem = f"an index of `{array.name}` must be an int"
            help_ = "tiles reach memory: xetile.init_tile(array, offsets, shape)"
            if isinstance(arg.value, Vector):
                help_ = "beside vectors of indices there are no slices: give a vector"
                help_ += " or a number for each dim, `X[i[:, None], j[None, :]]`"
            label = f"is {describe(arg.value)}"
            raise ctx.error("X0305", problem, arg.node, label=label, help=help_)
    check_count(ctx, array, len(indices))


def check_count(ctx: Context, array: Array, count: int) -> None:
    """Refuse more indices than the array has dims."""
    if count > array.rank:
        problem = f"`{array.name}` has rank {array.rank}, but {count} indices are given"
        raise ctx.error("X0206", problem)


def store_scalar(
    ctx: Context, array: Array, indices: Sequence[Arg], value: Arg
) -> None:
    """Compile ``X[i, ...] = s``; nothing is written outside of the array.

    Raises:
        TileShapeError: the number of indices is not the rank.
        TileTypeError: an index is no int, or ``s`` no number that the dtype holds.
    """
    _check_indices(ctx, array, indices)
    if len(indices) < array.rank:
        raise ctx.error(
            "X0206",
            f"`{array.name}` has rank {array.rank}, but {len(indices)} indices are"
            " given",
            help="a number goes to one element; a tile takes xetile.store_tile",
        )
    check_element(ctx, array.dtype, value)
    positions = [arg.value for arg in indices]
    inside = _inside(ctx, array, dict(enumerate(positions)))
    element = casts.to_element(ctx, value.value, array.dtype)
    view = as_memref(ctx, array)
    with ctx.into() as block:
        places = [casts.to_int(ctx, index) for index in positions]
        ctx.add(memref.StoreOp(element, view, places))
        ctx.add(scf.YieldOp())
    ctx.add(scf.IfOp(inside, [], Region(block)))


def check_element(ctx: Context, dtype: DType, value: Arg) -> None:
    """Refuse a value that is no number, and a float if ``dtype`` is no float."""
    if not is_scalar(value.value):
        problem = f"an element must be a number, not {describe(value.value)}"
        help_ = "store vectors with xetile.store_tile, or by vectors of indices"
        raise ctx.error("X0303", problem, value.node, help=help_)
    if scalar_kind(value.value) == "float" and not dtype.is_float:
        raise ctx.error(
            "X0311",
            f"a float does not fit into an element of {dtype}",
            value.node,
            label=f"is {describe(value.value)}",
            help="round it first: `int(...)`",
        )


def mark_bounds(op: Operation, array: Array, dim: int) -> None:
    """Mark a comparison, or a tile, as a check of an index: `interpret` reports it.

    It does so if the comparison fails, or the tile exceeds the array.
    """
    op.attributes[BOUNDS] = builtin.StringAttr(array.name)
    op.attributes[DIM] = builtin.IntegerAttr.from_index_int_value(dim)


def _inside(ctx: Context, array: Array, indices: Mapping[int, Value]) -> SSAValue:
    """Compute whether all indices, by dim, are inside; as unsigned, -1 is huge."""
    found: SSAValue | None = None
    for dim, index in indices.items():
        size = casts.extent_value(ctx, array.sizes[dim])
        compared = arith.CmpiOp("ult", casts.to_int(ctx, index), size)
        mark_bounds(compared, array, dim)
        here = ctx.emit(compared)
        found = here if found is None else ctx.emit(arith.AndiOp(found, here))
    return found if found is not None else casts.runtime(ctx, True).ssa


def _select_view(
    ctx: Context, array: Array, indices: Mapping[int, Value], inside: SSAValue
) -> Array:
    zero = casts.index_constant(ctx, 0)
    offset = Scalar(casts.extent_value(ctx, array.offset), "int") if array.offset else 0
    for dim, index in indices.items():
        stride = as_seen(array.strides[dim])
        distance = arithmetic.binary_scalars(ctx, MUL, index, stride)
        offset = arithmetic.binary_scalars(ctx, ADD, offset, distance)
    kept = [dim for dim in range(array.rank) if dim not in indices]
    extents = (casts.extent_value(ctx, array.sizes[dim]) for dim in kept)
    sizes = [ctx.emit(arith.SelectOp(inside, extent, zero)) for extent in extents]
    unit = array.unit_dim
    return replace(
        array,
        name=f"{array.name}[...]",
        # The base stays inside of the array even if the view is empty.
        offset=ctx.emit(arith.SelectOp(inside, casts.to_int(ctx, offset), zero)),
        sizes=tuple(sizes),
        strides=tuple(array.strides[dim] for dim in kept),
        unit_dim=kept.index(unit) if unit in kept else None,
        plain=False,
    )


# Memrefs ----------------------------------------------------------------------------


@record(frozen=True)
class Base:
    """A memref for init_tile, with the sizes and strides that the op needs."""

    source: SSAValue
    sizes: tuple[Extent, ...]
    strides: tuple[Extent, ...]
    unit_dim: int | None


def as_memref(ctx: Context, array: Array) -> SSAValue:
    """Return the memref of an array or view, of the same rank."""
    if array.plain:
        return array.root
    how = array.offset, array.sizes, array.strides
    return ctx.emit(memref.ReinterpretCastOp.of(array.root, *how))


def matrix_base(ctx: Context, array: Array) -> Base:
    """Return the memref of an array of rank 1 or 2 as a matrix: rank 1 is one row."""
    if array.rank == 1:
        (size,), (stride,) = array.sizes, array.strides
        array = replace(
            array,
            sizes=(1, size),
            # The stride of the only row is used for no address, but hardware needs a
            # pitch: it is the length of the row.
            strides=(size, stride),
            unit_dim=None if array.unit_dim is None else 1,
            plain=False,
        )
    return base_of(ctx, array)


def base_of(ctx: Context, array: Array) -> Base:
    """Return the memref of an array for init_tile, of the same rank."""
    source = as_memref(ctx, array)
    if all(isinstance(size, int) for size in (*array.sizes, *array.strides)):
        return Base(source, (), (), array.unit_dim)  # its type has all numbers
    return Base(source, array.sizes, array.strides, array.unit_dim)


def argument_type(element: Attribute, rank: int, unit_dim: int | None) -> Attribute:
    """Return the type of an array argument: all is dynamic except a stride of 1."""
    strides = [1 if dim == unit_dim else None for dim in range(rank)]
    layout = builtin.StridedLayoutAttr(strides) if rank else builtin.NoneAttr()
    return builtin.MemRefType(element, [builtin.DYNAMIC_INDEX] * rank, layout)

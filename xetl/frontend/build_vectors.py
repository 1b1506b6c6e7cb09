"""The IR of operations that make, convert, reshape, reduce, scan and sort vectors.

A reduction keeps its dim with extent 1; a reshape drops it.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from math import prod
from typing import cast

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, Region

from xetl.dialects import xetile
from xetl.dialects.upstream import arith, scf, vector
from xetl.errors import did_you_mean
from xetl.frontend import arithmetic, casts
from xetl.frontend.arguments import Arg, Call, Given, builds
from xetl.frontend.arrays import as_seen
from xetl.frontend.build_tiles import mapped, maps_of
from xetl.frontend.calls import call_value
from xetl.frontend.context import Context
from xetl.frontend.operators import extremum
from xetl.frontend.types import (
    INDEX,
    Array,
    Scalar,
    Shape,
    Value,
    Vector,
    describe,
    element_type,
    is_constant,
    is_scalar,
    items_of,
    matrix_shape,
    show_shape,
    vector_type,
)
from xetl.frontend.views import reshape_array
from xetl.language.dtypes import DType, i1, i32, i64, index


def _with_map(call: Call, made: Vector) -> Vector:
    owner = made.ssa.owner
    if isinstance(owner, Operation):
        mapped(call, owner, made.shape)
    return made


@builds("zeros")
def _zeros(call: Call) -> Vector:
    shape, dtype = call.shape("shape"), call.memory_dtype()
    return _with_map(call, casts.splat(call.ctx, 0, shape, dtype))


@builds("full")
def _full(call: Call) -> Vector:
    shape, dtype = call.shape("shape"), call.memory_dtype()
    return _with_map(call, casts.splat(call.ctx, call.scalar("value"), shape, dtype))


@builds("arange")
def _arange(call: Call) -> Vector:
    start, stop = 0, call.constant_int("start")
    if call.value("stop") is not None:
        start, stop = stop, call.constant_int("stop")
    if stop <= start:
        problem = f"`arange` from {start} to {stop} is empty"
        raise call.error("X0204", problem, help="a vector has one element at least")
    return _with_map(call, arange(call.ctx, start, stop))


def arange(ctx: Context, start: int, stop: int) -> Vector:
    """Return the vector ``start`` .. ``stop - 1`` of i32, of rank 1."""
    length = stop - start
    steps = ctx.emit(vector.StepOp(VectorType(INDEX, [length])))
    line = VectorType(element_type(i32), [length])
    numbers = ctx.emit(arith.IndexCastOp(steps, line))
    row = ctx.emit(vector.ShapeCastOp(numbers, vector_type((length,), i32)))
    if start:
        first = casts.splat(ctx, start, (length,), i32)
        row = ctx.emit(arith.AddiOp(row, first.ssa))
    return Vector(row, (length,), i32)


# Conversions and shapes -------------------------------------------------------------


@builds(".to")
def _to(call: Call) -> Value:
    value, dtype = call.value("v"), call.memory_dtype()
    if call.constant("bitcast", "a bool"):
        return _bitcast(call, dtype)
    if isinstance(value, Scalar):
        # The conversion to an element rounds the value to the dtype.
        element = casts.to_element(call.ctx, value, dtype)
        return casts.from_element(call.ctx, element, dtype)
    return casts.convert(call.ctx, call.vector("v"), dtype)


def _bitcast(call: Call, dtype: DType) -> Vector:
    """Return the same bits as another dtype of the same width."""
    value = call.vector("v")
    kinds = {value.dtype.is_bool, dtype.is_bool, index in (value.dtype, dtype)}
    if value.dtype.bits != dtype.bits or True in kinds:
        raise call.error(
            "X0304",
            f"the bits of {value.dtype} are not those of {dtype}",
            "dtype",
            label=f"{value.dtype} has {value.dtype.bits} bits, {dtype} {dtype.bits}",
            help="bitcast needs dtypes of one width; without it `.to` converts",
        )
    target = vector_type(value.shape, dtype)
    if value.ssa.type == target:
        return Vector(value.ssa, value.shape, dtype)
    return Vector(call.ctx.emit(arith.BitcastOp(value.ssa, target)), value.shape, dtype)


@builds(".stride")
def _stride(call: Call) -> Value:
    array = call.value("v")
    return as_seen(array.strides[call.axis("dim", array.rank)])


@builds("reshape")
def _reshape(call: Call) -> Vector | Array:
    array = call.value("v")
    if isinstance(array, Array):
        return reshape_array(call, array, _given_sizes(call))
    value = call.vector("v")
    shape = _new_shape(call)
    if shape.count(-1) == 1:
        rest, more = divmod(prod(value.shape), -prod(shape) or 1)
        shape = shape if more else tuple(rest if e == -1 else e for e in shape)
    fits = min(shape, default=0) > 0 and prod(shape) == prod(value.shape)
    if len(shape) not in (1, 2) or not fits:
        raise call.error(
            "X0209",
            f"{show_shape(value.shape)} cannot be reshaped to {show_shape(shape)}",
            label=f"{prod(value.shape)} elements",
            help="ranks are 1 and 2, and the number of elements stays;"
            " one extent may be -1: what is left",
        )
    return _with_map(call, casts.shape_cast(call.ctx, value, shape))


def _given_sizes(call: Call) -> list[Arg]:
    """Return the sizes of a reshape: given as one tuple, or as several arguments."""
    given = [call.args["shape"]] if "shape" in call.args else call.rest
    items = items_of(given[0].value) if len(given) == 1 else None
    return given if items is None else [Arg(item, given[0].node) for item in items]


def _new_shape(call: Call) -> Shape:
    if "shape" in call.args:
        return tuple(call.int_list("shape"))
    values = [arg.value for arg in _given_sizes(call)]
    for value in values:
        if not is_constant(value) or not isinstance(value, int):
            problem = "a shape must be made of ints known when compiling"
            help_ = "pass them to the kernel as `constexpr`"
            label = f"holds {describe(value)}"
            raise call.error("X0203", problem, label=label, help=help_)
    return tuple(values)


@builds("tile_transpose")
def _tile_transpose(call: Call) -> Vector:
    value = call.vector("v")
    permutation = call.int_list("permutation")
    if len(value.shape) != 2 or permutation != [1, 0]:
        raise call.error(
            "X0210",
            "`tile_transpose` swaps the two axes of a matrix: [1, 0]",
            "permutation" if len(value.shape) == 2 else "v",
            label=f"is {describe(value)}" if len(value.shape) != 2 else "",
        )
    return _with_map(call, casts.transpose_vector(call.ctx, value))


@builds("tile_broadcast")
def _tile_broadcast(call: Call) -> Vector:
    value, shape = call.vector("v", blocked=True), tuple(call.int_list("shape"))
    shape = shape if len(shape) == 4 else call.shape("shape")  # 4: it is blocked
    rank = max(len(value.shape), 2)
    dims = [call.checked_axis("dims", d, rank) for d in call.int_list("dims")]
    if len(value.shape) == 1:
        value = casts.shape_cast(call.ctx, value, (1, *value.shape))
    expected = tuple(
        shape[d] if d in dims and e == 1 else e for d, e in enumerate(value.shape)
    )
    if len(shape) != rank or expected != shape or not dims:
        problem = (
            f"`tile_broadcast` cannot repeat {show_shape(value.shape)} along {dims}"
            f" to {show_shape(shape)}"
        )
        help_ = "the dims have extent 1 before, the others stay"
        raise call.unfit("X0202", problem, "v", help_)
    growing = [d for d in sorted(set(dims)) if shape[d] != 1]
    if not growing:
        return value
    op = xetile.TileBroadcastOp(
        value.ssa, vector_type(shape, value.dtype), broadcast_dims=growing
    )
    return Vector(call.ctx.emit(mapped(call, op, shape)), shape, value.dtype)


@builds("tile_conv_layout")
def _tile_conv_layout(call: Call) -> Vector:
    value = call.vector("v")
    wg, _ = maps_of(call, "wg_map", value.shape)
    source, _ = maps_of(call, "src_map", value.shape)
    if wg is None:
        return value
    op = xetile.TileConvLayoutOp(value.ssa, wg, source)
    return Vector(call.ctx.emit(op), value.shape, value.dtype)


KINDS = ("add", "mul", "max", "min", "and", "or", "xor")


def combining_kind(call: Call, dtype: DType, *, more: tuple[str, ...] = ()) -> str:
    """Return MLIR's name of argument ``kind``; ``more`` are kinds of the caller."""
    kind = call.constant("kind", "a string")
    kinds = (*KINDS, *more)
    if kind not in kinds:
        problem = f"`{kind}` is not a kind of `{call.name}`"
        help_ = did_you_mean(str(kind), kinds) or f"kinds are {', '.join(kinds)}"
        raise call.error("X0107", problem, "kind", help=help_)
    return kind_of(call, kind, dtype)


def kind_of(call: Call, kind: str, dtype: DType, *, nan_wins: bool = True) -> str:
    """Return MLIR's name of ``kind`` on ``dtype``.

    In a max or min of floats a NaN wins if ``nan_wins``, else numbers do.

    Raises:
        TileTypeError: the kind is not defined on the dtype.
    """
    if dtype.is_float if kind in ("and", "or", "xor") else dtype.is_bool:
        advice = "convert it first: `.to(xetile.i32)`"
        raise call.error("X0304", f"`{kind}` of {dtype} has no meaning", help=advice)
    if kind not in ("max", "min"):
        return kind
    if dtype.is_float:
        return f"{kind}imumf" if nan_wins else f"{kind}numf"
    return f"{kind}si" if dtype.kind == "i" else f"{kind}ui"


_SUGAR = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


@builds("tile_reduce")
def _tile_reduce(call: Call) -> Vector:
    value = call.vector("v", blocked=True)
    kind = combining_kind(call, value.dtype)
    rank = len(value.shape)
    dims = [call.checked_axis("dims", dim, rank) for dim in call.int_list("dims")]
    if not dims or len(set(dims)) != len(dims):
        raise call.error("X0205", "`dims` must name each dim once", "dims")
    return _reduce(call, kind, value, dims)


def _reduce(call: Call, kind: str, value: Vector, dims: list[int]) -> Vector:
    """Reduce ``dims`` of the user's shape; they remain with extent 1."""
    shape = tuple(1 if d in dims else e for d, e in enumerate(value.shape))
    shift = len(matrix_shape(value.shape)) - len(value.shape)
    op = xetile.TileReduceOp(value.ssa, kind, [dim + shift for dim in sorted(dims)])
    return Vector(call.ctx.emit(mapped(call, op, shape)), shape, value.dtype)


@builds("sum", "prod", "max", "min")
def _sugar(call: Call) -> Value:
    value = call.value("v")
    nan_wins = "propagate_nan" not in call.args or call.flag("propagate_nan")
    if is_scalar(value) and call.name in ("max", "min"):
        if not is_scalar(call.value("axis")):
            raise call.wrong_kind("v", "a vector")
        op = extremum(call.name, propagate_nan=nan_wins)
        return arithmetic.binary(call.ctx, op, call.args["v"], call.args["axis"])
    value = call.vector("v")
    if call.name == "sum" and value.dtype.is_bool:
        value = casts.convert(call.ctx, value, i32)  # how many are set
    kind = kind_of(call, _SUGAR[call.name], value.dtype, nan_wins=nan_wins)
    dims = _axes(call, value)
    reduced = _finish(call, _reduce(call, kind, value, dims), dims)
    if "return_indices" in call.args and call.flag("return_indices"):
        return reduced, _position(call, call.name)
    return reduced


@builds("any", "all")
def _of_masks(call: Call) -> Value:
    """Compile ``any`` and ``all`` of a mask, or of numbers: 0 counts as false."""
    value = casts.convert(call.ctx, call.vector("v"), i1)
    dims = _axes(call, value)
    kind = "or" if call.name == "any" else "and"
    return _finish(call, _reduce(call, kind, value, dims), dims)


def _axes(call: Call, value: Vector) -> list[int]:
    rank = len(value.shape)
    if call.value("axis") is None:
        return list(range(rank))
    return [call.axis("axis", rank)]


def _finish(call: Call, reduced: Vector, dims: list[int]) -> Value:
    """Drop the reduced dims as NumPy does; without dims it is a scalar."""
    if call.flag("keepdims"):
        return reduced
    shape = tuple(e for d, e in enumerate(reduced.shape) if d not in dims)
    if not shape:
        return casts.extract(call.ctx, reduced)
    return casts.shape_cast(call.ctx, reduced, shape)


@builds("argmax", "argmin")
def _arg_extremum(call: Call) -> Value:
    return _position(call, call.name.removeprefix("arg"))


def _position(call: Call, extremum: str) -> Value:
    """Return the first position of the extremum: the least of all its positions."""
    ctx, value = call.ctx, call.vector("v")
    of_all = call.value("axis") is None
    if of_all and len(value.shape) == 2:
        value = casts.shape_cast(ctx, value, (value.shape[0] * value.shape[1],))
    dim = 0 if of_all else call.axis("axis", len(value.shape))
    kind = kind_of(call, extremum, value.dtype)
    best = casts.broadcast(ctx, _reduce(call, kind, value, [dim]), value.shape)
    if value.dtype.is_float:
        hit = ctx.emit(arith.CmpfOp("oeq", value.ssa, best.ssa))
    else:
        hit = ctx.emit(arith.CmpiOp("eq", value.ssa, best.ssa))
    extent = value.shape[dim]
    # The position along ``dim`` of each element.
    row = arange(call.ctx, 0, extent)
    column = len(value.shape) == 2 and dim == 0
    line = casts.shape_cast(call.ctx, row, (extent, 1) if column else row.shape)
    positions = casts.broadcast(call.ctx, line, value.shape)
    nowhere = casts.splat(ctx, extent, value.shape, i32)
    chosen = ctx.emit(arith.SelectOp(hit, positions.ssa, nowhere.ssa))
    found = _reduce(call, "minsi", Vector(chosen, value.shape, i32), [dim])
    return _finish(call, found, [dim])


@builds("tile_scan")
def _scan(call: Call) -> Vector:
    ctx, value = call.ctx, call.vector("v")
    kind = combining_kind(call, value.dtype)
    dim = call.axis("axis", len(value.shape)) + 2 - len(value.shape)
    scan = xetile.TileScanOp(value.ssa, kind=kind, scan_dims=(dim,))
    return Vector(ctx.emit(scan), value.shape, value.dtype)


@builds("scan_by")
def _scan_by(call: Call) -> Value:
    ctx, values = call.ctx, items_of(call.value("values"))
    assert values is not None
    types = [value.ssa.type for value in values]
    with ctx.into(types * 2) as block:
        sides = [replace(v, ssa=each) for v, each in zip(values * 2, block.args)]
        left, right = tuple(sides[: len(values)]), tuple(sides[len(values) :])
        given = Given([Arg(left, call.node), Arg(right, call.node)], {})
        assert isinstance(call.node, ast.Call)
        combined = call_value(ctx, call.value("combine"), given, call.node)
        ctx.add(scf.YieldOp(*(value.ssa for value in items_of(combined) or ())))
    dim = call.constant_int("dim")
    sources = [value.ssa for value in values]
    scan = xetile.TileAssociativeScanOp(sources, Region(block), scan_dim=dim)
    results = ctx.add(scan).results
    return tuple(replace(v, ssa=each) for v, each in zip(values, results))


@builds("tile_sort")
def _sort(call: Call) -> Vector:
    value = call.vector("v")
    if value.dtype not in (i32, i64):
        problem = f"`tile_sort` of {value.dtype} has no meaning"
        help_ = "it sorts i32 and i64; `sort` takes any numbers"
        raise call.error("X0304", problem, "v", help=help_)
    dim = call.axis("axis", len(value.shape)) + 2 - len(value.shape)
    sort = xetile.TileSortOp(value.ssa, sort_dims=(dim,))
    return Vector(call.ctx.emit(sort), value.shape, value.dtype)


@builds("interleave_rows")
def _interleave_rows(call: Call) -> Vector:
    a, b = call.vector("a"), call.vector("b")
    rows, columns = a.shape
    both = call.ctx.emit(vector.InterleaveOp(a.ssa, b.ssa))
    return Vector(both, (rows, 2 * columns), a.dtype)


@builds("slice_matrix")
def _slice_matrix(call: Call) -> Vector:
    value, names = call.vector("v"), ("start", "stop", "step", "dim")
    start, stop, step, dim = (cast("int", call.value(name)) for name in names)
    places = [range(extent) for extent in value.shape]
    places[dim] = range(start, stop, step)
    return slice_matrix(call.ctx, value, *places)


def slice_matrix(ctx: Context, value: Vector, rows: range, columns: range) -> Vector:
    """Return the elements of a matrix in some rows and columns."""
    shape, places = (len(rows), len(columns)), (rows, columns)
    if shape == value.shape:
        return value
    starts, steps = [each.start for each in places], [each.step for each in places]
    part = vector.ExtractStridedSliceOp(value.ssa, starts, shape, steps)
    return Vector(ctx.emit(part), shape, value.dtype)

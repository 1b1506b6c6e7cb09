"""What reductions become: the dim stays as extent 1 and is dropped by a reshape."""

from __future__ import annotations

from xetl.dialects import xetile
from xetl.dialects.upstream import arith
from xetl.errors import NameLookupError, TileShapeError, TileTypeError, did_you_mean
from xetl.frontend import arithmetic
from xetl.frontend.arguments import Call, wrong_kind
from xetl.frontend.build_vectors import arange
from xetl.frontend.casts import broadcast, convert, extract, shape_cast, splat
from xetl.frontend.context import builds
from xetl.frontend.map_attributes import mapped
from xetl.frontend.operators import extremum
from xetl.frontend.types import Shape, Value, Vector, is_scalar, matrix_shape
from xetl.language.dtypes import DType, i1, i32, i64

KINDS = ("add", "mul", "max", "min", "and", "or", "xor")
_BITWISE = ("and", "or", "xor")


def combining_kind(call: Call, dtype: DType) -> str:
    """Argument ``kind`` for elements of ``dtype``."""
    kind = call.constant("kind", "a string")
    if kind not in KINDS:
        raise call.error(
            NameLookupError,
            "X0107",
            f"`{kind}` is not a kind of `{call.name}`",
            "kind",
            help=did_you_mean(str(kind), KINDS) or f"kinds are {', '.join(KINDS)}",
        )
    return kind_of(call, kind, dtype)


def kind_of(call: Call, kind: str, dtype: DType, *, nan_wins: bool = True) -> str:
    """MLIR's name of ``kind`` on ``dtype``; in max and min NaN wins, or numbers do.

    Raises:
        TileTypeError: the kind has no meaning on the dtype.
    """
    if (kind in _BITWISE and dtype.is_float) or (
        kind not in _BITWISE and dtype.is_bool
    ):
        advice = "convert it first: `.to(xetile.i32)`"
        raise call.error(
            TileTypeError,
            "X0304",
            f"`{kind}` of {dtype} has no meaning",
            help=advice,
        )
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
        raise call.error(
            TileShapeError, "X0205", "`dims` must name each dim once", "dims"
        )
    return _reduce(call, kind, value, dims)


def _reduce(call: Call, kind: str, value: Vector, dims: list[int]) -> Vector:
    """Reduce ``dims`` of the user's shape; they stay as extent 1."""
    shape = tuple(1 if d in dims else e for d, e in enumerate(value.shape))
    shift = len(matrix_shape(value.shape)) - len(value.shape)
    op = xetile.TileReduceOp(kind, value.ssa, [dim + shift for dim in sorted(dims)])
    return Vector(call.ctx.emit(mapped(call, op, shape)), shape, value.dtype)


@builds("sum", "prod", "max", "min")
def _sugar(call: Call) -> Value:
    value = call.value("v")
    nan_wins = "propagate_nan" not in call.args or bool(
        call.constant("propagate_nan", "a bool")
    )
    if is_scalar(value) and call.name in ("max", "min"):
        if not is_scalar(call.value("axis")):
            raise wrong_kind(
                call.ctx, f"`v` of `{call.name}`", "a vector", call.args["v"]
            )
        op = extremum(call.name, propagate_nan=nan_wins)
        return arithmetic.binary(call.ctx, op, call.args["v"], call.args["axis"])
    value = call.vector("v")
    kind = kind_of(call, _SUGAR[call.name], value.dtype, nan_wins=nan_wins)
    dims = _axes(call, value)
    reduced = _finish(call, _reduce(call, kind, value, dims), dims)
    if "return_indices" in call.args and call.constant("return_indices", "a bool"):
        return reduced, _position(call, call.name)
    return reduced


@builds("any", "all")
def _of_masks(call: Call) -> Value:
    """Of masks, or of numbers: those that are not 0."""
    value = convert(call.ctx, call.vector("v"), i1)
    dims = _axes(call, value)
    kind = "or" if call.name == "any" else "and"
    return _finish(call, _reduce(call, kind, value, dims), dims)


def _axes(call: Call, value: Vector) -> list[int]:
    rank = len(value.shape)
    if call.value("axis") is None:
        return list(range(rank))
    return [call.axis("axis", rank)]


def _finish(call: Call, reduced: Vector, dims: list[int]) -> Value:
    """Drop the reduced dims as NumPy does; nothing left is a scalar."""
    if call.value("keepdims"):
        return reduced
    shape = tuple(e for d, e in enumerate(reduced.shape) if d not in dims)
    return shape_cast(call.ctx, reduced, shape) if shape else extract(call.ctx, reduced)


@builds("argmax", "argmin")
def _arg_extremum(call: Call) -> Value:
    return _position(call, call.name.removeprefix("arg"))


def _position(call: Call, extremum: str) -> Value:
    """The first position that holds the extremum: the least of all that do."""
    ctx, value = call.ctx, call.vector("v")
    rank = len(value.shape)
    if call.value("axis") is None and rank == 2:
        value = shape_cast(ctx, value, (value.shape[0] * value.shape[1],))
        rank = 1
    dim = 0 if rank == 1 else call.axis("axis", rank)
    kind = kind_of(call, extremum, value.dtype)
    best = broadcast(ctx, _reduce(call, kind, value, [dim]), value.shape)
    if value.dtype.is_float:
        hit = ctx.emit(arith.CmpfOp("oeq", value.ssa, best.ssa))
    else:
        hit = ctx.emit(arith.CmpiOp("eq", value.ssa, best.ssa))
    extent = value.shape[dim]
    positions = _along(call, extent, value.shape, dim)
    nowhere = splat(ctx, extent, value.shape, i32)
    chosen = ctx.emit(arith.SelectOp(hit, positions.ssa, nowhere.ssa))
    found = _reduce(call, "minsi", Vector(chosen, value.shape, i32), [dim])
    return _finish(call, found, [dim])


def _along(call: Call, extent: int, shape: Shape, dim: int) -> Vector:
    """The position along ``dim`` of each element."""
    row = arange(call.ctx, 0, extent)
    column = len(shape) == 2 and dim == 0
    line = shape_cast(call.ctx, row, (extent, 1) if column else row.shape)
    return broadcast(call.ctx, line, shape)


@builds("tile_scan")
def _scan(call: Call) -> Vector:
    ctx, value = call.ctx, call.vector("v")
    kind = combining_kind(call, value.dtype)
    dim = call.axis("axis", len(value.shape)) + 2 - len(value.shape)
    scan = xetile.TileScanOp(value.ssa, kind=kind, scan_dims=(dim,))
    return Vector(ctx.emit(scan), value.shape, value.dtype)


@builds("tile_sort")
def _sort(call: Call) -> Vector:
    value = call.vector("v")
    if value.dtype not in (i32, i64):
        raise call.error(
            TileTypeError,
            "X0304",
            f"`tile_sort` of {value.dtype} has no meaning",
            "v",
            help="it sorts i32 and i64; `sort` takes any numbers",
        )
    dim = call.axis("axis", len(value.shape)) + 2 - len(value.shape)
    sort = xetile.TileSortOp(value.ssa, sort_dims=(dim,))
    return Vector(call.ctx.emit(sort), value.shape, value.dtype)

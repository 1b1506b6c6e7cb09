"""``sum``, ``mean``, ``amax`` and ``amin``.

A program reduces one row, in pieces. If there are few long rows, they are cut into
parts, and the results of the parts are reduced again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from xetl.errors import LaunchError
from xetl.language.dtypes import DType, i32, i64, u8
from xetl.language.ops import cdiv
from xetl.ops.calling.calls import Launch, View, are_views, itself
from xetl.ops.calling.declarations import (
    SUMS,
    ArrayLike,
    Call,
    Context,
    DTypeLike,
    Operand,
    Step,
    result,
    result_like,
    temporary,
    wrong_shape,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.views import (
    STRIP,
    array_of,
    as_dtype,
    columns,
    columns_of,
    find_dim,
    floats_as,
    piece_width,
    row_view,
    rows,
    rows_at_once,
    side_by_side,
    sums_of,
    width_of,
)
from xetl.ops.rows.reduction_kernels import (
    ENOUGH,
    TILE,
    WIDEST,
    Dims,
    Down,
    Reduced,
    as_it_lies,
    by_lanes,
    down_of,
    reduce_columns,
    reduce_rows,
    reduced,
    rows_of_tile,
    share_gradient,
    views_of,
    with_reduced,
)

_LONG = 1 << 16
_PIECE = 1024
_COLUMN_ROWS = 16
"""The most rows of a tile if columns are reduced."""
_FEW = 6
"""The most columns of rows that are reduced a row a lane [measured: Zen 4, f32, largest
of 3 and 7 columns 4.3 ns a row, then 0.8 and 2.4; of 8 4.3 and 4.2]."""
_PART = 256
"""Rows of a part of long columns."""
_PROGRAM = 1 << 20
"""Elements that a program reads if columns are reduced and rows are wide enough."""
_SHARES = 4
"""The least programs of wide columns, for threads; one thread takes as long."""


def limit_of(kind: str, dtype: DType) -> Any:
    """Return the neutral element of a reduction."""
    if kind in ("add", "or"):
        return 0
    if dtype.is_float:
        return float("-inf" if kind == "max" else "inf")
    if dtype.is_bool:
        return int(kind == "min")
    limits = np.iinfo(dtype.numpy)
    return int(limits.min if kind == "max" else limits.max)


def compared_in(dtype: DType) -> DType:
    """Return a dtype for comparisons that represents all values of ``dtype``."""
    return SUMS.get(dtype, dtype if dtype.bits >= 32 else i32)


def nothing(name: str, x: Operand) -> LaunchError:
    """Return the error for a reduction of no elements that has no neutral one."""
    problem = f"`{x.name}` is {x.shape}, which has no elements there"
    return wrong_shape(name, problem, "reduce one element at least")


def _reduce(
    name: str, kind: str, x: Operand, dim: Any, keepdim: bool, dtype: DType, acc: DType
) -> Call:
    what = reduced(name, x, dim, keepdim)
    if kind in ("max", "min") and what.columns == 0:
        raise nothing(name, x)
    factor = 1.0 if name != "mean" else 1 / what.columns if what.columns else np.nan

    def steps(made: Sequence[Operand]) -> Sequence[Step]:
        return _steps(x, made[0], what, (kind, acc), factor)

    return Call((result(what.shape, dtype),), as_it_lies(x, what.dims, steps))


def _steps(
    x: Operand, to: Operand, what: Reduced, how: tuple[str, DType], factor: float
) -> Sequence[Step]:
    kind, acc = how
    views = views_of(x, what.dims)
    if not are_views([array_of(x)], views[:1]):
        return _by_dims(x, to, what, how, factor)
    width = min(width_of(what.columns), WIDEST)
    if what.columns > WIDEST:
        width = min(width, piece_width(x, what.columns))
    count = prod(what.shape)
    # Of the dtype of x, because it is also the padding of tiles of x.
    first = limit_of(kind, x.dtype)
    down = down_of(x, what.dims, (to,)) or by_lanes(x, *views, _FEW)
    if down is not None:
        return reduce_down(x, to, down, (kind, first, acc), factor)
    if what.columns <= width and count >= ENOUGH:
        some = rows_of_tile(x, views[0], what, width)
        constants = (kind, first, None, acc, width, some)
        given = (x, to), views, constants, (factor,)
        return [rows(reduce_rows, *given, rows_of_program=some)]
    if count >= ENOUGH or what.columns < _LONG:
        constants = (kind, first, 0, acc, width)
        return [rows(reduce_rows, (x, to), views, constants, (factor,))]
    return _in_parts(x, to, what.columns, views, (kind, first, acc), factor, width)


def add_all(
    x: Operand, to: Operand, factor: float, dim: int | None = None
) -> Sequence[Step]:
    """Sum all elements, or those along a dimension, in the dtype of x, times factor."""
    return _steps(x, to, reduced("", x, dim, False), ("add", x.dtype), factor)


def add_each(parts: Sequence[Operand], to: Sequence[Operand]) -> list[Step]:
    """Return the launches that sum each of ``parts`` along its first dimension."""
    pairs = zip(parts, to)
    return [step for part, out in pairs for step in add_all(part, out, 1.0, 0)]


def _by_dims(
    x: Operand, to: Operand, what: Reduced, how: tuple[str, DType], factor: float
) -> Sequence[Step]:
    """Reduce in two steps, for dimensions that have no common view as (..., m, n).

    The first step reduces the innermost run of adjacent dimensions, or only the last
    dimension if all reduced dimensions are in this run.
    """
    order = [i for i in x.order or range(x.ndim) if x.shape[i] != 1]
    ours = [i for i in order if i in what.dims]
    end = order.index(ours[-1]) + 1
    begin = next(i for i in range(end - 1, -1, -1) if not i or order[i - 1] not in ours)
    inner = order[begin:end] if end - begin < len(ours) else ours[-1:]
    part = reduced("", x, tuple(inner), keepdim=True)
    between = temporary(part.shape, how[1])
    rest = reduced("", between, what.dims, len(what.shape) == x.ndim)
    first = _steps(x, between, part, how, 1.0)
    return [*first, *_steps(between, to, rest, how, factor)]


def _in_parts(
    x: Operand,
    to: Operand,
    columns: int,
    views: tuple[View, View],
    how: tuple[Any, ...],
    factor: float,
    width: int,
) -> list[Step]:
    """Reduce few long rows: first each part, then the results of the parts.

    If ``_PIECE`` divides the length, the parts are short rows of this length.
    """
    (source, target), (kind, first, acc) = views, how
    kept = source(array_of(x)).shape[:-1]
    if columns % _PIECE == 0:
        between = temporary((*kept, columns // _PIECE), acc)
        some = TILE // _PIECE
        cut: View = lambda a: source(a).reshape(*between.shape, _PIECE)
        last: View = lambda a: a[..., None]
        constants = (kind, first, None, acc, _PIECE, some)
        given = (x, between), (cut, last), constants, (1.0,)
        one = rows(reduce_rows, *given, rows_of_program=some)
    else:
        pieces = max(1, cdiv(columns, width * ENOUGH))
        parts = cdiv(columns, width * pieces)
        between = temporary((*kept, parts), acc)
        constants, seen = (kind, first, pieces, acc, width), (source, itself)
        one = rows(reduce_rows, (x, between), seen, constants, (1.0,), parts)
    constants = (kind, first, 0, acc, min(width_of(between.shape[-1]), WIDEST))
    two = rows(reduce_rows, (between, to), (itself, target), constants, (factor,))
    return [one, two]


def reduce_down(
    x: Operand, to: Operand, what: Down, how: tuple[Any, ...], factor: float
) -> list[Step]:
    """Reduce a dimension before the last, and read rows in the order of memory.

    Long columns are reduced in parts, then the results of the parts: whole rows are
    read one after the other, and there is work for many threads.
    """
    outer, n, inner = what.shape
    part, count = _part_of(n, inner)
    if n >= 3 * _PART and 6 * count * inner <= STRIP:
        return _in_two(x, to, what, how, factor)
    if count == 1:
        return [_down(x, to, what, how, factor)]
    # Narrow rows are seen side by side: the first step reduces (part, count * inner).
    shapes = [(outer, part, count * inner)] if inner < STRIP else []
    for parts in (*shapes, (outer * count, part, inner)):
        source: View = lambda a, parts=parts: what.source(a).reshape(parts)
        if are_views([array_of(x)], [source]):
            break
    else:  # there are gaps between rows
        return [_down(x, to, what, how, factor)]
    sums = (outer, count, inner)
    between = temporary((parts[0], 1, parts[2]), how[-1])
    one = _down(x, between, Down(parts, source, itself), how, 1.0)
    seen: View = lambda a: a.reshape(sums)
    return [one, _down(between, to, Down(sums, seen, what.target), how, factor)]


def _in_two(
    x: Operand, to: Operand, what: Down, how: tuple[Any, ...], factor: float
) -> list[Step]:
    """Reduce narrow rows whose number has no fitting divisor: most, then the rest."""
    outer, n, inner = what.shape
    middle = n - n % cdiv(STRIP, inner)
    between = temporary((outer, 2, inner), how[-1])
    steps = list[Step]()
    for i, part in enumerate((slice(middle), slice(middle, n))):
        source: View = lambda a, part=part: what.source(a)[:, part]
        target: View = lambda a, i=i: a[:, i : i + 1]
        shape = outer, len(range(n)[part]), inner
        steps += reduce_down(x, between, Down(shape, source, target), how, 1.0)
    both = Down((outer, 2, inner), itself, what.target)
    return [*steps, _down(between, to, both, how, factor)]


def _part_of(n: int, inner: int) -> tuple[int, int]:
    """Return the rows of a part of long columns, and the number of parts.

    For narrow rows, the parts side by side are about as wide as a strip.
    """
    if inner >= STRIP:
        return (_PART, n // _PART) if n % _PART == 0 else (n, 1)
    count = side_by_side(n, inner) if n >= _PART else 1
    return n // count, count


def _down(
    x: Operand, to: Operand, what: Down, how: tuple[Any, ...], factor: float
) -> Step:
    """Return the launch that reduces the middle one of three dimensions."""
    outer, n, inner = what.shape
    kind, first, acc = how
    wide = min(width_of(inner), STRIP)
    while wide < min(inner // _SHARES, WIDEST) and wide * n < _PROGRAM:
        wide *= 2
    together, is_all = max(1, min(n, _COLUMN_ROWS)), n <= _COLUMN_ROWS
    constants = (kind, first, together, is_all, acc, wide)
    grid = (cdiv(inner, wide), outer, 1)
    launch = Launch(reduce_columns, what[1:], (), grid, constants)
    return Step(launch, (x, to), (factor,))


def sum_dtypes(name: str, x: Operand, dtype: Any) -> tuple[DType, DType]:
    """Return the dtype of a sum and that of its computation (i64 between integers)."""
    if not x.dtype.is_float and not as_dtype(dtype, i64).is_float:
        return as_dtype(dtype, i64), i64
    wanted = floats_as(name, x, dtype)
    return wanted, sums_of(x.dtype, wanted)


def _sum_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    """Return the gradient of a sum: all summed elements have the same."""
    shape = context.shape_of("input")
    grad = with_reduced(context, grad, len(shape))
    return {"input": grad.to(context.dtype_of("input")).expand(shape)}


def _mean_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    part = grad.numel() / max(1, prod(context.shape_of("input")))
    return _sum_backward(context, grad * part)


@function(backward=_sum_backward)
def sum(
    input: ArrayLike,
    dim: Dims | None = None,
    keepdim: bool = False,
    dtype: DTypeLike = None,
    *,
    out: ArrayLike = None,
) -> Any:
    """The sum over dimensions, in f32 (f64 for f64, i64 for integers), rounded once.

    If ``dtype`` is a float dtype, integers are summed as floats; if it is bool, the sum
    is whether one of them is not 0.

    Args:
        input: any shape; floats or integers, from any library as for `softmax`.
        dim: one or more dimensions; None: all.
        keepdim: whether the result keeps them, with extent 1.
        dtype: the dtype of the result. None: that of ``input``, i64 for integers.
        out: the array that gets the result.

    Returns:
        ``out``, or a new array of the library of ``input``.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    wanted, acc = sum_dtypes("sum", input, dtype)
    if wanted.is_bool:
        return _reduce("sum", "or", input, dim, keepdim, wanted, wanted)
    return _reduce("sum", "add", input, dim, keepdim, wanted, acc)


@function(backward=_mean_backward)
def mean(
    input: ArrayLike,
    dim: Dims | None = None,
    keepdim: bool = False,
    dtype: DTypeLike = None,
    *,
    out: ArrayLike = None,
) -> Any:
    """The mean over dimensions; arguments as for `sum`. Integers need ``dtype``."""
    wanted = floats_as("mean", input, dtype)
    acc = sums_of(input.dtype, wanted)
    return _reduce("mean", "add", input, dim, keepdim, wanted, acc)


def _shared_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    (x, y), dim = context.saved, context["dim"]
    is_best = (x == y).to(x.dtype)
    shared = (grad * is_best).sum(dim, keepdim=True) / is_best.sum(dim, keepdim=True)
    return {"grad": shared, "input": None, "extreme": None}


@function(backward=_shared_backward, saves=["input", "extreme"])
def extreme_backward(
    grad: ArrayLike, input: ArrayLike, extreme: ArrayLike, dim: int
) -> Any:
    """The gradient of an extreme along a dimension, shared evenly by equal elements.

    ``grad`` and ``extreme`` have extent 1 along the dimension.
    """
    dim = find_dim("amax", input, dim)
    acc, operands = SUMS[input.dtype], (input, extreme, grad)

    def steps(made: Sequence[Operand]) -> list[Step]:
        if dim < input.ndim - 1:
            constants = (0, acc, 1)
            return [columns(share_gradient, (*operands, *made), dim, constants)]
        view = row_view(input.ndim, dim)
        n, m = columns_of(input.shape, dim), view(array_of(input)).shape[-2]
        width = min(piece_width(input, n), WIDEST)
        some = rows_at_once(input, m, width) if n <= width else 1
        given = (*operands, *made), [view] * 4, (1, acc, some, width)
        return [rows(share_gradient, *given, rows_of_program=some)]

    return Call((result_like(input, input.dtype),), steps)


def _extreme_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    """Divide the gradient evenly among equal extremes, as torch's amax does."""
    x, y = context.saved
    dim = context["dim"]
    grad, y = (with_reduced(context, each, x.ndim) for each in (grad, y))
    if dim is None or dim == ():
        flat = extreme_backward(grad.reshape(-1), x.reshape(-1), y.reshape(-1), 0)
        return {"input": flat.reshape(x.shape)}
    dims = [dim] if isinstance(dim, int) else list(dim)
    if len(dims) == 1:
        return {"input": extreme_backward(grad, x, y, dims[0])}
    last = [*range(-len(dims), 0)]
    grad, x, y = (each.movedim(dims, last) for each in (grad, x, y))
    shape = x.shape
    grad, x, y = (each.flatten(-len(dims)) for each in (grad, x, y))
    found = extreme_backward(grad, x, y, -1)
    return {"input": found.reshape(shape).movedim(last, dims)}


def _extreme(name: str, kind: str, x: Operand, dim: Any, keepdim: bool) -> Call:
    # Integers are not widened: the padding of tiles is the least of its own dtype.
    acc = SUMS.get(x.dtype, u8 if x.dtype.is_bool else x.dtype)
    return _reduce(name, kind, x, dim, keepdim, x.dtype, acc)


@function(backward=_extreme_backward, saves=["input", "result"])
def amax(
    input: ArrayLike, dim: Dims = (), keepdim: bool = False, *, out: ArrayLike = None
) -> Any:
    """The largest numbers over dimensions, NaN if there is one; see `sum`."""
    return _extreme("amax", "max", input, dim, keepdim)


@function(backward=_extreme_backward, saves=["input", "result"])
def amin(
    input: ArrayLike, dim: Dims = (), keepdim: bool = False, *, out: ArrayLike = None
) -> Any:
    """The least numbers over dimensions, NaN if there is one; see `sum`."""
    return _extreme("amin", "min", input, dim, keepdim)

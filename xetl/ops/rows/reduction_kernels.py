"""The kernels behind sums, extremes and running sums: a program has one or more rows.

The file begins with the dimensions of a reduction and the views of its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

from xetl import xetile
from xetl.ops.activations import copied
from xetl.ops.calling.calls import View, are_views, chain, transposed
from xetl.ops.calling.declarations import (
    Context,
    Operand,
    Operands,
    Step,
    temporary,
    wrong_shape,
)
from xetl.ops.calling.operands import Numbers
from xetl.ops.calling.views import array_of, find_dim, strips
from xetl.ops.matrices import matrix, put, take
from xetl.runtime.kernel import Kernel
from xetl.xetile import Array, Vector, constexpr

Dims: TypeAlias = "int | Sequence[int]"
Steps: TypeAlias = Callable[[Sequence[Operand]], Sequence[Step]]
"""Returns the steps that write the results it gets."""

WIDEST = 4096
"""The most columns of a tile."""
ENOUGH = 16
"""The number of programs that keep the threads of a CPU busy."""
_NARROW = 24
"""The most columns of rows in which a place is found a row a lane."""
_TURNED = 1024
"""The least elements for which a launch that copies the results pays."""
TILE = 16384
"""Elements of a tile of rows: 64 KB of f32."""


class Reduced(NamedTuple):
    """The dimensions and shapes of a reduction.

    Attributes:
        dims: the reduced dimensions, sorted.
        shape: the shape of the result.
        kept: the extents of the other dimensions.
        columns: the number of elements that one element of the result comes from.
    """

    dims: tuple[int, ...]
    shape: tuple[int, ...]
    kept: tuple[int, ...]
    columns: int


def reduced(name: str, x: Operand, dim: Any, keepdim: bool) -> Reduced:
    """Return the dimensions and shapes of a reduction of ``x``.

    Args:
        dim: the dimensions as the caller names them; None or an empty sequence: all.
        keepdim: whether the result keeps them, with extent 1.

    Raises:
        LaunchError: a dimension does not exist, or is named twice.
    """
    several = isinstance(dim, Sequence)
    if dim is None or (several and not dim):
        dim, several = range(x.ndim), True
    given: Sequence[Any] = tuple(dim) if several else (dim,)
    dims = tuple(sorted(find_dim(name, x, each) for each in given)) if x.ndim else ()
    if len(set(dims)) != len(dims):
        raise wrong_shape(name, f"`dim` is {dim}", "name each dimension once")
    kept = tuple(n for i, n in enumerate(x.shape) if i not in dims)
    whole = tuple(1 if i in dims else n for i, n in enumerate(x.shape))
    columns = prod(x.shape[i] for i in dims)
    return Reduced(dims, whole if keepdim else kept, kept, columns)


def views_of(x: Operand, dims: tuple[int, ...]) -> tuple[View, View]:
    """Return views of x as (..., m, n) and of the result as (..., m, 1); n is reduced.

    They are (m, n) and (m, 1) if the strides allow it: then programs have many rows.
    """
    if not x.ndim:
        return (lambda a: a.reshape(1, 1), lambda a: a.reshape(1, 1))
    inward = x.order or range(x.ndim)
    kept = [i for i in inward if i not in dims]
    lead, columns = [x.shape[i] for i in kept] or [1], prod(x.shape[i] for i in dims)

    def source(a: Numbers) -> Numbers:
        moved = a.transpose([*kept, *(i for i in inward if i in dims)])
        return moved.reshape([*lead, columns])

    count = prod(lead)
    together = chain(source, lambda a: a.reshape(count, columns))
    if kept == sorted(kept) and are_views([array_of(x)], [together]):
        return together, lambda a: a.reshape(count, 1)

    def target(a: Numbers) -> Numbers:
        counted = sorted(kept)
        without = a.reshape([x.shape[i] for i in counted] or [1])
        return without.transpose([counted.index(i) for i in kept] or [0])[..., None]

    return source, target


class Down(NamedTuple):
    """A reduction down columns: other dimensions follow the reduced ones in memory.

    Attributes:
        shape: (outer, n, inner); n is reduced.
        source: the view of the input with this shape.
        target: the view of the result as (outer, 1, inner).
    """

    shape: tuple[int, int, int]
    source: View
    target: View


def down_of(x: Operand, dims: tuple[int, ...], made: Sequence[Operand]) -> Down | None:
    """Return the reduction down columns; None: along rows, or strides forbid it."""
    is_one = [n == 1 for n in x.shape]  # these dimensions have any place in the order
    inward = sorted(x.order or range(x.ndim), key=lambda i: not is_one[i])
    places = sorted(inward.index(dim) for dim in dims if not is_one[dim])
    first, end = (places[0], places[-1] + 1) if places else (0, 0)
    kept = [i for i in inward[:first] + inward[end:] if not is_one[i]]
    order = _order_of_result(x, dims, inward)
    may_turn = made and all(len(y.shape) in (x.ndim, len(order)) for y in made)
    is_run = len(places) == end - first
    if not is_run or end == x.ndim or not (may_turn or kept == sorted(kept)):
        return None
    groups = inward[:first], inward[first:end], inward[end:]
    outer, n, inner = (prod(x.shape[i] for i in group) for group in groups)
    source: View = lambda a: a.transpose(inward).reshape(outer, n, inner)

    def target(a: Numbers) -> Numbers:
        turns = {x.ndim: inward, len(order): order}.get(a.ndim)
        turned = a.transpose(turns) if turns else a  # else of another shape
        return turned.reshape(outer, 1, inner)

    operands = [array_of(each) for each in (x, *made)]
    if not are_views(operands, [source, *[target] * len(made)]):
        return None
    return Down((outer, n, inner), source, target)


def _order_of_result(
    x: Operand, dims: tuple[int, ...], inward: Sequence[int]
) -> tuple[int, ...]:
    """Return the order ``inward`` of dimensions for those that are not reduced."""
    kept = [i for i in range(x.ndim) if i not in dims]
    return tuple(kept.index(i) for i in inward if i not in dims)


def as_it_lies(x: Operand, dims: tuple[int, ...], steps: Steps) -> Steps:
    """Return steps whose results first have the order that x has in memory.

    So columns are read as they lie, where ``steps`` alone would go across them; the
    results are copied to their places.
    """

    def turning(made: Sequence[Operand]) -> Sequence[Step]:
        inward = x.order
        is_small = prod(x.shape) < _TURNED
        if inward is None or is_small or down_of(x, dims, made) is not None:
            return steps(made)
        order = _order_of_result(x, dims, inward)
        turned = [
            temporary(y.shape, y.dtype, order=inward if y.ndim == x.ndim else order)
            for y in made
        ]
        if order == tuple(sorted(order)) or down_of(x, dims, turned) is None:
            return steps(made)
        return [*steps(turned), *map(copied, turned, made)]

    return turning


def by_lanes(
    x: Operand, source: View, target: View, most: int = _NARROW
) -> Down | None:
    """Return the view of narrow rows as columns: each lane of a vector has one row.

    Return None for rows of more than ``most`` elements: they gain nothing. [measured]
    Zen 5, argmax of f32, rows of 3: 8.5 ns each, then 1.3; of 24: 11.2, then 6.9; f64:
    17.5, then 9.8.
    """
    lines = source(array_of(x))
    if lines.ndim != 2 or lines.shape[1] > most:
        return None
    views = chain(source, transposed), chain(target, transposed)
    return Down((1, *lines.shape[::-1]), *views)


def by_columns(
    kernel: Kernel, operands: Operands, what: Down, constants: Sequence[Any]
) -> Step:
    """Return a launch with the grid (strips of columns, matrices).

    Args:
        kernel: takes the operands, the constants, and the width of a strip.
        operands: the input, then the results.
        constants: the compile-time arguments without the width.
    """
    outer, _, inner = what.shape
    views = [what.source, *[what.target] * (len(operands) - 1)]
    return strips(kernel, operands, views, (outer, inner), constants)


def rows_of_tile(x: Operand, source: View, what: Reduced, width: int) -> int:
    """Return the number of rows of a program: 1 if rows are wider than a tile."""
    if what.columns > width:
        return 1
    rows = source(array_of(x)).shape[-2]
    return max(1, min(TILE // width, prod(what.kept) // ENOUGH, rows))


def with_reduced(context: Context, found: Any, rank: int) -> Any:
    """Return a result or its gradient with the reduced dimensions, of extent 1."""
    dim = context["dim"]
    if rank and not context["keepdim"] and dim not in (None, ()):
        dims = [dim] if isinstance(dim, int) else dim
        for each in sorted(i % rank for i in dims):
            found = found.unsqueeze(each)
    return found


@xetile.function
def combined(acc: Vector, v: Vector, KIND: constexpr) -> Vector:
    """Combine two vectors as `tile_reduce` of this kind does."""
    if KIND == "add":
        return acc + v
    if KIND == "or":
        return acc | v
    return xetile.maximum(acc, v) if KIND == "max" else xetile.minimum(acc, v)


@xetile.kernel
def reduce_rows(
    x: Array,
    out: Array,
    factor: float,
    KIND: constexpr,
    FIRST: constexpr,
    PIECES: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
    ROWS: constexpr = 1,
) -> None:
    """``out = factor * KIND(x)`` of each row, or of each part of a row.

    Args:
        x: (..., m, n).
        out: (..., m, parts).
        factor: a sum is multiplied by it.
        KIND: ``add``, ``max``, ``min``, or ``or`` of bools.
        FIRST: the neutral element of KIND.
        PIECES: pieces of a part. 0: a row is one part; None: a row is one piece.
        ACC: the dtype of the computation.
        WIDTH: columns of a piece.
        ROWS: rows of a program, if a row is one piece.
    """
    row, number = xetile.program_id(0) * ROWS, xetile.program_id(1)
    source, part = matrix(x, number), 0
    if PIECES is None:
        acc = take(source, [row, 0], (ROWS, WIDTH), ACC, FIRST)
    else:
        part = xetile.program_id(2)
        first, end = 0, source.shape[1]
        if PIECES:
            first = part * (PIECES * WIDTH)
            end = min(end, first + PIECES * WIDTH)
        acc = xetile.full((1, WIDTH), FIRST, ACC)
        for column in range(first, end, WIDTH):
            v = take(source, [row, column], (1, WIDTH), ACC, FIRST)
            acc = combined(acc, v, KIND)
    found = xetile.tile_reduce(KIND, acc, [1])
    if KIND == "add" and ACC.is_float:
        found = found * factor
    put(found, matrix(out, number), [row, part])


@xetile.kernel
def reduce_columns(
    x: Array,
    out: Array,
    factor: float,
    KIND: constexpr,
    FIRST: constexpr,
    ROWS: constexpr,
    IS_ALL: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """`reduce_rows` of columns: x is (..., n, m), out is (..., 1, m).

    IS_ALL: whether n is ROWS at most.
    """
    column, number = xetile.program_id(0) * WIDTH, xetile.program_id(1)
    source = matrix(x, number)
    if IS_ALL:
        v = take(source, [0, column], (ROWS, WIDTH), ACC, FIRST)
        acc = xetile.tile_reduce(KIND, v, [0])
    else:
        acc = xetile.full((1, WIDTH), FIRST, ACC)
        for row in range(0, source.shape[0], ROWS):
            v = take(source, [row, column], (ROWS, WIDTH), ACC, FIRST)
            acc = combined(acc, xetile.tile_reduce(KIND, v, [0]), KIND)
    if KIND == "add" and ACC.is_float:
        acc = acc * factor
    put(acc, matrix(out, number), [0, column])


@xetile.function
def comes_before(v: Vector, best: Vector, LARGEST: constexpr, ACC: constexpr) -> Vector:
    """Return where v replaces best: v is larger (less), or it is the first NaN."""
    if ACC.is_float:
        return ~(v <= best if LARGEST else v >= best) & (best == best)
    return v > best if LARGEST else v < best


@xetile.kernel
def find(
    x: Array,
    values: Array | None,
    out: Array,
    AXIS: constexpr,
    LARGEST: constexpr,
    PADDING: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """The index of the first largest (least) number along AXIS, or of the first NaN.

    ``values`` and ``out`` have extent 1 along AXIS.
    """
    first, number = xetile.program_id(0), xetile.program_id(1)
    row, column = (first, 0) if AXIS else (0, first * WIDTH)
    source = matrix(x, number)
    length = source.shape[1] if AXIS else source.shape[0]
    best = xetile.full((1, WIDTH), PADDING, ACC)
    piece = xetile.zeros((1, WIDTH), xetile.i32)
    for i in range(0, length, WIDTH if AXIS else 1):
        at = [row, i] if AXIS else [i, column]
        v = take(source, at, (1, WIDTH), ACC, PADDING)
        is_better = comes_before(v, best, LARGEST, ACC)
        best = xetile.where(is_better, v, best)
        piece = xetile.where(is_better, i, piece)
    if AXIS:
        found = best.max(1, keepdims=True) if LARGEST else best.min(1, keepdims=True)
        is_found = best == found
        if ACC.is_float:
            is_found = is_found | xetile.isnan(best)
        places = piece + xetile.arange(WIDTH)[None, :]
        places = xetile.where(is_found, places, length)
        best, piece = found, places.min(1, keepdims=True)
    put(piece, matrix(out, number), [row, column])
    if values is not None:
        put(best, matrix(values, number), [row, column])


@xetile.kernel
def share_gradient(
    x: Array,
    best: Array,
    grad: Array,
    out: Array,
    AXIS: constexpr,
    ACC: constexpr,
    ROWS: constexpr,
    WIDTH: constexpr,
) -> None:
    """``out = grad / count`` where x is the best along AXIS, and 0 elsewhere.

    ``best`` and ``grad`` have extent 1 along AXIS. ``count`` elements are equal. If the
    best is NaN, none is, and all gradients are NaN.
    """
    first, number = xetile.program_id(0), xetile.program_id(1)
    source, to = matrix(x, number), matrix(out, number)
    row, column, each = first * ROWS, 0, (ROWS, 1)
    if AXIS == 0:
        row, column, each = 0, first * WIDTH, (1, WIDTH)
    y = take(matrix(best, number), [row, column], each, ACC)
    count = xetile.zeros((ROWS, WIDTH), ACC)
    for i in range(0, source.shape[AXIS], WIDTH if AXIS else ROWS):
        at = [row, i] if AXIS else [i, column]
        v = take(source, at, (ROWS, WIDTH), ACC, float("nan"))
        count = count + xetile.where(v == y, 1.0, 0.0)
    g = take(matrix(grad, number), [row, column], each, ACC)
    share = g / count.sum(AXIS, keepdims=True)
    for i in range(0, source.shape[AXIS], WIDTH if AXIS else ROWS):
        at = [row, i] if AXIS else [i, column]
        v = take(source, at, (ROWS, WIDTH), ACC, float("nan"))
        put(xetile.where(v == y, 1.0, 0.0) * share, to, at)


@xetile.kernel
def cumsum_rows(
    x: Array,
    out: Array,
    REVERSE: constexpr,
    IS_LONG: constexpr,
    ACC: constexpr,
    ROWS: constexpr,
    WIDTH: constexpr,
) -> None:
    """``out[i] = x[0] + ... + x[i]`` in each row, or ``x[i] + ... + x[n - 1]``.

    A long row is summed in pieces; each begins with the sum of the pieces before it.
    """
    row, number = xetile.program_id(0) * ROWS, xetile.program_id(1)
    source, to = matrix(x, number), matrix(out, number)
    if not IS_LONG:
        v = take(source, [row, 0], (ROWS, WIDTH), ACC)
        put(xetile.cumsum(v, 1, reverse=REVERSE), to, [row, 0])
        return
    pieces = xetile.cdiv(source.shape[1], WIDTH)
    total = xetile.zeros((1, 1), ACC)
    for i in range(0, pieces):
        column = (pieces - 1 - i if REVERSE else i) * WIDTH
        v = take(source, [row, column], (1, WIDTH), ACC)
        before = total
        total = total + v.sum(1, keepdims=True)
        put(before + xetile.cumsum(v, 1, reverse=REVERSE), to, [row, column])


@xetile.kernel
def cumsum_columns(
    x: Array, out: Array, REVERSE: constexpr, ACC: constexpr, WIDTH: constexpr
) -> None:
    """`cumsum_rows` of columns."""
    first, number = xetile.program_id(0) * WIDTH, xetile.program_id(1)
    source, n = matrix(x, number), matrix(x, number).shape[0]
    total = xetile.zeros((1, WIDTH), ACC)
    for i in range(0, n):
        row = n - 1 - i if REVERSE else i
        total = total + take(source, [row, first], (1, WIDTH), ACC)
        put(total, matrix(out, number), [row, first])


@xetile.kernel
def cumsum_narrow_rows(
    x: Array,
    out: Array,
    REVERSE: constexpr,
    ACC: constexpr,
    COLUMNS: constexpr,
    WIDTH: constexpr,
) -> None:
    """`cumsum_rows` of rows of a few COLUMNS, of which a program has whole ones.

    ``x`` and ``out`` are lines of all elements, so that no vector is for one row alone.
    """
    first = xetile.program_id(0) * WIDTH
    place, total = xetile.arange(WIDTH) % COLUMNS, xetile.zeros((WIDTH,), ACC)
    for i in xetile.static_range(COLUMNS):
        away = COLUMNS - 1 - i
        is_of_row = place < COLUMNS - away if REVERSE else place >= away
        v = take(x, [first + away if REVERSE else first - away], (WIDTH,), ACC)
        total = total + xetile.where(is_of_row, v, 0)
    put(total, out, [first])

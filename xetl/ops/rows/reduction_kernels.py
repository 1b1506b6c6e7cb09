"""The kernels behind sums, extremes and running sums: one or some rows to a program.

What is reduced over which dimensions, with its views, comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

from xetl import xetile
from xetl.ops.calling.calls import View, are_views
from xetl.ops.calling.declarations import Context, Operand, Operands, Step, wrong_shape
from xetl.ops.calling.operands import Numbers
from xetl.ops.calling.views import array_of, find_dim, strips
from xetl.ops.matrices import matrix, put, take
from xetl.runtime.kernel import Kernel
from xetl.xetile import Array, Vector, constexpr

Dims: TypeAlias = "int | Sequence[int]"

WIDEST = 4096
"""Columns of a tile, at most."""
ENOUGH = 16
"""Programs that keep the threads of a CPU busy."""
TILE = 16384
"""Elements of a tile of rows: 64 KB of f32."""


class Reduced(NamedTuple):
    """What is reduced: sorted dimensions, shapes of the result and of what is kept."""

    dims: tuple[int, ...]
    shape: tuple[int, ...]
    kept: tuple[int, ...]
    columns: int


def reduced(name: str, x: Operand, dim: Any, keepdim: bool) -> Reduced:
    """What a function reduces.

    Args:
        dim: the dimensions as the caller names them; None or none: all.
        keepdim: whether they stay, with extent 1.

    Raises:
        LaunchError: there is no such dimension, or one is named twice.
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
    """Views: of x as (..., m, n), n what is reduced, of the result as (..., m, 1)."""
    if not x.ndim:
        return (lambda a: a.reshape(1, 1), lambda a: a.reshape(1, 1))
    inward = x.order or range(x.ndim)
    kept = [i for i in inward if i not in dims]
    lead = [x.shape[i] for i in kept] or [1]

    def source(a: Numbers) -> Numbers:
        moved = a.transpose([*kept, *(i for i in inward if i in dims)])
        return moved.reshape([*lead, prod(x.shape[i] for i in dims)])

    def target(a: Numbers) -> Numbers:
        counted = sorted(kept)
        without = a.reshape([x.shape[i] for i in counted] or [1])
        return without.transpose([counted.index(i) for i in kept] or [0])[..., None]

    return source, target


class Down(NamedTuple):
    """What is reduced lies between other dimensions in memory.

    Attributes:
        shape: the extents before it, its own, and behind it.
        source: sees the input so.
        target: the result, with 1 instead.
    """

    shape: tuple[int, int, int]
    source: View
    target: View


def down_of(x: Operand, dims: tuple[int, ...], made: Sequence[Operand]) -> Down | None:
    """How what is reduced is seen as columns, if it is no part of rows."""
    inward = [*(x.order or range(x.ndim))]
    places = sorted(inward.index(dim) for dim in dims)
    first, end = (places[0], places[-1] + 1) if places else (0, 0)
    kept = inward[:first] + inward[end:]
    is_run = len(places) == end - first > 0
    if not is_run or end == x.ndim or kept != sorted(kept):
        return None
    if not all(array_of(each).flags.c_contiguous for each in made):
        return None
    groups = inward[:first], inward[first:end], inward[end:]
    outer, n, inner = (prod(x.shape[i] for i in group) for group in groups)
    source: View = lambda a: a.transpose(inward).reshape(outer, n, inner)
    if not are_views([array_of(x)], [source]):
        return None
    target: View = lambda a: a.reshape(outer, 1, inner)
    return Down((outer, n, inner), source, target)


def by_columns(
    kernel: Kernel, operands: Operands, what: Down, constants: Sequence[Any]
) -> Step:
    """A launch with a program for some columns: grid (strips of columns, matrices).

    Args:
        kernel: takes the operands, the constants, and the width of a strip.
        operands: the input, then results.
        constants: the compile-time arguments without the width.
    """
    outer, _, inner = what.shape
    views = [what.source, *[what.target] * (len(operands) - 1)]
    return strips(kernel, operands, views, (outer, inner), constants)


def rows_of_tile(what: Reduced, width: int) -> int:
    """How many rows a program has, if a tile of that width holds them."""
    if what.columns > width:
        return 1
    return max(1, min(TILE // width, prod(what.kept) // ENOUGH))


def spread(context: Context, grad: Any) -> Any:
    """The gradient of a sum: the same for all that was added."""
    shape = context.shape_of("input")
    grad = with_reduced(context, grad, len(shape))
    return grad.to(context.dtype_of("input")).expand(shape)


def with_reduced(context: Context, found: Any, rank: int) -> Any:
    """A result, or its gradient, with all dimensions of an input of that rank."""
    dim = context["dim"]
    if rank and not context["keepdim"] and dim not in (None, ()):
        dims = [dim] if isinstance(dim, int) else dim
        for each in sorted(i % rank for i in dims):
            found = found.unsqueeze(each)
    return found


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
) -> None:
    """``out = factor * KIND(x)`` of each row, or of each part of it.

    Args:
        x: (..., m, n).
        out: (..., m, parts).
        factor: what a sum is multiplied by.
        KIND: ``add``, ``max`` or ``min``.
        FIRST: what changes nothing.
        PIECES: of a part; 0: one part goes to the end.
        ACC: the dtype that is computed in.
        WIDTH: columns of a piece.
    """
    row, number = xetile.program_id(0), xetile.program_id(1)
    part = xetile.program_id(2)
    source = matrix(x, number)
    first, end = 0, source.shape[1]
    if PIECES:
        first = part * (PIECES * WIDTH)
        end = min(end, first + PIECES * WIDTH)
    acc = xetile.full((1, WIDTH), FIRST, ACC)
    for column in range(first, end, WIDTH):
        v = take(source, [row, column], (1, WIDTH), ACC, FIRST)
        if KIND == "add":
            acc = acc + v
        elif KIND == "max":
            acc = xetile.maximum(acc, v)
        else:
            acc = xetile.minimum(acc, v)
    found = xetile.tile_reduce(KIND, acc, [1])
    if KIND == "add" and ACC.is_float:
        found = found * factor
    put(found, matrix(out, number), [row, part])


@xetile.kernel
def reduce_short_rows(
    x: Array,
    out: Array,
    factor: float,
    KIND: constexpr,
    FIRST: constexpr,
    ROWS: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """The same of rows that a tile holds; ROWS of them to a program."""
    row, number = xetile.program_id(0) * ROWS, xetile.program_id(1)
    v = take(matrix(x, number), [row, 0], (ROWS, WIDTH), ACC, FIRST)
    found = xetile.tile_reduce(KIND, v, [1])
    if KIND == "add" and ACC.is_float:
        found = found * factor
    put(found, matrix(out, number), [row, 0])


@xetile.kernel
def reduce_columns(
    x: Array,
    out: Array,
    factor: float,
    KIND: constexpr,
    FIRST: constexpr,
    ROWS: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """The same of each column: x is (..., n, m), out (..., 1, m)."""
    column, number = xetile.program_id(0) * WIDTH, xetile.program_id(1)
    source = matrix(x, number)
    acc = xetile.full((1, WIDTH), FIRST, ACC)
    for row in range(0, source.shape[0], ROWS):
        v = take(source, [row, column], (ROWS, WIDTH), ACC, FIRST)
        part = xetile.tile_reduce(KIND, v, [0])
        if KIND == "add":
            acc = acc + part
        elif KIND == "max":
            acc = xetile.maximum(acc, part)
        else:
            acc = xetile.minimum(acc, part)
    if KIND == "add" and ACC.is_float:
        acc = acc * factor
    put(acc, matrix(out, number), [0, column])


@xetile.function
def comes_before(v: Vector, best: Vector, LARGEST: constexpr, ACC: constexpr) -> Vector:
    """Whether an element is to be found rather than what is before it: a NaN is."""
    if ACC.is_float:
        return ~(v <= best if LARGEST else v >= best) & (best == best)
    return v > best if LARGEST else v < best


@xetile.kernel
def find_rows(
    x: Array,
    values: Array | None,
    out: Array,
    LARGEST: constexpr,
    PADDING: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """The first place of the largest (least) number of each row; NaN counts as that."""
    row, number = xetile.program_id(0), xetile.program_id(1)
    source = matrix(x, number)
    best = xetile.full((1, WIDTH), PADDING, ACC)
    piece = xetile.zeros((1, WIDTH), xetile.i32)
    for column in range(0, source.shape[1], WIDTH):
        v = take(source, [row, column], (1, WIDTH), ACC, PADDING)
        is_better = comes_before(v, best, LARGEST, ACC)
        best = xetile.where(is_better, v, best)
        piece = xetile.where(is_better, column, piece)
    found = best.max(1, keepdims=True) if LARGEST else best.min(1, keepdims=True)
    is_found = best == found
    if ACC.is_float:
        is_found = is_found | xetile.isnan(best)
    places = piece + xetile.arange(WIDTH)[None, :]
    place = xetile.where(is_found, places, source.shape[1]).min(1, keepdims=True)
    put(place, matrix(out, number), [row, 0])
    if values is not None:
        put(found, matrix(values, number), [row, 0])


@xetile.kernel
def cumsum_rows(
    x: Array, out: Array, REVERSE: constexpr, ACC: constexpr, WIDTH: constexpr
) -> None:
    """``out[i] = x[0] + ... + x[i]`` in each row, or ``x[i] + ... + x[n - 1]``."""
    row, number = xetile.program_id(0), xetile.program_id(1)
    v = xetile.cumsum(
        take(matrix(x, number), [row, 0], (1, WIDTH), ACC), 1, reverse=REVERSE
    )
    put(v, matrix(out, number), [row, 0])


@xetile.kernel
def find_columns(
    x: Array,
    values: Array | None,
    out: Array,
    LARGEST: constexpr,
    PADDING: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """`find_rows` of columns; ``values`` and ``out`` are (..., 1, m)."""
    first, number = xetile.program_id(0) * WIDTH, xetile.program_id(1)
    source = matrix(x, number)
    best = xetile.full((1, WIDTH), PADDING, ACC)
    place = xetile.zeros((1, WIDTH), xetile.i32)
    for row in range(0, source.shape[0]):
        v = take(source, [row, first], (1, WIDTH), ACC)
        is_better = comes_before(v, best, LARGEST, ACC)
        best = xetile.where(is_better, v, best)
        place = xetile.where(is_better, row, place)
    put(place, matrix(out, number), [0, first])
    if values is not None:
        put(best, matrix(values, number), [0, first])


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

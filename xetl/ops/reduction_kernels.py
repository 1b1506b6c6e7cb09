"""The kernels behind sums, extremes and running sums: one or some rows to a program."""

from __future__ import annotations

from xetl import xetile
from xetl.ops.product import matrix, put
from xetl.xetile import Array, Vector, constexpr


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
        tile = xetile.init_tile(source, [row, column], (1, WIDTH))
        v = xetile.load_tile(tile, padding=FIRST).to(ACC)
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
    tile = xetile.init_tile(matrix(x, number), [row, 0], (ROWS, WIDTH))
    v = xetile.load_tile(tile, padding=FIRST).to(ACC)
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
        tile = xetile.init_tile(source, [row, column], (ROWS, WIDTH))
        v = xetile.load_tile(tile, padding=FIRST).to(ACC)
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
        tile = xetile.init_tile(source, [row, column], (1, WIDTH))
        v = xetile.load_tile(tile, padding=PADDING).to(ACC)
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
    tile = xetile.init_tile(matrix(x, number), [row, 0], (1, WIDTH))
    v = xetile.cumsum(xetile.load_tile(tile).to(ACC), 1, reverse=REVERSE)
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
        tile = xetile.init_tile(source, [row, first], (1, WIDTH))
        v = xetile.load_tile(tile).to(ACC)
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
        tile = xetile.init_tile(source, [row, first], (1, WIDTH))
        total = total + xetile.load_tile(tile).to(ACC)
        put(total, matrix(out, number), [row, first])

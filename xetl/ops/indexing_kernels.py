"""The kernels of ``gather``, ``scatter_add`` and ``index_select``."""

from __future__ import annotations

from xetl import xetile
from xetl.ops.matrices import matrix, put, take
from xetl.xetile import Array, constexpr

_PIECE = 16
"""Columns at a time in `gather_few`, so that registers hold their places. [measured]
Zen 4, 5000 rows of 20: 68 us, then 43."""


@xetile.kernel
def gather_rows(
    x: Array,
    index: Array,
    out: Array,
    ALONG: constexpr,
    WIDTH: constexpr,
    ROWS: constexpr,
) -> None:
    """``out[i, j] = x[index[i, j], j]``, or ``x[i, index[i, j]]`` along rows.

    All arrays are (..., m, n), or ``index`` is (n,), the same for all rows. A program
    computes WIDTH columns of ROWS rows.
    """
    first, begin = xetile.program_id(0) * WIDTH, xetile.program_id(1) * ROWS
    number = xetile.program_id(2)
    source, to = matrix(x, number), matrix(out, number)
    line = index if index.ndim == 1 else matrix(index, number)[begin]
    of_first = take(line, [first], (WIDTH,), index.dtype, -1)
    end = begin + 1 if ROWS == 1 else min(begin + ROWS, to.shape[0])
    for i in range(begin, end):
        at = of_first
        if index.ndim > 1:
            at = take(matrix(index, number)[i], [first], (WIDTH,), index.dtype, -1)
        if ALONG:
            found = xetile.load_gather(xetile.init_tile(source[i], [at]))
        else:
            columns = first + xetile.arange(WIDTH)
            found = xetile.load_gather(xetile.init_tile(source, [at, columns]))
        put(found, to[i], [first])


@xetile.kernel
def gather_few(
    x: Array,
    index: Array,
    out: Array,
    ALONG: constexpr,
    COLUMNS: constexpr,
    ROWS: constexpr,
) -> None:
    """`gather_rows` of ROWS rows of a few COLUMNS of the result, without vectors."""
    begin, number = xetile.program_id(0) * ROWS, xetile.program_id(1)
    source, to = matrix(x, number), matrix(out, number)
    places = index if index.ndim == 1 else matrix(index, number)
    for first in xetile.static_range(0, COLUMNS, _PIECE):
        for i in range(begin, min(begin + ROWS, to.shape[0])):
            for j in xetile.static_range(first, min(first + _PIECE, COLUMNS)):
                place = places[j] if index.ndim == 1 else places[i, j]
                to[i, j] = source[i, place] if ALONG else source[place, j]


@xetile.function
def convert(source: Array, at: int, to: Array, begin: int, SHAPE: constexpr) -> None:
    """``to[i, begin + j] = source[i, at + j]`` for j < SHAPE[1], in the dtype of to."""
    for i in range(0, source.shape[0], SHAPE[0]):
        put(take(source, [i, at], SHAPE, to.dtype), to, [i, begin])


@xetile.function
def add_columns(
    index: Array, source: Array, first: int, to: Array, begin: int, WIDTH: constexpr
) -> None:
    """``to[index[i, first + j], begin + j] += source[i, first + j]`` for j < WIDTH."""
    count = min(WIDTH, index.shape[1] - first)
    for i in range(0, index.shape[0]):
        places, added = index[i], source[i]
        for j in range(0, count):
            place = places[first + j]
            if place >= 0 and place < to.shape[0]:
                v = added[first + j].to(to.dtype)
                to[place, begin + j] = to[place, begin + j] + v


@xetile.function
def add_columns_together(
    index: Array, source: Array, first: int, to: Array, begin: int, WIDTH: constexpr
) -> None:
    """`add_columns` with a vector for the elements of a row."""
    columns = begin + xetile.arange(WIDTH)[None, :]
    for i in range(0, index.shape[0]):
        rows = take(index, [i, first], (1, WIDTH), xetile.i64, -1)
        v = take(source, [i, first], (1, WIDTH), to.dtype)
        at = xetile.init_tile(to, [rows, columns + rows * 0])
        xetile.store_scatter(xetile.load_gather(at) + v, None, at)


@xetile.kernel
def scatter_columns(
    x: Array | None,
    index: Array,
    source: Array,
    sums: Array | None,
    out: Array,
    WIDTH: constexpr,
    TOGETHER: constexpr,
) -> None:
    """``out = x; out[index[i, j], j] += source[i, j]``, one i after the other.

    A program has WIDTH columns to itself, so it needs no atomics, and sums are the same
    each time. Without ``x`` it adds to the elements of ``out``. With ``sums``,
    (programs, rows, WIDTH), it sums there, in the dtype of ``sums``. ``TOGETHER``:
    whether the elements of a row are a vector, as on a GPU. A CPU would wait for each
    row to be stored before it loads the next [measured: Zen 4, 8192 rows of 8: 260 us,
    then 76; 1000 of 64: 99, then 72].
    """
    program, number = xetile.program_id(0), xetile.program_id(1)
    places, added = matrix(index, number), matrix(source, number)
    to, first, begin = matrix(out, number), program * WIDTH, program * WIDTH
    if sums is not None:
        to, begin = sums[number * xetile.num_programs(0) + program], 0
    if x is not None:
        convert(matrix(x, number), first, to, begin, (8, WIDTH))
    if TOGETHER:
        add_columns_together(places, added, first, to, begin, WIDTH)
    else:
        add_columns(places, added, first, to, begin, WIDTH)
    if sums is not None:
        convert(to, begin, matrix(out, number), first, (8, WIDTH))


@xetile.function
def copy_rows(source: Array, at: int, to: Array, begin: int, SHAPE: constexpr) -> None:
    """``to[begin + i] = source[at + i]`` for i < SHAPE[0], in the dtype of ``to``."""
    for j in range(0, to.shape[1], SHAPE[1]):
        put(take(source, [at, j], SHAPE, to.dtype), to, [begin, j])


@xetile.function
def add_rows(
    index: Array, source: Array, at: int, to: Array, begin: int, BLOCK: constexpr
) -> None:
    """``to[begin + i, index[at + i, j]] += source[at + i, j]`` for i < BLOCK."""
    for i in range(0, min(BLOCK, index.shape[0] - at)):
        places, added, row = index[at + i], source[at + i], to[begin + i]
        for j in range(0, places.shape[0]):
            place = places[j]
            if place >= 0 and place < row.shape[0]:
                row[place] = row[place] + added[j].to(row.dtype)


@xetile.kernel
def scatter_rows(
    x: Array | None,
    index: Array,
    source: Array,
    sums: Array | None,
    out: Array,
    WIDTH: constexpr,
    BLOCK: constexpr,
    ROWS: constexpr,
) -> None:
    """``out[i] = x[i]; out[i, index[i, j]] += source[i, j]``; a program has ROWS rows.

    It copies a BLOCK of rows before it adds to them, since the processor waits if it
    loads a number soon after a vector with it was stored. Without ``x`` it adds to the
    elements of ``out``. With ``sums``, (programs, BLOCK, columns), it adds ``x`` and
    ``source`` there, in the dtype of ``sums``.
    """
    program, number = xetile.program_id(0), xetile.program_id(1)
    places, added = matrix(index, number), matrix(source, number)
    whole, first = matrix(out, number), program * ROWS
    for begin in range(first, min(first + ROWS, whole.shape[0]), BLOCK):
        if x is None:
            add_rows(places, added, begin, whole, begin, BLOCK)
        elif sums is None:
            copy_rows(matrix(x, number), begin, whole, begin, (BLOCK, WIDTH))
            add_rows(places, added, begin, whole, begin, BLOCK)
        else:
            to = sums[number * xetile.num_programs(0) + program]
            copy_rows(matrix(x, number), begin, to, 0, (BLOCK, WIDTH))
            add_rows(places, added, begin, to, 0, BLOCK)
            copy_rows(to, 0, whole, begin, (BLOCK, WIDTH))

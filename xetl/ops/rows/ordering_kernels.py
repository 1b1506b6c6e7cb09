"""The kernels of `sort` and `topk`: narrow rows, rows of one program, longer rows.

Longer rows are sorted by digits, from the last one on (Knuth, The Art of Computer
Programming, 5.2.5): programs count the digits of their blocks, and where each block
puts each digit follows from all counts.
"""

from __future__ import annotations

from xetl import xetile
from xetl.language.ops.order import order_key
from xetl.ops.matrices import matrix, put, take
from xetl.ops.rows.reduction_kernels import comes_before
from xetl.xetile import Array, Vector, constexpr

DIGITS = 256
"""The number of different digits: counts of a block stay in L1, and so do the lines
that a block is written to."""


@xetile.kernel
def first_of_rows(
    x: Array,
    values: Array | None,
    indices: Array,
    LARGEST: constexpr,
    PADDING: constexpr,
    K: constexpr,
    WIDTH: constexpr,
) -> None:
    """The K largest (least) elements of each row, and their indices; NaN comes last.

    Args:
        x: (..., m, n) with n up to WIDTH.
        values: (..., m, k) with k up to K; None: indices only.
        indices: the same.
        PADDING: an element that stays behind the row, because the order is stable.
    """
    row, number = xetile.program_id(0), xetile.program_id(1)
    source = matrix(x, number)
    tile = xetile.init_tile(source, [row, 0], (1, WIDTH))
    v = xetile.load_tile(tile, padding=PADDING)
    if not LARGEST:
        v = -v if v.dtype.is_float else ~v
    _, places = xetile.topk(v, K, 1)
    store_found(source, values, indices, places, [row, 0])


@xetile.function
def store_found(
    source: Array,
    values: Array | None,
    indices: Array,
    places: Vector,
    at: list[int],
) -> None:
    """Store indices of a row of this program, and the elements there."""
    number = xetile.program_id(1)
    put(places, matrix(indices, number), at)
    if values is not None:
        put(source[at[0], places], matrix(values, number), at)


@xetile.kernel
def order_narrow_rows(
    x: Array,
    values: Array,
    indices: Array,
    DESCENDING: constexpr,
    ACC: constexpr,
    COLUMNS: constexpr,
    K: constexpr,
    ROWS: constexpr,
) -> None:
    """`sort_rows` or `topk_rows` of rows of a few COLUMNS, of which a program has ROWS.

    The place of an element is the number of those of its row that come before it.

    Args:
        x: the line of all elements, so that no vector is for one row alone.
        values: (rows, K).
        indices: the same.
    """
    width: constexpr = COLUMNS * ROWS
    begin = xetile.program_id(0) * ROWS
    lane, first = xetile.arange(width), begin * COLUMNS
    column, rank = lane % COLUMNS, xetile.zeros((width,), xetile.i32)
    v = take(x, [first], (width,), ACC)
    for away in xetile.static_range(1, COLUMNS):
        before = take(x, [first - away], (width,), ACC)
        behind = take(x, [first + away], (width,), ACC)
        # Elements that are equal keep their order.
        is_later = ~comes_before(before, v, not DESCENDING, ACC)
        rank = rank + xetile.where((column >= away) & is_later, 1, 0)
        is_later = comes_before(v, behind, not DESCENDING, ACC)
        is_there = column < COLUMNS - away
        rank = rank + xetile.where(is_there & is_later, 1, 0)
    place = [begin + lane // COLUMNS, rank]
    is_wanted = (rank < K) & (lane < x.shape[0] - first)
    found = v.to(values.dtype)
    xetile.store_scatter(found, is_wanted, xetile.init_tile(values, place))
    to = xetile.init_tile(indices, place)
    xetile.store_scatter(column.to(indices.dtype), is_wanted, to)


@xetile.kernel
def order_columns(
    x: Array,
    values: Array,
    indices: Array,
    DESCENDING: constexpr,
    ACC: constexpr,
    COUNT: constexpr,
    K: constexpr,
    HEIGHT: constexpr,
    WIDTH: constexpr,
) -> None:
    """`order_narrow_rows` of columns: x is (..., COUNT, m), others are (..., K, m).

    HEIGHT is COUNT or more, and a program has WIDTH columns.
    """
    column, number = xetile.program_id(0) * WIDTH, xetile.program_id(1)
    source = matrix(x, number)
    v = take(source, [0, column], (HEIGHT, WIDTH), ACC)
    row, lane = xetile.arange(HEIGHT)[:, None], xetile.arange(WIDTH)[None, :]
    rank = xetile.zeros((HEIGHT, WIDTH), xetile.i32)
    for other in xetile.static_range(COUNT):
        w = take(source, [other, column], (1, WIDTH), ACC)
        # Elements that are equal keep their order.
        is_later = (row > other) & ~comes_before(w, v, not DESCENDING, ACC)
        is_later = is_later | ((row < other) & comes_before(v, w, not DESCENDING, ACC))
        rank = rank + xetile.where(is_later, 1, 0)
    is_wanted = (row < COUNT) & (rank < K) & (lane < source.shape[1] - column)
    place = [rank, column + lane]
    to = xetile.init_tile(matrix(values, number), place)
    xetile.store_scatter(v.to(values.dtype), is_wanted, to)
    at = row + xetile.zeros((HEIGHT, WIDTH), indices.dtype)
    to = xetile.init_tile(matrix(indices, number), place)
    xetile.store_scatter(at, is_wanted, to)


@xetile.kernel
def best_of_groups(
    x: Array,
    best: Array,
    LARGEST: constexpr,
    PADDING: constexpr,
    SIZE: constexpr,
    GROUPS: constexpr,
) -> None:
    """The key (`order_key`) of the best of each group of SIZE elements of a row."""
    row, number, part = xetile.program_id(0), xetile.program_id(1), xetile.program_id(2)
    tile = xetile.init_tile(
        matrix(x, number), [row, part * (GROUPS * SIZE)], (1, GROUPS * SIZE)
    )
    key = order_key(xetile.load_tile(tile, padding=PADDING), LARGEST)
    key = xetile.reshape(key, (GROUPS, SIZE)).min(1)
    put(xetile.reshape(key, (1, GROUPS)), matrix(best, number), [row, part * GROUPS])


@xetile.kernel
def take_groups(
    x: Array, groups: Array, taken: Array, PADDING: constexpr, SIZE: constexpr
) -> None:
    """Copy k groups of SIZE elements of each row.

    Args:
        x: (..., m, n).
        groups: (..., m, k), the numbers of the groups.
        taken: (..., m, k * SIZE).
    """
    row, number = xetile.program_id(0), xetile.program_id(1)
    which, to = matrix(groups, number), matrix(taken, number)
    for i in range(which.shape[1]):
        first = which[row, i] * SIZE
        v = take(matrix(x, number), [row, first], (1, SIZE), x.dtype, PADDING)
        put(v, to, [row, i * SIZE])


@xetile.kernel
def store_places(
    x: Array,
    found: Array,
    chosen: Array | None,
    values: Array | None,
    indices: Array,
    SIZE: constexpr,
    WIDTH: constexpr,
) -> None:
    """The elements of each row in the order found, and their indices.

    Args:
        x: (..., m, n).
        found: (..., m, k or more), i64: the lower half of each is an index.
        chosen: numbers of groups of SIZE elements, to which the indices refer; or None.
        values: (..., m, k); None: indices only.
        indices: the same.
    """
    row, number = xetile.program_id(0), xetile.program_id(1)
    first = xetile.program_id(2) * WIDTH
    places = take(matrix(found, number), [row, first], (1, WIDTH), xetile.i64)
    places = places & 0xFFFFFFFF
    if chosen is not None:
        groups = matrix(chosen, number)[row, places // SIZE].to(xetile.i64)
        places = groups * SIZE + places % SIZE
    store_found(matrix(x, number), values, indices, places, [row, first])


@xetile.kernel
def store_keys(
    x: Array, keys: Array, LARGEST: constexpr, HALF: constexpr, WIDTH: constexpr
) -> None:
    """A key of 32 bits, unsigned, and in the lower half an index, of each element.

    Args:
        x: (..., m, n).
        keys: (..., m, n), i64.
        HALF: 0: the lower half of a key of 64 bits; 1: its upper half, of the elements
            whose indices ``keys`` has already; None: a key of 32 bits.
    """
    row, number = xetile.program_id(0), xetile.program_id(1)
    first = xetile.program_id(2) * WIDTH
    source, to = matrix(x, number), matrix(keys, number)
    if HALF == 1:
        index = take(to, [row, first], (1, WIDTH), xetile.i64) & 0xFFFFFFFF
        v = source[row, index]
    else:
        index = first + xetile.arange(WIDTH)[None, :].to(xetile.i64)
        v = take(source, [row, first], (1, WIDTH), x.dtype)
    key = order_key(v, LARGEST).to(xetile.i64)
    key = key >> 32 if HALF == 1 else key
    key = key if HALF == 0 else key ^ 0x80000000
    put((key << 32) | index, to, [row, first])


@xetile.kernel
def count_digits(keys: Array, counts: Array, shift: int, BLOCK: constexpr) -> None:
    """Count the digits of a block of each row: bits ``shift`` to ``shift`` + 7."""
    row, number = xetile.program_id(0), xetile.program_id(1)
    part = xetile.program_id(2)
    source, to = matrix(keys, number), matrix(counts, number)
    first, bin = part * BLOCK, part * DIGITS
    put(xetile.zeros((1, DIGITS), counts.dtype), to, [row, bin])
    for i in range(first, min(source.shape[1], first + BLOCK)):
        digit = (source[row, i] >> shift) & (DIGITS - 1)
        to[row, bin + digit] = to[row, bin + digit] + 1


@xetile.kernel
def place_digits(counts: Array) -> None:
    """Replace the counts of all blocks by the places of the first element of each."""
    row, number = xetile.program_id(0), xetile.program_id(1)
    to = matrix(counts, number)
    total = xetile.zeros((1, DIGITS), counts.dtype)
    for i in range(0, to.shape[1], DIGITS):
        count = take(to, [row, i], (1, DIGITS), counts.dtype)
        put(total, to, [row, i])
        total = total + count
    before = xetile.cumsum(total, 1) - total
    for i in range(0, to.shape[1], DIGITS):
        put(before + take(to, [row, i], (1, DIGITS), counts.dtype), to, [row, i])


@xetile.kernel
def move_by_digits(
    keys: Array, places: Array, moved: Array, shift: int, BLOCK: constexpr
) -> None:
    """Move the keys of a block of each row to the places of their digits."""
    row, number = xetile.program_id(0), xetile.program_id(1)
    part = xetile.program_id(2)
    source, to, at = matrix(keys, number), matrix(moved, number), matrix(places, number)
    first, bin = part * BLOCK, part * DIGITS
    for i in range(first, min(source.shape[1], first + BLOCK)):
        key = source[row, i]
        digit = (key >> shift) & (DIGITS - 1)
        place = at[row, bin + digit]
        to[row, place] = key
        at[row, bin + digit] = place + 1

"""Transpose a square of 32-bit elements in registers: 16 x 16 or 8 x 8.

Two rounds interleave inside 128-bit lanes (`unpck*`), the rest move whole lanes: these
are the cheap shuffles of x86, log2(n) for each of the n registers.
"""

from collections.abc import Sequence

from xetl_cpu.llvm import Builder, Value, shuffle

__all__ = ["transpose_square"]


def transpose_square(builder: Builder, rows: Sequence[Value]) -> list[Value]:
    """The columns of ``rows``: n vectors of n 32-bit lanes each, n = 8 or 16."""
    size = len(rows)
    quads: list[list[Value]] = []
    for first in range(0, size, 4):
        quads.append(_transpose_quads(builder, rows[first : first + 4]))
    columns: list[Value] = []
    # quads[g][c], 128-bit lane L, holds column 4 L + c of rows 4 g to 4 g + 3.
    by_column = [[quad[c] for quad in quads] for c in range(4)]
    gathered = [_transpose_lanes(builder, vectors) for vectors in by_column]
    for lane in range(size // 4):
        columns += [gathered[c][lane] for c in range(4)]
    return columns


def _transpose_quads(builder: Builder, rows: Sequence[Value]) -> list[Value]:
    """Transpose the 4 x 4 squares that four rows form in each 128-bit lane."""
    size = rows[0].type.count
    single = [(lane, lane + size) for lane in range(size)]
    low1 = [x for lane in range(0, size, 4) for p in (0, 1) for x in single[lane + p]]
    high1 = [x for lane in range(0, size, 4) for p in (2, 3) for x in single[lane + p]]
    starts = range(0, size, 4)
    low2 = [s + x for s in starts for x in (0, 1, size, size + 1)]
    high2 = [s + x for s in starts for x in (2, 3, size + 2, size + 3)]
    a, b, c, d = rows
    ab_low, ab_high = shuffle(builder, a, b, low1), shuffle(builder, a, b, high1)
    cd_low, cd_high = shuffle(builder, c, d, low1), shuffle(builder, c, d, high1)
    return [
        shuffle(builder, ab_low, cd_low, low2),
        shuffle(builder, ab_low, cd_low, high2),
        shuffle(builder, ab_high, cd_high, low2),
        shuffle(builder, ab_high, cd_high, high2),
    ]


def _transpose_lanes(builder: Builder, vectors: Sequence[Value]) -> list[Value]:
    """Transpose the square of 128-bit lanes: 4 vectors of 4, or 2 of 2."""
    if len(vectors) == 2:
        a, b = vectors
        return [_pick(builder, a, b, (0, 2)), _pick(builder, a, b, (1, 3))]
    a, b, c, d = vectors
    even, odd = (0, 2, 4, 6), (1, 3, 5, 7)
    ab_even, ab_odd = _pick(builder, a, b, even), _pick(builder, a, b, odd)
    cd_even, cd_odd = _pick(builder, c, d, even), _pick(builder, c, d, odd)
    return [
        _pick(builder, ab_even, cd_even, even),
        _pick(builder, ab_odd, cd_odd, even),
        _pick(builder, ab_even, cd_even, odd),
        _pick(builder, ab_odd, cd_odd, odd),
    ]


def _pick(builder: Builder, a: Value, b: Value, lanes: Sequence[int]) -> Value:
    """Put 128-bit ``lanes`` of ``a`` and ``b``, laid end to end, side by side."""
    elements = [4 * lane + element for lane in lanes for element in range(4)]
    return shuffle(builder, a, b, elements)

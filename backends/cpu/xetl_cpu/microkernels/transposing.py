"""Transposes a square of elements: as many vectors as each has lanes, in registers.

Source: S. G. Eklundh, A Fast Computer Method for Matrix Transposing, IEEE Transactions
on Computers C-21(7), 1972.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Vector = TypeVar("Vector")

PART = 16
"""Bytes of the parts within which one instruction interleaves two vectors."""


def transposed(
    vectors: Sequence[Vector],
    width: int,
    shuffle: Callable[[Vector, Vector, list[int]], Vector],
) -> list[Vector]:
    """Return vectors of which vector i has lane i of each; as many as lanes, 2^n.

    Args:
        vectors: the square.
        width: bytes of an element.
        shuffle: returns a vector with these lanes of two others, laid end to end.
    """
    count, rows = len(vectors), list(vectors)
    part = min(count, PART // width)

    def shuffled(n: int, other: int, *masks: list[int]) -> list[Vector]:
        return [shuffle(rows[n], rows[other], mask) for mask in masks]

    for step in [1 << n for n in range(count.bit_length() - 1) if 1 << n >= part]:
        upper = [count + n - step if n & step else n for n in range(count)]
        lower = [count + n if n & step else n + step for n in range(count)]
        for n in [n for n in range(count) if not n & step]:
            rows[n], rows[n + step] = shuffled(n, n + step, upper, lower)
    half = part // 2
    places = [first + n for first in range(0, count, part) for n in range(half)]
    low = [n for place in places for n in (place, count + place)]
    high = [n + half for n in low]
    for _ in range(part.bit_length() - 1):
        pairs = [shuffled(n, n + half, low, high) for n in places]
        rows = [row for pair in pairs for row in pair]
    return rows

"""Where the pixels of a convolution are, and of its gradient by the input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from typing import NamedTuple, TypeAlias

from xetl.language.ops import cdiv

Pair: TypeAlias = tuple[int, int]
Slices: TypeAlias = tuple[slice, slice]

ALL = slice(None), slice(None)


@dataclass(frozen=True)
class Geometry:
    """Where the pixels of a convolution are.

    Attributes:
        taps: rows and columns of its kernel.
        stride: pixels between two windows.
        dilation: pixels between two taps.
        first: where the first pixel of the input is in the padded one.
        result: rows and columns of the result.
        chosen: which rows and columns of the weight its kernel has.
        where: which pixels of an image the result is.
    """

    taps: Pair
    stride: Pair
    dilation: Pair
    first: Pair
    result: Pair
    chosen: Slices = ALL
    where: Slices = ALL

    @property
    def padded(self) -> Pair:
        """Rows and columns of the padded input that windows see."""
        spans = zip(self.result, self.stride, self.dilation, self.taps)
        rows, columns = ((n - 1) * s + d * (k - 1) + 1 for n, s, d, k in spans)
        return rows, columns

    @property
    def is_product(self) -> bool:
        """Whether it is one of matrices, of the pixels as they are."""
        numbers = *self.taps, *self.stride
        is_one = all(n == 1 for n in numbers) and self.first == (0, 0)
        return is_one and self.where == ALL


class _Phase(NamedTuple):
    """What one dimension of a phase of a derivative is: see `Geometry`."""

    taps: int
    dilation: int
    first: int
    result: int
    chosen: slice
    where: slice


def _phases_of(
    size: int, taps: int, stride: int, dilation: int, padding: int
) -> Iterator[_Phase]:
    """The pixels of an input that meet the same taps, for each remainder.

    A pixel u meets tap k of pixel i of the result if ``u + padding = i * stride +
    k * dilation``. So remainders by the stride decide which taps it meets: each
    ``stride / gcd``-th. Along those, i falls by ``dilation / gcd`` from tap to tap.
    """
    common = gcd(stride, dilation)
    between = stride // common
    for start in range(min(stride, size)):
        rest = (start + padding) % stride
        firsts = (k for k in range(taps) if (k * dilation - rest) % stride == 0)
        tap = next(firsts, taps)
        count = cdiv(taps - tap, between)
        down = dilation // common
        # Where i is of the first pixel and the first tap.
        at = (start + padding - tap * dilation) // stride
        yield _Phase(
            count,
            down,
            (count - 1) * down - at,
            cdiv(size - start, stride),
            slice(tap, None, between),
            slice(start, None, stride),
        )


def phases(size: Pair, taps: Pair, how: tuple[Pair, Pair, Pair]) -> list[Geometry]:
    """The convolutions that the gradient by an input is.

    Args:
        size: rows and columns of the input.
        taps: of the kernel.
        how: stride, dilation, and the padding before the first pixel.
    """
    rows, columns = (_phases_of(*each) for each in zip(size, taps, *how))
    across = list(columns)
    return [
        Geometry(
            (one.taps, other.taps),
            (1, 1),
            (one.dilation, other.dilation),
            (one.first, other.first),
            (one.result, other.result),
            (one.chosen, other.chosen) if how[0] != (1, 1) else ALL,
            (one.where, other.where) if how[0] != (1, 1) else ALL,
        )
        for one in rows
        for other in across
    ]

"""The geometry of a convolution, and of the gradient of its input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import gcd
from typing import Any, NamedTuple, TypeAlias

from xetl.language.ops import cdiv

Pair: TypeAlias = tuple[int, int]
Slices: TypeAlias = tuple[slice, slice]

ALL = slice(None), slice(None)


def evenly(extent: int, most: int) -> int:
    """Return the size of the fewest equal parts of an extent, at most ``most``."""
    return cdiv(extent, cdiv(extent, most))


def divisors(number: int, most: int) -> list[int]:
    """Return the divisors of a number that are at most ``most``, the largest last."""
    return [n for n in range(1, min(number, most) + 1) if number % n == 0]


@dataclass(frozen=True)
class Geometry:
    """The geometry of a convolution: the pixels that each tap reads and writes.

    Attributes:
        taps: rows and columns of the kernel.
        stride: pixels between two windows.
        dilation: pixels between two taps.
        first: the position of the input's first pixel in the padded input.
        result: rows and columns of the result.
        chosen: the rows and columns of the weight that the kernel has.
        where: the pixels of the output image that the result is stored to.
    """

    taps: Pair
    stride: Pair
    dilation: Pair
    first: Pair
    result: Pair
    chosen: Slices = ALL
    where: Slices = ALL

    @property
    def stencil(self) -> tuple[Pair, Pair, Pair]:
        """What kernels know at compile time about the pixels that a window reads."""
        return self.taps, self.stride, self.dilation

    @property
    def padded(self) -> Pair:
        """Rows and columns of the padded input that windows read."""
        spans = zip(self.result, self.stride, self.dilation, self.taps)
        rows, columns = ((n - 1) * s + d * (k - 1) + 1 for n, s, d, k in spans)
        return rows, columns

    @property
    def is_product(self) -> bool:
        """Whether it is a product of the weight and the pixels in place."""
        numbers = *self.taps, *self.stride
        is_one = all(n == 1 for n in numbers) and self.first == (0, 0)
        return is_one and self.where == ALL

    @property
    def has_patches(self) -> bool:
        """Whether each pixel is in one window, as where a vision transformer begins."""
        is_split = self.taps == self.stride and self.first == (0, 0)
        return is_split and self.dilation == (1, 1) and self.taps != (1, 1)


class _Phase(NamedTuple):
    """One dimension of a phase of a derivative: what `Geometry` has of both."""

    taps: int
    stride: int
    dilation: int
    first: int
    result: int
    chosen: slice
    where: slice


def _phases_of(
    size: int, taps: int, stride: int, dilation: int, padding: int
) -> Iterator[_Phase]:
    """Yield the phases of an input: the pixels that meet the same taps.

    A pixel u meets tap k of pixel i of the result if ``u + padding = i * stride +
    k * dilation``. So the remainder of u by the stride decides which taps it meets:
    every ``stride / gcd``-th. From each of these to the next, i falls by ``dilation /
    gcd``.
    """
    common = gcd(stride, dilation)
    between = stride // common
    for start in range(min(stride, size)):
        rest = (start + padding) % stride
        firsts = (k for k in range(taps) if (k * dilation - rest) % stride == 0)
        tap = next(firsts, taps)
        count = cdiv(taps - tap, between)
        down = dilation // common
        # The pixel i of the first pixel u and the first tap.
        at = (start + padding - tap * dilation) // stride
        yield _Phase(
            count,
            1,
            down,
            (count - 1) * down - at,
            cdiv(size - start, stride),
            slice(tap, None, between) if stride > 1 else slice(None),
            slice(start, None, stride) if stride > 1 else slice(None),
        )


def phases(size: Pair, taps: Pair, how: tuple[Pair, Pair, Pair]) -> list[Geometry]:
    """Return the convolutions that compute the gradient of an input.

    Args:
        size: rows and columns of the input.
        taps: rows and columns of the kernel.
        how: stride, dilation, and the padding before the first pixel.
    """
    rows, columns = (_phases_of(*each) for each in zip(size, taps, *how))
    pairs: Any = product(rows, columns)
    return [Geometry(*zip(one, other)) for one, other in pairs]

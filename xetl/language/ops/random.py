"""Counter-based random numbers: equal seeds and offsets give equal numbers everywhere.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011),
Philox4x32 with 10 rounds; the mapping to floats is Triton's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xetl.language.dtypes import DType, bf16, f8e4m3, f16, f32, i32, u32
from xetl.language.operation import composite
from xetl.language.ops.elementwise import (
    cos,
    log,
    maximum,
    minimum,
    pi,
    sin,
    sqrt,
    umulhi,
    where,
)
from xetl.language.ops.program import static_assert, static_range

if TYPE_CHECKING:
    from xetl.language.values import Vector

__all__ = ["philox", "rand", "randint", "randint4x", "randn", "randn4x"]


@composite
def philox(
    seed: int, c0: Vector, c1: Vector, c2: Vector, c3: Vector, n_rounds: int = 10
) -> tuple[Vector, Vector, Vector, Vector]:
    """Philox4x32 of a counter of four 32-bit words and a key of 64 bits.

    Args:
        seed: the key, an int known at run time or at compile time.
        c0: the first word of the counter, u32 as the others.
        c1: the second word.
        c2: the third word.
        c3: the fourth word.
        n_rounds: 10 is the standard; 7 rounds pass the usual tests as well.
    """
    k0, k1 = seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF
    for _ in static_range(n_rounds):
        old0, old2 = c0, c2
        c0 = umulhi(0xCD9E8D57, old2) ^ c1 ^ k0
        c2 = umulhi(0xD2511F53, old0) ^ c3 ^ k1
        c1 = 0xCD9E8D57 * old2
        c3 = 0xD2511F53 * old0
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


@composite
def randint4x(
    seed: int, offsets: Vector, n_rounds: int = 10
) -> tuple[Vector, Vector, Vector, Vector]:
    """Four vectors of uniform u32 numbers; each has one number for each offset.

    Args:
        seed: an int.
        offsets: a vector of integers; each integer gives its own numbers.
        n_rounds: rounds of Philox.
    """
    static_assert(
        offsets.dtype.is_integer,
        f"offsets of random numbers must be integers, not {offsets.dtype}",
    )
    low = offsets.to(u32)
    zero = low ^ low
    high = zero
    if offsets.dtype.bits == 64:
        high = (offsets >> 32).to(u32)
    return philox(seed, low, high, zero, zero, n_rounds)


@composite
def randint(seed: int, offsets: Vector, n_rounds: int = 10) -> Vector:
    """A uniform u32 number for each offset."""
    return randint4x(seed, offsets, n_rounds)[0]


@composite
def _uniform(bits: Vector) -> Vector:
    """Return 32 random bits as a float in [0, 1)."""
    signed = bits.to(i32, bitcast=True)
    return where(signed < 0, -signed - 1, signed) * 4.6566127342e-10


@composite
def _narrowed(x: Vector, dtype: DType) -> Vector:
    """Round ``x`` < 1 to ``dtype``; instead of 1 return the next smaller number."""
    static_assert(dtype.is_float, f"random numbers of a float dtype, not {dtype}")
    if dtype.bits >= 32:
        return x.to(dtype)
    digits = 11 if dtype == f16 else 8 if dtype == bf16 else 4 if dtype == f8e4m3 else 3
    return minimum(x, 1.0 - 2.0**-digits).to(dtype)


@composite
def rand(
    seed: int, offsets: Vector, n_rounds: int = 10, *, dtype: DType = f32
) -> Vector:
    """A uniform number in [0, 1) for each offset.

    Args:
        seed: an int.
        offsets: a vector of integers; each integer gives its own number.
        n_rounds: rounds of Philox.
        dtype: a float dtype; the f32 number is rounded to it, but never to 1.
    """
    return _narrowed(_uniform(randint(seed, offsets, n_rounds)), dtype)


@composite
def _normal(a: Vector, b: Vector) -> tuple[Vector, Vector]:
    """Return two normally distributed numbers, from two uniform ones (Box-Muller)."""
    radius = sqrt(-2.0 * log(maximum(a, 1.0e-7)))
    return radius * cos(2.0 * pi * b), radius * sin(2.0 * pi * b)


@composite
def randn(
    seed: int, offsets: Vector, n_rounds: int = 10, *, dtype: DType = f32
) -> Vector:
    """A normally distributed number for each offset: mean 0, variance 1."""
    one, other, _, _ = randint4x(seed, offsets, n_rounds)
    return _normal(_uniform(one), _uniform(other))[0].to(dtype)


@composite
def randn4x(
    seed: int, offsets: Vector, n_rounds: int = 10
) -> tuple[Vector, Vector, Vector, Vector]:
    """Four vectors of normally distributed f32 numbers, one each for each offset."""
    one, two, three, four = randint4x(seed, offsets, n_rounds)
    a, b = _normal(_uniform(one), _uniform(two))
    c, d = _normal(_uniform(three), _uniform(four))
    return a, b, c, d

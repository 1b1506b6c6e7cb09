"""Elements of arrays are computed in f64 and rounded to f32 once, or as if so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xetl import xetile

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda a, b: a + b,
    "difference": lambda a, b: a - b,
    "product": lambda a, b: a * b,
    "quotient": lambda a, b: a / b,
}


@xetile.kernel
def combined(
    A: xetile.Array, B: xetile.Array, C: xetile.Array, OF: xetile.constexpr
) -> None:
    for i in range(0, C.shape[0]):
        C[i] = OF(A[i], B[i])


def any_floats(rng: np.random.Generator, count: int) -> Any:
    """Of all bits, half of them with exponents near those of subnormal numbers."""
    bits = rng.integers(0, 1 << 32, count, np.uint32)
    bits[::2] &= np.uint32(0x81FFFFFF)
    return bits.view(np.float32)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_they_are_rounded_once(name: str, backend: str) -> None:
    of = OPERATIONS[name]
    rng = np.random.default_rng(7)
    count = 4096 if backend == "cpu" else 64
    a, b = any_floats(rng, count), any_floats(rng, count)[::-1].copy()
    c = np.zeros_like(a)
    combined[1](a, b, c, OF=of, backend=backend)
    with np.errstate(all="ignore"):
        expected = of(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(c, expected)

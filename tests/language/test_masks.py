"""Masks are counted by sums and running sums, and choose where elements are stored."""

import numpy as np
import pytest

from xetl import xetile
from xetl.xetile import cdiv, constexpr

TEXT = b"aB c"


@xetile.kernel(grid=lambda a: cdiv(a.X.shape[0], a.N))
def compacted(X, Y, Counts, Left, N: constexpr):
    """Elements above 2, without the others between them; how many are still to come."""
    block, i = xetile.program_id(0), xetile.arange(N)
    x = X[block * N + i]
    kept = x > 2
    Y[block, xetile.where(kept, xetile.cumsum(kept) - 1, -1)] = x
    Counts[block] = kept.sum()
    Left[block, i] = xetile.cumsum(kept[None, :], 1, reverse=True)[0]


@pytest.mark.parametrize("backend", ["cpu", "reference", "xegpu"])
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4"])
def test_cumsum_of_a_mask_counts(dtype: str, backend: str) -> None:
    x = np.random.default_rng(3).integers(0, 6, 75).astype(dtype)
    y, counts, left = (
        np.zeros(shape, t)
        for shape, t in (((3, 32), dtype), (3, "i8"), ((3, 32), "i4"))
    )
    compacted(x, y, counts, left, 32, backend=backend)
    for k in range(3):
        part = x[32 * k : 32 * k + 32]
        kept = part[part > 2]
        assert counts[k] == len(kept)
        assert np.array_equal(y[k], np.pad(kept, (0, 32 - len(kept))))
        later = (part > 2)[::-1].cumsum()[::-1]
        assert np.array_equal(left[k], np.pad(later, (0, 32 - len(part))))


@xetile.kernel
def letters(S, Out):
    """Compare with characters and bytes that are known when compiling."""
    i, found = xetile.arange(8), 0
    c = S[i]
    Out[i] = xetile.where((c >= ord("a")) & (c <= ord("z")), c - 32, c)
    for k in xetile.static_range(len(TEXT)):
        found += int(S[k] == TEXT[k])
    Out[7] = found


@pytest.mark.parametrize("backend", ["cpu", "reference", "xegpu"])
def test_characters_are_numbers(backend: str) -> None:
    text, out = np.frombuffer(b"azB{`d ", np.uint8).copy(), np.zeros(8, np.uint8)
    letters[1](text, out, backend=backend)
    assert out.tobytes() == b"AZB{`D \x01"

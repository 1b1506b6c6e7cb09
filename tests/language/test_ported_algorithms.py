"""Algorithms that are no layers of networks agree with NumPy on each backend."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import ported_algorithms as kernels
import pytest

ALL = pytest.mark.parametrize("backend", ["reference", "cpu", "xegpu"])
RNG = np.random.default_rng(11)


@ALL
def test_running_sums(backend: str) -> None:
    x = RNG.integers(-9, 9, 75).astype(np.int32)
    y = np.empty_like(x)
    state = [np.zeros(5, np.int32) for _ in range(3)]
    kernels.running_sums(x, y, *state, N=16, backend=backend)
    assert np.array_equal(y, np.cumsum(x))


def test_programs_that_look_back_do_not_race() -> None:
    x = np.ones(75, np.int32)
    state = [np.zeros(5, np.int32) for _ in range(3)]
    kernels.running_sums.interpret(x, x.copy(), *state, N=16)


@ALL
def test_counted(backend: str) -> None:
    keys = RNG.integers(0, 20, 45).astype(np.int32)
    table, counts = np.full(32, -1, np.int32), np.zeros(32, np.int32)
    kernels.counted(keys, table, counts, N=16, backend=backend)
    used = table >= 0
    assert len(np.unique(table[used])) == used.sum()
    wanted = np.bincount(keys, minlength=20)
    assert np.array_equal(counts, np.where(used, wanted[table], 0))


@ALL
def test_chacha(backend: str) -> None:
    """The block of RFC 8439, 2.3.2, and those that follow it."""
    state = np.array([0x61707865, 0x3320646E, 0x79622D32, 0x6B206574], np.uint32)
    rest = [1, 0x09000000, 0x4A000000, 0]
    key = np.arange(32, dtype=np.uint8).view("<u4")
    state = np.concatenate([state, key, np.array(rest, np.uint32)]).astype(np.uint32)
    out = np.empty((16, 11), np.uint32)
    kernels.chacha(state, out, N=8, backend=backend)
    known = "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
    known += "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    assert out[:, 0].astype("<u4").tobytes().hex() == known
    for block in range(1, 11):
        alone, at = np.empty((16, 1), np.uint32), state.copy()
        at[12] += block
        kernels.chacha(at, alone, N=8, backend="reference")
        assert np.array_equal(out[:, block], alone[:, 0])


@ALL
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_lu(dtype: str, backend: str) -> None:
    a = RNG.standard_normal((2, 7, 7)).astype(dtype)
    found, order = a.copy(), np.empty((2, 7), np.int32)
    kernels.lu(found, order, N=8, backend=backend)
    lower, upper = np.tril(found, -1) + np.eye(7), np.triu(found)
    assert np.abs(lower).max() <= 1
    for b in range(2):
        np.testing.assert_allclose((lower @ upper)[b], a[b][order[b]], 1e-4, 1e-5)


@ALL
def test_exponential(backend: str) -> None:
    a = RNG.standard_normal((2, 7, 7)).astype(np.float32)
    a[1] /= 50
    e = np.empty_like(a)
    kernels.exponential(a, e, N=8, TERMS=8, backend=backend)
    values, vectors = np.linalg.eig(a.astype(complex))
    wanted = (vectors * np.exp(values)[:, None]) @ np.linalg.inv(vectors)
    np.testing.assert_allclose(e, wanted.real, 1e-4, 1e-4 * np.abs(wanted).max())


def distance(a: np.ndarray, b: np.ndarray) -> int:
    row = list(range(len(b) + 1))
    for i, one in enumerate(a):
        before, row[0] = row[0], i + 1
        for j, other in enumerate(b):
            best = min(row[j], row[j + 1]) + 1
            before, row[j + 1] = row[j + 1], min(best, before + int(one != other))
    return row[-1]


@ALL
def test_edit_distance(backend: str) -> None:
    a = RNG.integers(97, 100, (3, 13)).astype(np.uint8)
    b = RNG.integers(97, 100, (3, 18)).astype(np.uint8)
    out = np.empty(3, np.int32)
    kernels.edit_distance(a, b, out, N=16, backend=backend)
    assert out.tolist() == [distance(x, y) for x, y in zip(a, b)]


@ALL
def test_accepted(backend: str) -> None:
    draft, target = RNG.random((2, 5, 4, 21), np.float32)
    tokens, draws = RNG.integers(0, 21, (5, 4)), RNG.random((5, 4), np.float32)
    draws[0] = 0  # all are accepted
    out, counts = np.full((5, 4), -1, np.int32), np.empty(5, np.int64)
    arrays = (draft, target, tokens, draws, out, counts)
    kernels.accepted(*arrays, N=32, backend=backend)
    for b in range(5):
        share = [p[b][np.arange(4), tokens[b]] for p in (draft, target)]
        refused = np.flatnonzero(draws[b] * share[0] > share[1])
        wanted = tokens[b].copy()
        if len(refused):
            k = refused[0]
            wanted[k] = (target - draft)[b, k].argmax()
            wanted[k + 1 :] = -1
        assert counts[b] == (refused[0] if len(refused) else 4)
        assert np.array_equal(out[b], wanted)


@ALL
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_moments(dtype: type, backend: str) -> None:
    """A mean of 1000 and a variance of 1: the difference of squares has no digits."""
    x = (RNG.standard_normal((3, 75)) + 1000).astype(dtype)
    mean, var = np.empty((2, 3), np.float32)
    kernels.moments(x, mean, var, N=16, backend=backend)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(mean, wide.mean(1), 1e-6)
    np.testing.assert_allclose(var, wide.var(1), 1e-3, 1e-6)

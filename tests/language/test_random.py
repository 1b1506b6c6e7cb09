"""Random numbers: the known answers of Philox, and the same numbers everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from xetl import xetile
from xetl.errors import CompileError
from xetl.xetile import constexpr, f32, i64, u32

ALL = pytest.mark.parametrize("backend", ["reference", "cpu", "xegpu"])

# Counter, key and result: Random123's kat_vectors, "philox4x32 10".
KNOWN = [
    ((0, 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        (0xFFFFFFFF,) * 4,
        0xFFFFFFFF_FFFFFFFF,
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        0x299F31D0_A4093822,
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@xetile.kernel(grid=1)
def philox(COUNTER, OUT, seed: int):
    c = xetile.load_tile(xetile.init_tile(COUNTER, [0, 0], (4, 16)))
    words = xetile.philox(seed, c[0], c[1], c[2], c[3])
    for i in xetile.static_range(4):
        xetile.store_tile(words[i], xetile.init_tile(OUT[i], [0], (16,)))


@ALL
@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_known_answers(counter, key, answer, backend: str) -> None:
    words = np.repeat(np.array(counter, np.uint32)[:, None], 16, 1)
    out = np.zeros_like(words)
    signed = key - (1 << 64) if key >> 63 else key
    philox(words, out, signed, backend=backend)
    np.testing.assert_array_equal(out[:, 3], np.array(answer, np.uint32))


@xetile.kernel(grid=lambda m: xetile.cdiv(m.OUT.shape[0], m.N))
def draws(OUT, HIGH, NORMAL, seed: int, N: constexpr):
    at = xetile.program_id(0) * N + xetile.arange(N)
    wide = at.to(i64) + 5_000_000_000
    start = [xetile.program_id(0) * N]
    xetile.store_tile(xetile.rand(seed, at), xetile.init_tile(OUT, start, (N,)))
    high = xetile.randint(seed, wide)
    xetile.store_tile(high.to(u32), xetile.init_tile(HIGH, start, (N,)))
    xetile.store_tile(xetile.randn(seed, at), xetile.init_tile(NORMAL, start, (N,)))


def drawn(n: int, backend: str, seed: int = 42):
    out = (
        np.zeros(4096, np.float32),
        np.zeros(4096, np.uint32),
        np.zeros(4096, np.float32),
    )
    draws(*out, seed, N=n, backend=backend)
    return out


@pytest.mark.parametrize("backend", ["cpu", "xegpu"])
@pytest.mark.parametrize("n", [64, 128])
def test_the_same_everywhere(n: int, backend: str) -> None:
    """On each backend, whatever the tile; normal numbers within their rounding."""
    uniform, high, normal = drawn(n, backend)
    expected = drawn(1024, "reference")
    np.testing.assert_array_equal(uniform, expected[0])
    np.testing.assert_array_equal(high, expected[1])
    np.testing.assert_allclose(normal, expected[2], rtol=1e-4, atol=1e-5)


def test_distributions() -> None:
    """Mean, variance and range; other seeds give other numbers."""
    uniform, high, normal = drawn(1024, "cpu")
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.02
    assert abs(uniform.var() - 1 / 12) < 0.01
    assert abs(normal.mean()) < 0.06
    assert abs(normal.var() - 1) < 0.1
    assert abs(high.astype(np.float64).mean() / 2**32 - 0.5) < 0.02
    assert not np.array_equal(uniform, drawn(1024, "cpu", seed=43)[0])


@xetile.kernel(grid=1)
def narrow_draws(OUT, N: constexpr):
    drawn = xetile.rand(42, xetile.arange(N), dtype=OUT.dtype)
    xetile.store_tile(drawn, xetile.init_tile(OUT, [0], (N,)))


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f8e4m3", "f8e5m2", "f32", "f64"])
def test_rounding_does_not_reach_one(dtype: str, backend: str) -> None:
    out = np.zeros(20_000, xetile.DType.of(dtype).numpy)
    narrow_draws(out, 20_000, backend=backend)
    wide = np.zeros(20_000, np.float32)
    narrow_draws(wide, 20_000, backend=backend)
    drawn = out.astype(np.float64)
    assert 0.8 < drawn.max() < 1
    few = wide < 0.8
    np.testing.assert_array_equal(out[few], wide[few].astype(out.dtype))


@xetile.kernel(grid=1)
def float_offsets(OUT):
    xetile.store_tile(
        xetile.rand(1, xetile.zeros((8,), f32)), xetile.init_tile(OUT, [0], (8,))
    )


def test_offsets_are_integers() -> None:
    with pytest.raises(CompileError, match="must be integers, not f32"):
        float_offsets(np.zeros(8, np.float32))

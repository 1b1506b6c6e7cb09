"""Floats of eight bits in the matrix unit, where a device has such products.

The device of the tests is given those of `cri`, which are emulated as all others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launched import aligned

from xetl import devices, xetile
from xetl.settings import config
from xetl.xetile import constexpr, f32

E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


@xetile.kernel
def gemm(A, B, C, BM: constexpr = 32, BN: constexpr = 32, BK: constexpr = 64):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN)))
        acc += a @ b
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@xetile.kernel
def square(A, C, N: constexpr = 32):
    """A side that no message brings: codes that were computed."""
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (N, N))).to(xetile.f8e4m3)
    xetile.store_tile(a @ a.T, xetile.init_tile(C, [0, 0], (N, N)))


@pytest.fixture
def with_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    new = replace(devices.DEVICES["opencl"], matrix=devices.DEVICES["cri"].matrix)
    monkeypatch.setitem(devices.DEVICES, "opencl", new)  # pyright: ignore[reportArgumentType]


def codes(dtype: Any, shape: tuple[int, int], seed: int) -> Any:
    """Numbers of all sizes below 16, subnormal ones as well."""
    numbers = np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)
    found = aligned(shape, np.uint8).view(dtype)
    found[...] = numbers.view(dtype)
    is_large = ~(np.abs(found.astype(np.float32)) < 16)
    found[is_large] = 1.5
    return found


def names(kernel: Any, *args: Any) -> set[str]:
    """Of the products in the IR of lanes."""
    text = kernel.ir("lanes", *args, backend="xegpu", target="opencl")
    words = ("e4m3", "e5m2", "f16")
    return {word for word in words if f'_type = "{word}"' in text}


@pytest.mark.parametrize(
    ("pair", "sums"),
    [
        ((E4M3, E4M3), "ordered"),
        ((E5M2, E4M3), "ordered"),
        ((E4M3, E5M2), "ordered"),
        ((E5M2, E4M3), "pairwise"),
    ],
)
def test_products(
    with_codes: None, pair: tuple[Any, Any], sums: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(config.assigned, "dpas", sums)
    a, b = codes(pair[0], (64, 128), 1), codes(pair[1], (128, 64), 2)
    c, kernel = aligned((64, 64)), xetile.kernel(gemm.fn)
    kernel[2, 2](a, b, c)
    wide = [each.astype(np.float64) for each in (a, b)]
    size = np.abs(wide[0]) @ np.abs(wide[1])
    assert (np.abs(c - wide[0] @ wide[1]) <= 128 * 2.0**-24 * size).all()
    a[3, 5] = np.nan
    kernel[2, 2](a, b, c)
    assert np.isnan(c[3]).all()
    assert not np.isnan(c[4:]).any()


@pytest.mark.slow
def test_codes_that_were_computed(with_codes: None) -> None:
    a, c = aligned((32, 32)), aligned((32, 32))
    a[...] = np.random.default_rng(3).standard_normal((32, 32))
    square[1](a, c)
    rounded = a.astype(E4M3).astype(np.float64)
    np.testing.assert_allclose(c, rounded @ rounded.T, rtol=1e-5, atol=1e-4)


def test_what_is_multiplied(with_codes: None) -> None:
    a, b, c = codes(E4M3, (64, 128), 1), codes(E5M2, (128, 64), 2), aligned((64, 64))
    assert names(gemm, a, b, c) == {"e4m3", "e5m2"}
    few = xetile.kernel(gemm.fn)
    text = few.ir("lanes", a, b, c, BK=16, backend="xegpu", target="opencl")
    assert '_type = "f16"' in text  # half a step of the matrix unit


def test_other_devices_convert() -> None:
    a, b, c = codes(E4M3, (64, 128), 1), codes(E4M3, (128, 64), 2), aligned((64, 64))
    assert names(gemm, a, b, c) == {"f16"}

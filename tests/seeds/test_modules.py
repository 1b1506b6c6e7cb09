"""Modules of the kind the last released dialect had, on both backends against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xetl

HERE = Path(__file__).parent
BACKENDS = ("reference", "cpu")


def load(name: str) -> Any:
    return xetl.load_mlir((HERE / f"{name}.mlir").read_text("utf-8"))


def numbers(*shape: int, dtype: str = "f4") -> Any:
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(dtype)


@pytest.fixture(scope="module")
def modules() -> Any:
    return load("modules")


pytestmark = pytest.mark.parametrize("backend", BACKENDS)


def test_gather_and_scatter(modules: Any, backend: str) -> None:
    a, b = numbers(1024), np.zeros(1024, "f4")
    modules["gather"][(4, 1, 1)](a, b, backend=backend)
    i = np.arange(128)
    assert np.array_equal(b[:128], np.where(i % 32 < 20, a[3 * i], 7))
    assert not b[128:].any()


def test_transpose_by_four_subgroups(modules: Any, backend: str) -> None:
    a, b = numbers(64, 64), np.zeros((64, 64), "f4")
    modules["slm_transpose"][(1, 1, 1)](a, b, backend=backend)
    assert np.array_equal(b, a.T)
    b[...] = 0
    modules["slm_transpose"][(1, 1, 1), (4, 1, 1)](a, b, backend=backend)
    assert np.array_equal(b, a.T)
    b[...] = 0
    modules["slm_transpose"][(1, 1, 1), (1, 1, 1)](a, b, backend=backend)
    assert np.array_equal(b[:16, :16], a.T[:16, :16])
    assert not b[16:].any()


def test_reductions(modules: Any, backend: str) -> None:
    a, s, m = numbers(32, 64), np.zeros((32, 1), "f4"), np.zeros((1, 64), "f4")
    modules["reduce"][1](a, s, m, backend=backend)
    assert np.array_equal(s, a.sum(1, keepdims=True) + 1)
    assert np.array_equal(m, a.max(0, keepdims=True))


def test_branches(modules: Any, backend: str) -> None:
    a = numbers(64, 32)
    expected = np.concatenate([a[:32] + 2.5, a[32:] * 2.5])
    modules["branch"][2](a, 1, 2.5, backend=backend)
    assert np.array_equal(a, expected)


def test_padding(modules: Any, backend: str) -> None:
    a, b = numbers(20, 20, dtype="f2"), np.zeros((32, 32), "f2")
    modules["padding"][1](a, b, backend=backend)
    expected = np.full((32, 32), 0.5, "f2")
    expected[4:24, 4:24] = a
    assert np.array_equal(b, expected)


def test_column_major(modules: Any, backend: str) -> None:
    a, b = np.asfortranarray(numbers(64, 32, dtype="f2")), np.zeros((64, 32), "f2")
    modules["order"][1](a, b, backend=backend)
    assert np.array_equal(a, b)


def test_atomics(modules: Any, backend: str) -> None:
    a = np.zeros((16, 16), "f4")
    modules["atomic"][(2, 2, 2)](a, backend=backend)
    assert (a == 8).all()


def test_loads_of_two_vectors(modules: Any, backend: str) -> None:
    a, b = numbers(32, 32, dtype="f2"), np.zeros((32, 16), "f2")
    modules["array_length"][1](a, b, backend=backend)
    assert np.array_equal(b, a[:, 16:] - a[:, :16])


@pytest.mark.parametrize("index", [0, 2, 3])
def test_views(modules: Any, backend: str, index: int) -> None:
    a, b = numbers(3, 32, 32), np.full((32, 32), 9, "f4")
    modules["views"][1](a, b, index, backend=backend)
    expected = np.full((32, 32), 9, "f4")
    expected[16:, 16:] = a[index, 8:24, 4:20] if index < 3 else 0
    assert np.array_equal(b, expected)


def test_raw_addresses(modules: Any, backend: str) -> None:
    a, b = numbers(16, 4), np.zeros((16, 4), "f4")
    modules["address"][1](a.ctypes.data, b, backend=backend)
    assert np.array_equal(b, a * [1, 2, 3, 4])


def test_transposes_of_blocks(modules: Any, backend: str) -> None:
    a, b, s = numbers(32, 64), np.zeros((64, 32), "f4"), np.zeros((16, 8), "f4")
    modules["blocked_transpose"][1](a, b, s, backend=backend)
    assert np.array_equal(b, a.T)
    assert np.array_equal(s, a.T.reshape(4, 16, 4, 8).sum((0, 2)))
    b[...] = 0
    modules["blocks_forgotten"][1](a, b, backend=backend)
    assert np.array_equal(b, a.T)
    ir = modules["blocks_forgotten"].ir("expand-text-forms", backend="cpu")
    assert "memref.alloca" not in ir


def test_subgroups_in_a_ring(modules: Any, backend: str) -> None:
    a = numbers(8, 16)
    expected = a.copy()
    for _ in range(5):
        expected = expected + np.roll(expected, -1, 0)
    modules["ring"][(1, 1, 1)](a, backend=backend)
    assert np.array_equal(a, expected)


def test_a_module_around_kernels(backend: str) -> None:
    library = load("whole_module")
    assert list(library) == ["host", "add", "two"]
    a = numbers(16, 16)
    expected = np.maximum(a + 1, 2)
    library["add"][1](a, backend=backend)
    assert np.array_equal(a, expected)
    b = np.ones((16, 16), ml_dtypes.bfloat16)
    library["two"][1](b, backend=backend)
    assert (b == ml_dtypes.bfloat16(np.e)).all()


def test_what_cannot_be_launched(modules: Any, backend: str) -> None:
    assert "xetile.tile_transpose" in str(modules["snippet"])
    with pytest.raises(xetl.errors.LaunchError, match="cannot be launched"):
        modules["snippet"][1](1, 2, backend=backend)


def test_a_kernel_that_returns_its_argument(backend: str) -> None:
    """One that others call keeps its result."""
    library = xetl.load_mlir("""
        func.func private @same(%a: memref<4xf32>) -> memref<4xf32> {
          return %a : memref<4xf32>
        }
        func.func @doubled(%x: memref<4xf32>) -> memref<4xf32> {
          %y = func.call @same(%x) : (memref<4xf32>) -> memref<4xf32>
          %c0 = arith.constant 0 : index
          %v = memref.load %y[%c0] : memref<4xf32>
          %twice = arith.addf %v, %v : f32
          memref.store %twice, %y[%c0] : memref<4xf32>
          return %x : memref<4xf32>
        }
    """)
    x = np.arange(3, 7, dtype=np.float32)
    library["doubled"][1](x, backend=backend)
    assert x.tolist() == [6, 4, 5, 6]
    with pytest.raises(xetl.errors.LaunchError, match="it has results"):
        library["same"][1](x, backend=backend)

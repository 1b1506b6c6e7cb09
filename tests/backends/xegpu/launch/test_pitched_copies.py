"""Copies of arrays of any layout lie so that block messages can move them."""

from __future__ import annotations

from typing import Any

import dpctl.memory
import ml_dtypes
import numpy as np
import pytest
from launched import scale

from xetl import load_mlir, xetile
from xetl.settings import config
from xetl.xetile import cdiv, constexpr, f32
from xetl_xegpu.launch import devices, failures, staging

BF16 = ml_dtypes.bfloat16
LANES = "without block messages"


@pytest.fixture(
    autouse=True,
    params=[{"reads_host": False}, {"reads_host": True, "has_messages": True}],
    ids=["copied", "read in place"],
)
def gpu(pretend: Any, request: Any) -> Any:
    pretend(**request.param)
    config.log = True
    yield
    del config.log


@xetile.kernel(grid=lambda a: (cdiv(a.C.shape[0], 32), cdiv(a.C.shape[1], 32)))
def product(A, B, C, TURNED: constexpr = False):
    m, n = xetile.program_id(0) * 32, xetile.program_id(1) * 32
    right = B.T if TURNED else B
    acc = xetile.zeros((32, 32), f32)
    for k in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (32, 32)))
        b = xetile.load_tile(xetile.init_tile(right, [k, n], (32, 32)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (32, 32)))


def numbers(*shape: int, dtype: Any = BF16) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def check_product(a: Any, b: Any, c: Any, *, turned: bool = False) -> None:
    product(a, b, c, turned)
    right = b.T if turned else b
    exact = a.astype(np.float64) @ right.astype(np.float64)
    np.testing.assert_allclose(c.astype(np.float64), exact, rtol=2e-2, atol=0.1)


@pytest.mark.parametrize("dtype", [BF16, np.float16])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("m", "k", "n"), [(33, 101, 45), (40, 7, 3), (16, 40, 80)])
def test_odd_rows(
    capsys: Any, dtype: Any, turned: bool, m: int, k: int, n: int
) -> None:
    b = numbers(n, k, dtype=dtype) if turned else numbers(k, n, dtype=dtype)
    check_product(numbers(m, k, dtype=dtype), b, np.ones((m, n), dtype), turned=turned)
    assert LANES not in capsys.readouterr().err


def test_parts_of_arrays(capsys: Any) -> None:
    """A head of 40 of rows of 3 heads; every other row; columns that lie as rows."""
    a, b, c = (
        numbers(33, 120)[:, 40:80],
        numbers(80, 66)[::2, 1:],
        np.ones((65, 90), "f"),
    )
    check_product(a, b, c.T[20:53])
    assert np.all(c[:, :20] == 1)
    assert np.all(c[:, 53:] == 1)
    assert LANES not in capsys.readouterr().err


def test_in_place(capsys: Any) -> None:
    """Nothing is loaded behind a store: what that leaves behind a row nobody sees."""
    for dtype, columns in ((np.float16, 39), (BF16, 65), (np.float32, 7)):
        x = numbers(20, columns, dtype=dtype)
        before = x.copy()
        scale[2, cdiv(columns, 16)](x, x)
        np.testing.assert_array_equal(x, before * 2)
    assert LANES not in capsys.readouterr().err


@xetile.kernel
def summed(X, S, TIMES: constexpr):
    """S = the sums of rows of X, of whole tiles; X is raised by 1 before each."""
    total = xetile.zeros((16, 1), f32)
    for _ in range(TIMES):
        for n in range(0, X.shape[1], 32):
            tile = xetile.init_tile(X, [xetile.program_id(0) * 16, n], (16, 32))
            xetile.store_tile(xetile.load_tile(tile) + 1, tile)
        for n in range(0, X.shape[1], 32):
            tile = xetile.init_tile(X, [xetile.program_id(0) * 16, n], (16, 32))
            v = xetile.load_tile(tile).to(f32)
            total += xetile.sum(v, axis=1, keepdims=True)
    xetile.store_tile(
        total, xetile.init_tile(S, [xetile.program_id(0) * 16, 0], (16, 1))
    )


@pytest.mark.parametrize(("dtype", "columns"), [(np.float16, 39), (np.float32, 7)])
def test_what_lies_behind_a_row_is_not_seen(
    capsys: Any, dtype: Any, columns: int
) -> None:
    """Messages write a little more than a row, which a later load must not find."""
    x = np.arange(20 * columns).reshape(20, columns).astype(dtype)
    before, s = x.copy(), np.zeros((20, 1), np.float32)
    summed[2](x, s, 2)
    np.testing.assert_array_equal(x, before + 2)
    exact = (2 * before.astype(np.float64) + 3).sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(s, exact)
    assert LANES not in capsys.readouterr().err


def test_repeated_rows(capsys: Any) -> None:
    row, c = numbers(1, 39, dtype=np.float32), np.empty((20, 39), np.float32)
    scale[2, 3](np.broadcast_to(row, (20, 39)), c)
    np.testing.assert_array_equal(c, np.broadcast_to(row * 2, (20, 39)))
    assert LANES not in capsys.readouterr().err


def there(array: Any) -> Any:
    """The array in memory of the device, with rows as they are."""
    memory = dpctl.memory.MemoryUSMDevice(array.nbytes, queue=devices.default_queue())
    memory.copy_from_host(np.ascontiguousarray(array).view(np.uint8).reshape(-1))
    return DeviceArray(memory, array)


class DeviceArray:
    def __init__(self, memory: Any, array: Any) -> None:
        self.memory, self.dtype, self.shape = memory, array.dtype, array.shape
        self.__sycl_usm_array_interface__ = {
            **memory.__sycl_usm_array_interface__,
            "shape": array.shape,
            "typestr": "<u2" if array.dtype == BF16 else array.dtype.str,
        }

    def read(self) -> Any:
        return self.memory.copy_to_host().view(self.dtype).reshape(self.shape)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(("m", "k", "n"), [(33, 1001, 45), (40, 7, 3)])
def test_odd_rows_of_the_device(
    capsys: Any, dtype: Any, m: int, k: int, n: int
) -> None:
    """They are copied on the device; the result comes back to where it belongs."""
    a, b = numbers(m, k, dtype=dtype), numbers(k, n, dtype=dtype)
    c = there(np.ones((m, n), dtype))
    for _ in range(2):
        product[cdiv(m, 32), cdiv(n, 32)](there(a), there(b), c)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_allclose(c.read(), exact, rtol=2e-2, atol=0.1)
    assert LANES not in capsys.readouterr().err


@pytest.mark.parametrize(("dtype", "columns"), [(np.float16, 39), (np.float32, 7)])
def test_in_place_on_the_device(capsys: Any, dtype: Any, columns: int) -> None:
    x = numbers(20, columns, dtype=dtype)
    at = there(x)
    scale[2, 3](at, at)
    np.testing.assert_array_equal(at.read(), x * 2)
    assert LANES not in capsys.readouterr().err


@xetile.kernel
def raised_vector(X, Y):
    at = [xetile.program_id(0) * 32]
    v = xetile.load_tile(xetile.init_tile(X, at, (32,)))
    xetile.store_tile(v + 1, xetile.init_tile(Y, at, (32,)))


@pytest.mark.parametrize("size", [7, 77])
def test_one_dimension(capsys: Any, size: int) -> None:
    """No copy: it would move more bytes than lanes save instructions."""
    x = np.arange(size).astype(np.float16)
    y = there(np.zeros_like(x))
    raised_vector[cdiv(size, 32)](there(x), y)
    np.testing.assert_array_equal(y.read(), x + 1)
    assert LANES in capsys.readouterr().err


@xetile.kernel
def deep(X, Y):
    """Y = X + 1, of six dimensions."""
    a, b = xetile.program_id(0), xetile.program_id(1)
    for c in range(X.shape[2]):
        for d in range(X.shape[3]):
            v = xetile.load_tile(xetile.init_tile(X[a, b, c, d], [0, 0], (8, 32)))
            xetile.store_tile(v + 1, xetile.init_tile(Y[a, b, c, d], [0, 0], (8, 32)))


def test_six_dimensions(capsys: Any) -> None:
    shape = (2, 3, 2, 2, 5, 31)
    x = np.arange(np.prod(shape)).astype(np.int16).reshape(shape)
    y, turned = there(np.zeros_like(x)), np.zeros(shape, np.int16)
    deep[2, 3](there(x), y)
    deep[2, 3](x.transpose(1, 0, 3, 2, 4, 5)[:2, :2], turned[:, :2])
    np.testing.assert_array_equal(y.read(), x + 1)
    np.testing.assert_array_equal(
        turned[:, :2], x.transpose(1, 0, 3, 2, 4, 5)[:2, :2] + 1
    )
    assert LANES not in capsys.readouterr().err


@xetile.kernel
def raised(X, Y):
    """Y = X + 1, matrix by matrix."""
    at = [xetile.program_id(0) * 8, xetile.program_id(1) * 32]
    for b in range(X.shape[0]):
        v = xetile.load_tile(xetile.init_tile(X[b], at, (8, 32)))
        xetile.store_tile(v + 1, xetile.init_tile(Y[b], at, (8, 32)))


@pytest.mark.parametrize("dtype", [np.int8, np.int32])
def test_matrices_on_the_device(capsys: Any, dtype: Any) -> None:
    """Longer than what is copied without masks, and as long."""
    for shape in ((3, 9, 301), (2, 10, 257)):
        x = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
        y = there(np.zeros_like(x))
        raised[2, cdiv(shape[2], 32)](there(x), y)
        np.testing.assert_array_equal(y.read(), x + 1)
    assert LANES not in capsys.readouterr().err


def test_without_room_for_a_copy(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements are moved where they are, which takes longer."""

    def full(kind: str, *rest: Any) -> Any:
        if kind == "Device":
            raise failures.out_of_memory("gpu", 8, "a copy of an array")
        return allocated(kind, *rest)

    allocated: Any = staging.allocated
    x, y = numbers(20, 39, dtype=np.float32), there(np.zeros((20, 39), np.float32))
    source = there(x)
    monkeypatch.setattr(staging, "allocated", full)
    scale[2, 3](source, y)
    np.testing.assert_array_equal(y.read(), x * 2)
    assert LANES in capsys.readouterr().err


_TEXT = """
gpu.module @m {
  gpu.func @k(%A: memref<32x101xf16>, %B: memref<101x45xf16>, %C: memref<32x45xf16>)
      kernel {
    %zero = arith.constant 0 : index
    %end = arith.constant 101 : index
    %step = arith.constant 32 : index
    %start = arith.constant dense<0.0> : vector<32x48xf32>
    %sum = scf.for %k = %zero to %end step %step iter_args(%c = %start)
        -> (vector<32x48xf32>) {
      %s = xetile.init_tile %A[0, %k] : memref<32x101xf16> -> !xetile.tile<32x32xf16>
      %t = xetile.init_tile %B[%k, 0] : memref<101x45xf16> -> !xetile.tile<32x48xf16>
      %a = xetile.load_tile %s : !xetile.tile<32x32xf16> -> vector<32x32xf16>
      %b = xetile.load_tile %t : !xetile.tile<32x48xf16> -> vector<32x48xf16>
      %d = xetile.tile_mma %a, %b, %c : vector<32x32xf16>, vector<32x48xf16>,
        vector<32x48xf32> -> vector<32x48xf32>
      scf.yield %d : vector<32x48xf32>
    }
    %r = arith.truncf %sum : vector<32x48xf32> to vector<32x48xf16>
    %u = xetile.init_tile %C[0, 0] : memref<32x45xf16> -> !xetile.tile<32x48xf16>
    xetile.store_tile %r, %u : vector<32x48xf16>, !xetile.tile<32x48xf16>
    gpu.return
  }
}
"""


def test_rows_whose_distance_a_text_says(capsys: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 3, s).astype(np.float16) for s in [(32, 101), (101, 45)])
    c = np.zeros((32, 45), np.float16)
    load_mlir(_TEXT)["k"][1](a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert LANES not in capsys.readouterr().err

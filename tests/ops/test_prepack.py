"""`xetl.ops.prepack`: the same numbers, packed once."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xetl import xetile
from xetl.errors import LaunchError
from xetl.ops import matmul, prepack
from xetl.prepacked import Prepacked
from xetl.xetile import cdiv, constexpr, f32


def small(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).integers(0, 4, shape).astype(dtype)


def exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.matmul(a.astype(np.float64), b.astype(np.float64))


def copies(operand: Prepacked) -> set[Any]:
    """The memory that is kept for it."""
    return set(operand.kept.values())


@xetile.kernel(grid=lambda m: (cdiv(m.C.shape[0], 64), cdiv(m.C.shape[1], 64)))
def gemm(A, B, C, k, layer: constexpr = None):
    rows, columns = xetile.program_id(0) * 64, xetile.program_id(1) * 64
    matrix = B if layer is None else B[layer]
    acc = xetile.zeros((64, 64), f32)
    for at in range(0, k, 32):
        a = xetile.load_tile(xetile.init_tile(A, [rows, at], (64, 32)))
        b = xetile.load_tile(xetile.init_tile(matrix, [at, columns], (32, 64)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [rows, columns], (64, 64)))


@xetile.kernel
def from_layer(A, B, C, layer):
    columns = xetile.program_id(0) * 64
    acc = xetile.zeros((64, 64), f32)
    for at in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [0, at], (64, 32)))
        b = xetile.load_tile(xetile.init_tile(B[layer], [at, columns], (32, 64)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [0, columns], (64, 64)))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u1", ml_dtypes.bfloat16])
@pytest.mark.parametrize("m", [1, 7, 16, 128, 300])
def test_the_numbers_are_the_same(m: int, dtype: Any) -> None:
    a, b = small(m, 70, dtype=dtype), small(70, 90, dtype=dtype)
    operand = prepack(b)
    plain = matmul(a, b)
    for _ in range(3):
        assert np.array_equal(matmul(a, operand), plain)


@pytest.mark.parametrize("order", ["rows", "columns", "strided"])
def test_layouts(order: str) -> None:
    a, b = small(40, 70), small(70, 90)
    if order == "columns":
        b = np.asfortranarray(b)
    if order == "strided":
        b = small(140, 180)[::2, ::2]
    operand = prepack(b)
    for _ in range(3):
        assert np.array_equal(matmul(a, operand), exact(a, b))


def test_vectors_and_batches() -> None:
    b = small(70, 90)
    operand = prepack(b)
    for shape in [(70,), (3, 40, 70), (2, 3, 4, 70), (0, 70)]:
        a = small(*shape)
        for _ in range(2):
            assert np.array_equal(matmul(a, operand), exact(a, b))
    column, stack = prepack(b[:, 0]), prepack(small(3, 70, 9))
    for _ in range(2):
        assert np.array_equal(
            matmul(small(40, 70), column), exact(small(40, 70), b[:, 0])
        )
        expected = exact(small(40, 70), small(3, 70, 9))
        assert np.array_equal(matmul(small(40, 70), stack), expected)


def test_it_takes_turns_with_the_array() -> None:
    a, b = small(40, 70), small(70, 90)
    operand = prepack(b)
    matmul(a, operand)
    b[:] = 1
    for _ in range(3):
        assert np.array_equal(matmul(a, b), exact(a, b))
        assert not np.array_equal(matmul(a, operand), exact(a, b))


def test_later_launches_pack_nothing() -> None:
    a, b = small(100, 70), small(70, 90)
    expected = exact(a, b)
    operand = prepack(b)
    assert np.array_equal(matmul(a, operand), expected)
    b[:] = 0  # which one must not do: what is packed stays as it was
    for rows in (100, 99, 65):
        assert np.array_equal(matmul(a[:rows], operand), expected[:rows])
    assert not matmul(a, b).any()
    assert len(copies(operand)) == 1


def test_kernels_that_arrange_it_alike_share_it() -> None:
    a, b = small(600, 70), small(70, 900)
    operand = prepack(b)
    expected = exact(a, b)
    bias = np.zeros(900, np.float32)
    matmul(a, operand)
    matmul(a, operand, bias=bias)
    matmul(a, operand, activation="relu")
    assert len(operand.kept) == 3
    assert len(copies(operand)) == 1
    assert np.array_equal(matmul(a, operand, bias=bias), expected)


def test_kernels_of_ones_own() -> None:
    a, b, c = small(100, 70), small(70, 90), np.empty((100, 90), np.float32)
    operand = prepack(b)
    expected = exact(a, b)
    for _ in range(3):
        c[:] = 0
        gemm(a, operand, c, 70)
        assert np.array_equal(c, expected)
    plan = gemm.bind(a, operand, c, 70)
    b[:] = 0
    for _ in range(2):
        c[:] = 0
        plan()
        assert np.array_equal(c, expected)
    assert len(copies(operand)) == 1


def test_what_differs_between_launches_is_noticed() -> None:
    """The kernel packs as much of k, of the columns and of the layers as it is told."""
    a, b = small(64, 96), small(96, 256)
    operand = prepack(b)
    for k in (96, 32, 96, 64):
        c = np.zeros((64, 256), np.float32)
        gemm(a, operand, c, k)
        assert np.array_equal(c, exact(a[:, :k], b[:k]))
    for columns in (64, 256, 128):
        c = np.zeros((64, 256), np.float32)
        gemm[1, columns // 64](a, operand, c, 96)
        assert np.array_equal(c[:, :columns], exact(a, b[:, :columns]))
    layers = prepack(small(3, 96, 256))
    for layer in (0, 1, 1, 2, 0):
        c = np.zeros((64, 256), np.float32)
        from_layer[4](a, layers, c, layer)
        assert np.array_equal(c, exact(a, small(3, 96, 256)[layer]))


def test_other_views_and_arrays_do_not_meet() -> None:
    a, square = small(70, 70), small(70, 70, seed=1)
    whole, turned = prepack(square), prepack(square.T)
    for _ in range(2):
        assert np.array_equal(matmul(a, whole), exact(a, square))
        assert np.array_equal(matmul(a, turned), exact(a, square.T))


def test_several_threads_at_once() -> None:
    a, b = small(100, 70), small(70, 900)
    operand, start = prepack(b), Barrier(4)

    def work(rows: int) -> list[np.ndarray]:
        start.wait()
        out = np.empty((rows, 900), np.float32)
        matmuls = [matmul(a[:rows], operand) for _ in range(20)]
        for _ in range(20):
            gemm(a[:rows], operand, out, 70)
        return [*matmuls, out]

    sizes = (100, 40, 99, 9)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, sizes))
    for rows, found in zip(sizes, results):
        assert all(np.array_equal(each, exact(a[:rows], b)) for each in found)


def test_threads_that_need_it_packed_differently() -> None:
    """Each of them packs it anew, while others still read what was there."""
    a, b = small(64, 96), small(96, 256)
    operand, start = prepack(b), Barrier(3)

    def work(k: int) -> bool:
        start.wait()
        expected, out = exact(a[:, :k], b[:k]), np.empty((64, 256), np.float32)
        for _ in range(30):
            gemm(a, operand, out, k)
            if not np.array_equal(out, expected):
                return False
        return True

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(work, (32, 64, 96)))


def test_memory_goes_with_the_operand() -> None:
    a, operand = small(100, 70), prepack(small(70, 90))
    matmul(a, operand)
    (memory,) = copies(operand)
    kept = weakref.ref(memory)
    del operand, memory
    gc.collect()
    assert kept() is None


def test_the_reference_backend_sees_the_array(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XETL_BACKEND", "reference")
    a, b = small(10, 70), small(70, 9)
    operand = prepack(b)
    assert np.array_equal(matmul(a, operand), exact(a, b))
    b[:] = 0
    assert not matmul(a, operand).any()
    assert not operand.kept


def test_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    a, b = torch.ones(40, 70), torch.ones(70, 90)
    operand = prepack(b)
    for _ in range(3):
        assert torch.equal(matmul(a, operand), a @ b)
        c = torch.zeros(40, 90)
        gemm(a, operand, c, 70)
        assert torch.equal(c, a @ b)


def test_it_is_not_written() -> None:
    a, b = small(64, 64), small(64, 64)
    before = b.copy()
    operand = prepack(b)
    for call in (lambda: gemm(a, a, operand, 64), lambda: matmul(a, a, out=operand)):
        with pytest.raises(LaunchError) as caught:
            call()
        assert caught.value.code == "X0806"
    assert np.array_equal(b, before)


def test_the_interpreter_takes_it() -> None:
    a, b, c = small(64, 64), small(64, 64), np.zeros((64, 64), np.float32)
    gemm.interpret(a, prepack(b), c, 64)
    assert np.array_equal(c, exact(a, b))


def test_what_it_says_of_itself() -> None:
    b = small(70, 90)
    operand = prepack(b)
    assert (operand.shape, operand.ndim, operand.dtype) == (b.shape, 2, b.dtype)
    assert operand.array is b
    assert prepack(operand) is operand
    with pytest.raises(LaunchError) as caught:
        prepack(3)
    assert caught.value.code == "X0805"


@xetile.kernel(grid=lambda m: (cdiv(m.C.shape[1], 64),))
def two_products(A, B, D, C):
    columns = xetile.program_id(0) * 64
    acc = xetile.zeros((64, 64), f32)
    for at in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [0, at], (64, 32)))
        b = xetile.load_tile(xetile.init_tile(B, [at, columns], (32, 64)))
        acc = xetile.tile_mma(a, b, acc)
    for at in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [0, at], (64, 32)))
        d = xetile.load_tile(xetile.init_tile(D, [at, columns], (32, 64)))
        acc = xetile.tile_mma(a, d, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [0, columns], (64, 64)))


def test_a_kernel_with_two_operands_keeps_both() -> None:
    a, b, d = small(64, 96), small(96, 128), small(96, 128, seed=1)
    first, second = prepack(b), prepack(d)
    c = np.empty((64, 128), np.float32)
    expected = exact(a, b) + exact(a, d)
    for left, right in [(b, d), (first, d), (b, second), (first, second)] * 2:
        c[:] = 0
        two_products(a, left, right, c)
        assert np.array_equal(c, expected)
    assert len(copies(first)) == len(copies(second)) == 1
    assert not copies(first) & copies(second)
    plan = two_products.bind(a, first, second, c)
    one_of_them = two_products.bind(a, b, second, c)
    b[:] = d[:] = 0  # which one must not do: what is packed stays as it was
    for _ in range(2):
        for run in (plan, lambda: two_products(a, first, second, c)):
            c[:] = 0
            run()
            assert np.array_equal(c, expected)
        one_of_them()
        assert np.array_equal(c, exact(a, small(96, 128, seed=1)))


def test_one_operand_of_two_products_and_operands_in_other_places() -> None:
    a, b, d = small(64, 96), small(96, 128), small(96, 128, seed=1)
    first, second = prepack(b), prepack(d)
    c = np.empty((64, 128), np.float32)
    for left, right in [(first, first), (first, second), (second, first)] * 3:
        two_products(a, left, right, c)
        assert np.array_equal(c, exact(a, left.array) + exact(a, right.array))


def test_copies_and_pickles_keep_the_array() -> None:
    a, b = small(8, 64), small(64, 32)
    packed = prepack(b)
    for made in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed))):
        assert made.array is not b
        assert np.array_equal(matmul(a, made), exact(a, b))

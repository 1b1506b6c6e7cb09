"""Products that go from registers to memory, and tiles of B that threads pack."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launching import agree, launch, same, small_integers

from xetl import xetile
from xetl.xetile import constexpr, f32

BF16 = ml_dtypes.bfloat16
SIZES: dict[str, Any] = {"BM": 48, "BN": 64, "BK": 32}


@xetile.kernel
def gemm(A, B, C, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


def operands(m: int, k: int, n: int, dtype: Any = np.float32) -> tuple[Any, Any]:
    rng = np.random.default_rng(m + k + n)
    return small_integers(rng, m, k, dtype=dtype), small_integers(
        rng, k, n, dtype=dtype
    )


def product(a: Any, b: Any, dtype: Any) -> Any:
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(dtype)


def grid_of(c: Any) -> tuple[int, int]:
    return (-(-c.shape[0] // 48), -(-c.shape[1] // 64))


@pytest.mark.parametrize(
    ("dtype", "out"),
    [
        (np.float32, np.float32),
        (np.float32, np.float16),
        (np.float32, BF16),
        (BF16, BF16),
        (BF16, np.float32),
        (np.float16, np.float16),
    ],
)
@pytest.mark.parametrize("shape", [(48, 32, 64), (100, 45, 130), (5, 3000, 7)])
def test_ragged_and_strided(shape: tuple[int, int, int], dtype: Any, out: Any) -> None:
    """Nothing beside the matrix is written, whatever the distance of its rows."""
    m, k, n = shape
    a, b = operands(m, k, n, dtype)
    large = np.full((2 * m, n + 9), 7).astype(out)
    for c in (large[:m, :n], large[::2, 3 : n + 3], large[::-2, :n], large.T[:n, :m].T):
        whole = c.base
        whole[...] = np.asarray(7, out)
        gemm[grid_of(c)](a, b, c, **SIZES)
        same(np.ascontiguousarray(c), product(a, b, out))
        c[...] = np.asarray(7, out)
        assert (whole.astype(np.float32) == 7).all()


def test_no_k_is_zeros() -> None:
    a, b = np.ones((50, 0), np.float32), np.ones((0, 70), np.float32)
    c = np.full((50, 70), np.nan, np.float32)
    gemm[grid_of(c)](a, b, c, **SIZES)
    assert (c == 0).all()


def test_nan_and_infinity_are_kept() -> None:
    a, b = operands(48, 32, 64)
    a[3, 4], a[5, 6], b[7, 8] = np.nan, np.inf, -np.inf
    for out in (np.float32, np.float16, BF16):
        agree(gemm, (1, 1), a, b, np.zeros((48, 64), out), **SIZES)


def test_the_result_overwrites_an_operand() -> None:
    """One program reads all of its operands before it stores."""
    for number, k in enumerate((64, 48)):
        place = list(operands(48, k, 64))
        expected = product(*place, np.float32)
        gemm[1, 1](*place, place[number], BM=48, BN=64, BK=32)
        same(place[number], expected)


@xetile.kernel
def kept(A, B, C, D):
    """What C held before the product is written elsewhere behind it."""
    tile = xetile.init_tile(C, [0, 0], (32, 64))
    old = xetile.load_tile(tile)
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (32, 32)))
    b = xetile.load_tile(xetile.init_tile(B, [0, 0], (32, 64)))
    xetile.store_tile(xetile.tile_mma(a, b), tile)
    xetile.store_tile(old + 1.0, xetile.init_tile(D, [0, 0], (32, 64)))


def test_a_load_before_the_store_sees_what_was() -> None:
    a, b = operands(32, 32, 64)
    c, d = np.full((32, 64), 5, np.float32), np.zeros((32, 64), np.float32)
    launch_c, launch_d = launch(kept, (1,), a, b, c, d)[2:]
    same(launch_c, product(a, b, np.float32))
    assert (launch_d == 6).all()


@xetile.kernel
def by_rows_of_b(A, B, C, BM: constexpr, BN: constexpr, BK: constexpr):
    """The first axis of the grid counts the tiles of B: no thread meets one twice."""
    n, m = xetile.program_id(0) * BN, xetile.program_id(1) * BM
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


def check_packing() -> None:
    """Each launch anew: B changes between them. 1 to 9 tiles of B, 7 programs each."""
    for dtype in (np.float32, BF16):
        for n in (20, 64, 150, 560):
            a, b = operands(300, 70, n, dtype)
            for _ in range(3):
                for kernel, order in ((gemm, 1), (by_rows_of_b, -1)):
                    c = np.zeros((300, n), np.float32)
                    kernel[grid_of(c)[::order]](a, b, c, **SIZES)
                    same(c, product(a, b, np.float32))
                b = (b.astype(np.float32) + 1).astype(dtype)


@pytest.mark.parametrize(
    "threads", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 8))]
)
def test_threads_pack_what_they_meet(threads: int) -> None:
    environment = {
        **os.environ,
        "NUMBA_NUM_THREADS": str(threads),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }
    code = "import test_stored_products as t\nfor _ in range(5): t.check_packing()"
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def left_alone(text: str) -> list[bool]:
    """Of tasks: whether LLVM does not optimise them."""
    heads = [line for line in text.splitlines() if line.startswith("define")]
    return ["optnone" in line for line in heads if "_task" in line]


def test_llvm_spends_no_time_on_what_only_calls_micro_kernels() -> None:
    a, b = operands(64, 64, 64)
    by_rows, by_columns = np.zeros((64, 64), np.float32), np.zeros((64, 64), "f4", "F")
    text = gemm.ir("llvm", a, b, by_rows, **SIZES, target="avx512")
    assert left_alone(text) == [True, True]  # packing, the programs
    assert text.count("optnone") == 4  # and the kernel, and what launches tasks
    heads = [line for line in text.splitlines() if line.startswith("define")]
    assert all("optnone" in line or "xetl-final" in line for line in heads)
    text = gemm.ir("llvm", a, b, by_columns, **SIZES, target="avx512")
    assert left_alone(text) == [True, False]  # the result is stored by loops


@xetile.kernel
def offsets_twice(A, B, C):
    i, j = xetile.program_id(0), xetile.program_id(1)
    acc = xetile.zeros((48, 64), f32)
    for k in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [i * 48, k], (48, 32)))
        b = xetile.load_tile(xetile.init_tile(B, [k, j * 64], (32, 64)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [i * 48, j * 64], (48, 64)))


def test_a_place_that_is_computed_again_behind_the_loop() -> None:
    a, b = operands(50, 70, 65)
    c = np.zeros((50, 65), np.float32)
    offsets_twice[2, 2](a, b, c)
    assert np.array_equal(c, product(a, b, np.float32))
    assert "stored from registers" in str(offsets_twice.explain(a, b, c))


def test_explain_says_where_the_result_goes() -> None:
    a, b = operands(48, 32, 64)
    c = np.zeros((48, 64), np.float32)
    assert "stored from registers" in str(gemm.explain(a, b, c, **SIZES))
    report = str(gemm.explain(a, b, np.zeros((48, 64), np.float32, "F"), **SIZES))
    assert "stored from registers" not in report

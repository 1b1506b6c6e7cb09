"""Products of bf16, f16 and bytes where vectors multiply wider numbers: A is copied."""

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launching import launch, same, small_integers

from xetl import xetile
from xetl.xetile import bf16, constexpr, f16, f32, i32

BF16: Any = ml_dtypes.bfloat16
TALL: dict[str, Any] = {"BM": 256, "BN": 64, "BK": 32}


@xetile.kernel
def gemm(A, B, C, ACC: constexpr, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), ACC)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


def operands(dtype: Any, m: int, k: int, n: int) -> tuple[Any, Any, Any]:
    rng, sums = np.random.default_rng(0), np.int32 if dtype is np.int8 else np.float32
    a = small_integers(rng, m, k, dtype=dtype)
    b = small_integers(rng, k, n, dtype=dtype)
    return a, b, np.full((m, n), 7, sums)


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("dtype", [BF16, np.float16, np.int8])
@pytest.mark.parametrize("shape", [(520, 1100, 130), (250, 1300, 64), (257, 0, 70)])
def test_tall_tiles(dtype: Any, shape: tuple[int, int, int]) -> None:
    """A is copied some rows at a time, of whole runs of k; the last are fewer."""
    a, b, c = operands(dtype, *shape)
    acc = i32 if dtype is np.int8 else f32
    grid = (-(-len(a) // 256), -(-c.shape[1] // 64))
    c = launch(gemm, grid, a, b, c, ACC=acc, **TALL)[2]
    same(c, (a.astype("f8") @ b.astype("f8")).astype(c.dtype))


def test_what_is_copied_of_a_stays_in_a_quarter_of_l2() -> None:
    a, b, c = operands(BF16, 512, 1024, 128)
    text = gemm.ir("loops", a, b, c, ACC=f32, **TALL, target="avx2")
    run, rows = (int(re.findall(rf"{name} = (\d+)", text)[0]) for name in ("run", "mc"))
    assert 4 * run * rows <= (512 << 10) // 4
    first = re.findall(r"scf\.for %\w+ = .* step (%\w+) {", text)[0]
    most = re.findall(rf"{first} = arith\.maxsi (%\w+), ", text)[0]
    of_rows = re.findall(rf"{most} = arith\.select .*, (%\w+) : index", text)[0]
    assert f"{of_rows} = arith.constant {rows} : index" in text


@xetile.kernel
def twice(A, B, C, S, MUL: constexpr):
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (32, 64)))
    e = a.to(f32) * 0.3
    xetile.store_tile(e.sum(1, keepdims=True), xetile.init_tile(S, [0, 0], (32, 1)))
    b = xetile.load_tile(xetile.init_tile(B, [0, 0], (64, 32)))
    c = xetile.tile_mma(e.to(MUL), b.to(MUL))
    xetile.store_tile(c, xetile.init_tile(C, [0, 0], (32, 32)))


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("dtype", [BF16, np.float16])
@pytest.mark.parametrize("is_rounded", [True, False])
def test_what_is_computed_is_rounded(dtype: Any, is_rounded: bool) -> None:
    a, b, c = operands(dtype, 32, 64, 32)
    mul = {BF16: bf16, np.float16: f16}[dtype] if is_rounded else f32
    e = a.astype(np.float32) * np.float32(0.3)
    _, _, c, s = launch(twice, 1, a, b, c, np.zeros((32, 1), np.float32), MUL=mul)
    want = e.astype(dtype if is_rounded else "f4").astype("f8") @ b.astype("f8")
    np.testing.assert_allclose(c, want, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(s[:, 0], e.sum(1, dtype="f8"), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("mul", [bf16, f32])
def test_what_is_computed_stands_as_it_is_multiplied(mul: Any) -> None:
    """A in f32, and B as memory has it: its panels are widened."""
    a, b, c = operands(BF16, 32, 64, 32)
    given = a, b, c, np.zeros((32, 1), np.float32)
    text = twice.ir("loops", *given, MUL=mul, target="avx2")
    assert "alloca() : memref<32x64xf32>" in text
    assert "memref<64x32xf32>" not in text
    assert not re.search(r"alloca\(\) : memref<\S*xbf16>", text)

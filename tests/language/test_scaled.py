"""Products in blocks with scales against NumPy, on each backend."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32

ALL = pytest.mark.parametrize("backend", ["reference", "cpu", "xegpu"])
FORMATS = ["e4m3", "e5m2", "e2m1", "bf16", "f16"]
NUMPY = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
}
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


@xetile.kernel(grid=lambda m: (cdiv(m.C.shape[0], m.BM), cdiv(m.C.shape[1], m.BN)))
def scaled(
    A,
    AS,
    B,
    BS,
    C,
    K: int,
    FA: constexpr,
    FB: constexpr,
    BM: constexpr = 8,
    BN: constexpr = 16,
    BK: constexpr = 32,
):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), f32)
    pa, pb = 2 if FA == "e2m1" else 1, 2 if FB == "e2m1" else 1
    for k in range(0, K, BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k // pa], (BM, BK // pa)))
        b = xetile.load_tile(xetile.init_tile(B, [k // pb, n], (BK // pb, BN)))
        sa, sb = None, None
        if AS is not None:
            sa = xetile.load_tile(xetile.init_tile(AS, [m, k // 32], (BM, BK // 32)))
        if BS is not None:
            sb = xetile.load_tile(xetile.init_tile(BS, [n, k // 32], (BN, BK // 32)))
        acc = xetile.dot_scaled(a, sa, FA, b, sb, FB, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


def operand(
    format: str, rows: int, k: int, has_scale: bool = True, seed: int = 0
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Rows of codes, their scales, and the numbers that they stand for."""
    rng = np.random.default_rng(seed)
    if format == "e2m1":
        codes = rng.integers(0, 16, (rows, k), np.uint8)
        data, value = codes[:, ::2] | codes[:, 1::2] << 4, E2M1[codes]
    else:
        data = rng.integers(-4, 5, (rows, k)).astype(NUMPY[format])
        value = data.astype(np.float64)
    if not has_scale:
        return data, None, value
    scale = rng.integers(125, 130, (rows, k // 32), np.uint8)
    return data, scale, value * np.repeat(2.0 ** (scale - 127.0), 32, 1)


def check(
    one: str, other: str, backend: str, m: int = 8, n: int = 16, k: int = 64, **options
) -> None:
    """Whole numbers of sixty-fourths: no order of the sums rounds."""
    has_scale = options.pop("scales", (True, True))
    a, a_scale, left = operand(one, m, k, has_scale[0])
    b, b_scale, right = operand(other, n, k, has_scale[1], seed=1)
    out = np.zeros((m, n), np.float32)
    b = np.ascontiguousarray(b.T)
    scaled(a, a_scale, b, b_scale, out, k, one, other, backend=backend, **options)
    np.testing.assert_array_equal(out, left @ right.T)


@ALL
@pytest.mark.parametrize(
    ("one", "other"),
    [("e4m3", "e5m2"), ("e2m1", "e2m1"), ("bf16", "e2m1"), ("f16", "e4m3")],
)
def test_pairs_of_formats(one: str, other: str, backend: str) -> None:
    check(one, other, backend)


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("one", FORMATS)
@pytest.mark.parametrize("other", FORMATS)
def test_all_formats(one: str, other: str, backend: str) -> None:
    """Several blocks in a tile, and tiles that reach over the edges."""
    check(one, other, backend, 13, 21, 128, BK=64)


@ALL
@pytest.mark.parametrize("scales", [(True, False), (False, True), (False, False)])
def test_without_scales(scales: tuple[bool, bool], backend: str) -> None:
    check("bf16", "bf16", backend, scales=scales)


@ALL
def test_blocks_in_one_tile(backend: str) -> None:
    check("e4m3", "e4m3", backend, BK=64)


@ALL
def test_among_subgroups(backend: str) -> None:
    check("e4m3", "e4m3", backend, 40, 70, BM=64, BN=64)


@ALL
def test_bits_for_floats_and_the_ends_of_scales(backend: str) -> None:
    """u8 is taken for the bits of e4m3; 255 is NaN, and 254 the largest scale."""
    a = np.ones((8, 32), NUMPY["e4m3"])
    b = np.zeros((32, 16), np.uint8)
    b[0] = 0x38  # 1.0
    scale = np.array([[0], [1], [127], [128], [254], [255], [126], [100]], np.uint8)
    one, out = np.full((16, 1), 127, np.uint8), np.zeros((8, 16), np.float32)
    scaled(a, scale, b, one, out, 32, "e4m3", "e4m3", backend=backend)
    expected = 2.0 ** (scale.astype(np.float64) - 127)
    expected[5] = np.nan
    # The first is subnormal in f32 and may be flushed.
    np.testing.assert_array_equal(out[1:], np.repeat(expected, 16, 1)[1:])
    assert np.all(out[0] <= 2.0**-126)


def test_a_step_of_one_block_is_one_brgemm_on_the_cpu() -> None:
    a, a_scale, _ = operand("e4m3", 64, 128)
    b, b_scale, _ = operand("e5m2", 64, 128)
    out = np.zeros((64, 64), np.float32)
    arguments = (a, a_scale, np.ascontiguousarray(b.T), b_scale, out, 128)
    report = scaled.explain(*arguments, "e4m3", "e5m2", 32, 32, backend="cpu")
    assert "is one batch-reduce GEMM" in str(report)

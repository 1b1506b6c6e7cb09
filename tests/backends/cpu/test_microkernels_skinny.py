"""The GEMM of a few rows against NumPy; small integers, so sums are exact."""

from functools import cache

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_harness import compile_functions, fenced

from xetl_cpu.microkernels.blocking import LOW_ROWS, SKINNY_ROWS, choose_blocking
from xetl_cpu.microkernels.dots import emit_dots
from xetl_cpu.microkernels.small_m_gemm import emit_low_gemm, emit_skinny_gemm
from xetl_cpu.targets import find_target

NUMPY = {
    **{"f32": np.float32, "f64": np.float64},
    **{"bf16": ml_dtypes.bfloat16, "f16": np.float16},
}
CASES = [
    (target, dtype, unit)
    for target in ("avx2", "avx512", "avx512_bf16")
    for dtype in NUMPY
    for unit in ("major", "minor")
]
sizes = st.integers(1, 70)


@cache
def skinny_gemm(target_name, dtype, unit, block_m):
    target = find_target(target_name)
    blocking = choose_blocking(target, dtype, block_m, 70)
    emit = emit_skinny_gemm if unit == "minor" else emit_dots
    [gemm] = compile_functions(target, [lambda module: emit(module, target, blocking)])
    return blocking, gemm


@pytest.mark.parametrize(("target_name", "dtype", "unit"), CASES)
@given(
    block_m=st.integers(1, SKINNY_ROWS), fewer=st.integers(0, SKINNY_ROWS - 1), n=sizes,
    k=st.integers(0, 70), pads=st.tuples(st.integers(0, 5), st.integers(0, 5)),
    elements=st.sampled_from([0, 1 << 40]), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=40)
def test_any_shape_matches_numpy(
    target_name, dtype, unit, block_m, fewer, n, k, pads, elements, seed
):
    if not find_target(target_name).runs_here:
        pytest.skip(f"this machine is no {target_name}")
    blocking, gemm = skinny_gemm(target_name, dtype, unit, block_m)
    assert blocking.is_skinny
    rows = max(1, block_m - fewer)
    rng = np.random.default_rng(seed)
    a = rng.integers(-4, 5, (rows, k + pads[0])).astype(NUMPY[dtype])
    shape = (k, n + pads[1]) if unit == "minor" else (n, k + pads[1])
    b = rng.integers(-4, 5, shape).astype(NUMPY[dtype])
    c = rng.integers(-4, 5, (blocking.rows_padded, blocking.ldc))
    c = c.astype(NUMPY[blocking.arithmetic.accumulator])
    scratch = fenced(c)
    memory = [fenced(x.ravel()[: x.size - pad]) for x, pad in zip((a, b), pads)]
    gemm(memory[0], a.shape[1], rows, k, memory[1], shape[1], n, elements, scratch)
    wide = b[:, :n] if unit == "minor" else b[:, :k].T
    want = c[:rows, :n] + a[:, :k].astype("f8") @ wide.astype("f8")
    assert np.array_equal(scratch[:rows, :n], want)
    assert np.array_equal(scratch[block_m:], c[block_m:])


@cache
def skinny_bytes(unsigned, block_m):
    target = find_target("avx512_bf16")
    blocking = choose_blocking(target, "i8", block_m, 70, unsigned)
    [gemm] = compile_functions(
        target, [lambda module: emit_dots(module, target, blocking)]
    )
    return blocking, gemm


@pytest.mark.skipif(not find_target("avx512_bf16").runs_here, reason="no VNNI here")
@pytest.mark.parametrize("signs", [(a, b) for a in (0, 1) for b in (0, 1)])
@given(
    block_m=st.integers(1, SKINNY_ROWS), fewer=st.integers(0, SKINNY_ROWS - 1),
    n=sizes, k=st.integers(0, 300), pads=st.tuples(st.integers(0, 5), sizes),
    seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=60)
def test_columns_of_bytes_match_numpy(signs, block_m, fewer, n, k, pads, seed):
    blocking, gemm = skinny_bytes(tuple(map(bool, signs)), block_m)
    assert blocking.is_skinny
    rows = max(1, block_m - fewer)
    rng = np.random.default_rng(seed)
    shapes = (rows, k + pads[0]), (n, k + pads[1])
    a, b = (
        rng.integers(0, 256, shape).astype("u1").view("u1" if unsigned else "i1")
        for shape, unsigned in zip(shapes, signs, strict=True)
    )
    c = rng.integers(-4, 5, (blocking.rows_padded, blocking.ldc)).astype("i4")
    scratch = fenced(c)
    memory = [fenced(x.ravel()[: x.size - pad]) for x, pad in zip((a, b), pads)]
    gemm(memory[0], a.shape[1], rows, k, memory[1], b.shape[1], n, 0, scratch)
    want = c[:rows, :n] + a[:, :k].astype("i8") @ b[:, :k].T.astype("i8")
    assert np.array_equal(scratch[:rows, :n], want)


def test_bytes_without_vnni_and_tall_blocks_are_not_skinny():
    target = find_target("avx512")
    assert not choose_blocking(target, "i8", 1, 64).is_skinny
    assert not choose_blocking(find_target("avx2"), "i8", 1, 64).is_skinny
    assert not choose_blocking(target, "f32", SKINNY_ROWS + 1, 64).is_skinny


LOW_CASES = [
    *((name, dtype) for name in ("avx2", "avx512") for dtype in ("f32", "f64")),
    ("avx512_bf16", "bf16"),
]


@cache
def low_gemm(target_name, dtype, unit):
    target = find_target(target_name)
    blocking = choose_blocking(target, dtype, LOW_ROWS, 70)
    emit = emit_low_gemm if unit == "minor" else emit_dots
    [gemm] = compile_functions(target, [lambda module: emit(module, target, blocking)])
    return blocking, gemm


@pytest.mark.parametrize("unit", ["major", "minor"])
@pytest.mark.parametrize(("target_name", "dtype"), LOW_CASES)
@given(
    rows=st.integers(1, LOW_ROWS), n=sizes,
    k=st.integers(0, 70) | st.sampled_from([1025, 8500]),
    pads=st.tuples(st.integers(0, 5), st.integers(0, 5)),
    elements=st.sampled_from([0, 1 << 40]), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=60)
def test_low_blocks_match_numpy(
    target_name, dtype, unit, rows, n, k, pads, elements, seed
):
    if not find_target(target_name).runs_here:
        pytest.skip(f"this machine is no {target_name}")
    blocking, gemm = low_gemm(target_name, dtype, unit)
    rng = np.random.default_rng(seed)
    a = rng.integers(-4, 5, (rows, k + pads[0])).astype(NUMPY[dtype])
    shape = (k, n + pads[1]) if unit == "minor" else (n, k + pads[1])
    b = rng.integers(-4, 5, shape).astype(NUMPY[dtype])
    c = rng.integers(-4, 5, (blocking.rows_padded, blocking.ldc))
    c = c.astype(NUMPY[blocking.arithmetic.accumulator])
    scratch = fenced(c)
    memory = [fenced(x.ravel()[: x.size - pad]) for x, pad in zip((a, b), pads)]
    gemm(memory[0], a.shape[1], rows, k, memory[1], b.shape[1], n, elements, scratch)
    wide = b[:, :n] if unit == "minor" else b[:, :k].T
    want = c[:rows, :n] + a[:, :k].astype("f8") @ wide.astype("f8")
    assert np.array_equal(scratch[:rows, :n], want)
    assert np.array_equal(scratch[rows:], c[rows:])


def test_which_blocks_are_low():
    target = find_target("avx512_bf16")
    for dtype in ("f32", "f64", "bf16"):
        assert choose_blocking(target, dtype, SKINNY_ROWS + 1, 256).is_low
        assert choose_blocking(target, dtype, LOW_ROWS, 256).is_low
        assert not choose_blocking(target, dtype, SKINNY_ROWS, 256).is_low
        most = LOW_ROWS + 1
        assert not choose_blocking(target, dtype, most, 256).is_low
    # Rows of B in a block have 512 bytes at least.
    assert choose_blocking(target, "f32", 16, 128).is_low
    assert not choose_blocking(target, "f32", 16, 127).is_low
    assert not choose_blocking(target, "bf16", 16, 255).is_low
    # What is converted first is packed.
    assert not choose_blocking(target, "f16", 16, 256).is_low
    assert not choose_blocking(target, "i8", 16, 256).is_low
    assert not choose_blocking(find_target("avx512"), "bf16", 16, 256).is_low

"""Packing against NumPy: any shape, any stride, nothing touched that is not ours."""

from functools import cache

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_harness import compile_functions, fenced

from xetl_cpu.microkernels.blocking import Blocking, choose_blocking
from xetl_cpu.microkernels.packing import emit_pack
from xetl_cpu.targets import find_target

NUMPY = {
    **{"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16},
    **{"f64": np.float64, "i8": np.int8, "u8": np.uint8, "i16": np.int16},
}
CANARY = 77
UNITS = {"rows": "minor", "columns": "major"}
CASES = [
    (target, dtype)
    for target in ("avx2", "avx512", "avx512_bf16")
    for dtype in ("f32", "f16", "bf16", "f64", "i8", "u8")
]
sizes = st.integers(0, 70)
layouts = st.sampled_from(["rows", "columns", "strided", "reversed", "broadcast"])


def need(name: str):
    target = find_target(name)
    if not target.runs_here:
        pytest.skip(f"this machine is no {name}")
    return target


@cache
def packers(target_name: str, dtype: str, layout: str = "any"):
    target = find_target(target_name)
    unsigned = (dtype == "u8", dtype == "u8")
    name = "i8" if dtype == "u8" else dtype
    blocking = choose_blocking(target, name, 64, 64, unsigned)
    unit = UNITS.get(layout)
    pack_b, pack_a = compile_functions(
        target,
        [
            lambda module: emit_pack(module, target, blocking, "b", dtype, unit),
            lambda module: emit_pack(module, target, blocking, "a", dtype, unit),
        ],
    )
    return blocking, pack_b, pack_a


def make_source(layout: str, shape: tuple[int, int], dtype: str, seed: int):
    """A matrix with the wanted strides whose memory is fenced at its last element."""
    rng = np.random.default_rng(seed)
    lowest = 0 if dtype == "u8" else -60
    values = rng.integers(lowest, 60, shape).astype(NUMPY[dtype])
    if layout == "rows":
        return fenced(values)
    if layout == "columns":
        return fenced(np.ascontiguousarray(values.T)).T
    if layout == "reversed":
        return fenced(values, at_end=False)[::-1, ::-1]
    if layout == "broadcast":
        return np.broadcast_to(fenced(values[:, :1]), shape)
    wide = np.zeros((shape[0], 3 * shape[1]), values.dtype)
    return fenced(wide)[:, ::3] if shape[1] else wide[:, ::3]


def element_strides(array: np.ndarray) -> tuple[int, ...]:
    return tuple(stride // array.itemsize for stride in array.strides)


def expected_panels(blocking: Blocking, source: np.ndarray, k: int, panels: int):
    steps = -(-k // blocking.k_pack)
    padded = np.zeros((steps * blocking.k_pack, panels * blocking.nr), np.float32)
    padded[: source.shape[0], : source.shape[1]] = source
    if blocking.arithmetic.shifts_b:  # zeros, too
        padded = (padded.astype(np.int16).astype(np.uint8) ^ 128).view(np.int8)
    shape = (steps, blocking.k_pack, panels, blocking.nr)
    return padded.reshape(shape).transpose(2, 0, 3, 1)


@pytest.mark.parametrize(("target_name", "dtype"), CASES)
@given(
    k=sizes, extra_k=st.integers(0, 20), n=sizes, extra_n=st.integers(0, 70),
    layout=layouts, known=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=60)
def test_pack_b(target_name, dtype, k, extra_k, n, extra_n, layout, known, seed):
    need(target_name)
    blocking, pack_b, _ = packers(target_name, dtype, layout if known else "any")
    source = make_source(layout, (k, n), dtype, seed)
    panels = -(-(n + extra_n) // blocking.nr)
    want = expected_panels(blocking, source, k + extra_k, panels)
    used = int(np.prod(want.shape[1:]))
    held = np.full((panels, used + 5), CANARY, NUMPY[blocking.compute])
    result = fenced(held.ravel()[:-5] if panels else held.ravel())
    stride_k, stride_n = element_strides(source)
    width = panels * blocking.nr
    pack_b(
        source, stride_k, stride_n, k, n, k + extra_k, width, result, used + 5
    )  # fmt: skip
    got = np.append(result.astype("f4"), [CANARY] * 5 if panels else []).reshape(
        held.shape
    )
    assert np.array_equal(got[:, :used].astype(np.float32), want.reshape(panels, used))
    assert (got[:, used:] == CANARY).all()


@pytest.mark.parametrize(("target_name", "dtype"), CASES)
@given(
    rows=sizes, extra_rows=st.integers(0, 20), k=sizes, extra_k=st.integers(0, 20),
    layout=layouts, known=st.booleans(), seed=st.integers(0, 99), pad=st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=60)
def test_pack_a(
    target_name, dtype, rows, extra_rows, k, extra_k, layout, known, seed, pad
):
    need(target_name)
    blocking, _, pack_a = packers(target_name, dtype, layout if known else "any")
    source = make_source(layout, (rows, k), dtype, seed)
    all_rows, all_k = rows + extra_rows, k + extra_k
    want = np.zeros((all_rows, all_k), np.float32)
    want[:rows, :k] = source
    held = np.full((all_rows, all_k + pad), CANARY, NUMPY[blocking.compute])
    written = max(held.size - pad, 0)
    result = fenced(held.ravel()[:written])
    pack_a(
        source, *element_strides(source), rows, k, all_rows, all_k, result, all_k + pad
    )
    got = np.append(result.astype("f4"), held.ravel()[written:].astype("f4")).reshape(
        held.shape
    )
    assert np.array_equal(got[:, :all_k].astype(np.float32), want)
    assert (got[:, all_k:] == CANARY).all()


@pytest.mark.parametrize(("target_name", "dtype"), CASES)
def test_pack_b_in_chunks_of_k(target_name, dtype):
    need(target_name)
    blocking, pack_b, _ = packers(target_name, dtype)
    source = make_source("rows", (37, 64), dtype, 1)
    panels = 64 // blocking.nr
    want = expected_panels(blocking, source, 37, panels)
    result = np.full(want.size, CANARY, NUMPY[blocking.compute])
    used = want.size // panels
    for start in range(0, 37, 12):
        part, to = source[start : start + 12], result[start * blocking.nr :]
        k = len(part)
        pack_b(part, *element_strides(part), k, 64, k, 64, to, used)
    assert np.array_equal(result.astype(np.float32), want.ravel())


@pytest.mark.parametrize("source_dtype", ["i8", "u8"])
def test_all_bytes_widen_by_their_sign(source_dtype):
    target = need("avx2")
    blocking = choose_blocking(target, "i8", 64, 64)
    assert blocking.compute == "i16"
    [pack_a] = compile_functions(
        target, [lambda module: emit_pack(module, target, blocking, "a", source_dtype)]
    )
    source = np.arange(256, dtype=np.uint8).view(NUMPY[source_dtype])
    result = np.zeros(256, np.int16)
    pack_a(source, 0, 1, 1, 256, 1, 256, result, 256)
    assert np.array_equal(result, source.astype(np.int16))


@pytest.mark.parametrize("source_dtype", ["f32", "f16"])
def test_pack_rounds_to_bf16(source_dtype):
    target = need("avx512_bf16")
    blocking = choose_blocking(target, "bf16", 64, 64)
    [pack_a] = compile_functions(
        target, [lambda module: emit_pack(module, target, blocking, "a", source_dtype)]
    )
    rng = np.random.default_rng(0)
    source = rng.standard_normal((5, 37)).astype(NUMPY[source_dtype])
    result = np.zeros((5, 37), ml_dtypes.bfloat16)
    pack_a(source, 37, 1, 5, 37, 5, 37, result, 37)
    want = source.astype(np.float32).astype(ml_dtypes.bfloat16)
    assert np.array_equal(result.view(np.uint16), want.view(np.uint16))


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_all_values_of_16_bits_widen_exactly(dtype):
    target = need("avx2")
    blocking = choose_blocking(target, dtype, 64, 64)
    [pack_a] = compile_functions(
        target, [lambda module: emit_pack(module, target, blocking, "a", dtype)]
    )
    source = np.arange(65536, dtype=np.uint16).view(NUMPY[dtype])
    result = np.zeros(65536, np.float32)
    pack_a(source, 0, 1, 1, 65536, 1, 65536, result, 65536)
    want = source.astype(np.float32)
    assert np.array_equal(result, want, equal_nan=True)

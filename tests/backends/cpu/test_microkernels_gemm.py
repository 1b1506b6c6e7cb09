"""The block GEMM against NumPy; small integers, so sums are exact."""

from dataclasses import replace
from functools import cache
from math import ceil

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_harness import (
    compile_functions,
    emit_object,
    fenced,
    new_module,
    undefined_symbols,
)

from xetl_cpu.llvm import I8, Builder, const
from xetl_cpu.machine import FAMILIES
from xetl_cpu.microkernels.blocking import choose_blocking
from xetl_cpu.microkernels.gemm import emit_block_gemm
from xetl_cpu.microkernels.packing import emit_pack
from xetl_cpu.targets import find_target

NUMPY = {
    **{"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f64": np.float64},
    **{
        "f16": np.float16,
        "i8": np.int8,
        "u8": np.uint8,
        "i16": np.int16,
        "i32": np.int32,
    },
}
BYTES = [f"{a}{b}" for a in ("i8", "u8") for b in ("i8", "u8")]
"""The types of A and B; other products have both of one type."""
CASES = [
    (target, dtype)
    for target in ("avx2", "avx512", "avx512_bf16")
    for dtype in ("f32", "bf16", "f64", *BYTES)
] + [("unrolled", "f32"), ("unrolled", "i8i8")]
sizes = st.integers(1, 70)


def named(name: str):
    """A target; ``unrolled``: with the machine where the end of a loop is not free."""
    if name == "unrolled":
        machine = FAMILIES["sapphire_rapids"]
        return replace(find_target("avx512_bf16"), name=name, machine=machine)
    return find_target(name)


def need(name: str):
    target = named(name)
    if not target.runs_here:
        pytest.skip(f"this machine is no {name}")
    return target


def blocking_for(target, dtype: str, block_m: int, block_n: int):
    if dtype not in BYTES:
        return choose_blocking(target, dtype, block_m, block_n)
    unsigned = (dtype.startswith("u"), dtype.endswith("u8"))
    return choose_blocking(target, "i8", block_m, block_n, unsigned)


@cache
def block_gemm(target_name, dtype, block_m, block_n, out=None):
    target = named(target_name)
    blocking = blocking_for(target, dtype, block_m, block_n)
    [gemm] = compile_functions(
        target, [lambda module: emit_block_gemm(module, target, blocking, out)]
    )
    return blocking, gemm


def panels_of(blocking, b: np.ndarray, panels: int) -> np.ndarray:
    k, n = b.shape
    steps = -(-k // blocking.k_pack)
    shape = (steps * blocking.k_pack, panels * blocking.nr)
    padded = np.zeros(shape, b.dtype)
    padded[:k, :n] = b
    if blocking.arithmetic.shifts_b:
        padded ^= np.array(128, np.uint8).view(b.dtype)
    shape = (steps, blocking.k_pack, panels, blocking.nr)
    order = padded.reshape(shape).transpose(2, 0, 3, 1)
    return np.ascontiguousarray(order)


def random_operands(rng, blocking, dtype, m, n, k):
    """A and B of small numbers (bytes: any) as the block GEMM reads them."""
    if dtype in BYTES:
        made = []
        for shape, name in ((m, k), dtype[:2]), ((k, n), dtype[2:]):
            info = np.iinfo(NUMPY[name])
            values = rng.integers(info.min, info.max + 1, shape)
            # Packed to 16 bits, the signs are in the numbers.
            wide = blocking.compute == "i16"
            made.append(values.astype(np.int16 if wide else NUMPY[name]))
        return made
    type_ = NUMPY[blocking.compute]
    return [rng.integers(-4, 5, shape).astype(type_) for shape in ((m, k), (k, n))]


def operands(blocking, dtype, m, n, k, pad=0, seed=0):
    """A, B, what to pass for them, and scratch with numbers in it."""
    rng = np.random.default_rng(seed)
    a, b = random_operands(rng, blocking, dtype, m, n, k + pad)
    b = b[:k]
    c = rng.integers(-4, 5, (blocking.rows_padded, blocking.ldc))
    c = c.astype(NUMPY[blocking.arithmetic.accumulator])
    panels = -(-n // blocking.nr)
    packed = panels_of(blocking, b, panels)
    used = fenced(a.ravel()[: a.size - pad])
    arguments = (used, k + pad, m, k, fenced(packed), packed[0].size, panels)
    exact = np.int64 if dtype in BYTES else np.float64
    return a[:, :k].astype(exact) @ b.astype(exact), arguments, c


NOTHING = (0, 0, 0)
"""What is packed next: where it starts, the distance of pieces in bytes, how many."""

NOWHERE = (1 << 46, 4 << 20, 256)
"""Memory that nobody has: to ask for it is no access."""


def check(
    target_name, dtype, block, m, n, k, pad=0, seed=0, accumulate=True, later=NOTHING
):
    blocking, gemm = block_gemm(target_name, dtype, *block)
    product, arguments, c = operands(blocking, dtype, m, n, k, pad, seed)
    scratch = fenced(c)
    gemm(*arguments, scratch, accumulate, *later)
    before = c[:m, :n] if accumulate else 0
    assert np.array_equal(scratch[:m, :n], before + product)
    # Panels past the last, and rows past the last strip, are not ours.
    columns = -(-n // blocking.nr) * blocking.nr
    assert np.array_equal(scratch[:, columns:], c[:, columns:])
    strips = -(-m // blocking.mr) * blocking.mr
    assert np.array_equal(scratch[strips:], c[strips:])


@pytest.mark.parametrize(("target_name", "dtype"), CASES)
@given(
    m=sizes,
    n=sizes,
    k=sizes,
    pad=st.integers(0, 5),
    seed=st.integers(0, 99),
    accumulate=st.booleans(),
    later=st.sampled_from([NOTHING, NOWHERE]),
)
@settings(max_examples=40)
def test_any_shape_matches_numpy(
    target_name, dtype, m, n, k, pad, seed, accumulate, later
):
    need(target_name)
    check(target_name, dtype, (70, 70), m, n, k, pad, seed, accumulate, later)


OUTPUTS = [
    *((name, dtype, "f32") for name, dtype in CASES if dtype in ("f32", "bf16")),
    *((name, dtype, "i32") for name, dtype in CASES if dtype in BYTES),
    *((name, "f64", "f64") for name in ("avx2", "avx512")),
    *((name, "f32", "f16") for name in ("avx2", "avx512", "avx512_bf16")),
    ("avx512_bf16", "bf16", "bf16"),
]


@pytest.mark.parametrize(("target_name", "dtype", "out"), OUTPUTS)
@given(
    m=sizes,
    n=sizes,
    k=sizes,
    pad=st.integers(0, 5),
    is_given=st.booleans(),
    accumulate=st.booleans(),
)
@settings(max_examples=30)
def test_results_go_to_the_users_matrix(
    target_name, dtype, out, m, n, k, pad, is_given, accumulate
):
    """Only ``cols`` columns of it, and nothing between rows; else to scratch."""
    need(target_name)
    blocking, gemm = block_gemm(target_name, dtype, 70, 70, out)
    product, arguments, c = operands(blocking, dtype, m, n, k)
    strips = -(-m // blocking.mr) * blocking.mr
    if accumulate:
        # What earlier runs of k left: rows past the last are that one, too.
        c[m:strips] = c[m - 1]
    scratch = fenced(c)
    type_ = NUMPY[out]
    matrix = np.full((m, n + pad), 7, type_)
    given_out = fenced(matrix.ravel()[: matrix.size - pad])
    out_at = given_out if is_given else 0
    gemm(*arguments, scratch, accumulate, *NOTHING, out_at, n + pad, n)
    expected = product + c[:m, :n] if accumulate else product
    if not is_given:
        assert np.array_equal(scratch[:m, :n], expected)
        expected = 7
    else:
        assert np.array_equal(scratch, c)
    matrix[:, :n] = np.asarray(expected).astype(type_)
    assert np.array_equal(given_out, matrix.ravel()[: matrix.size - pad])


@pytest.mark.parametrize(("target_name", "dtype"), CASES)
@pytest.mark.parametrize("block_m", [1, 2, 3, 4, 5, 8, 12, 33])
def test_low_blocks(target_name, dtype, block_m):
    need(target_name)
    for m in {1, block_m}:
        check(target_name, dtype, (block_m, 100), m, 100, 61)


@pytest.mark.parametrize(("target_name", "dtype"), CASES)
@given(m=sizes, n=st.integers(1, 16), k=sizes, accumulate=st.booleans())
@settings(max_examples=20)
def test_narrow_blocks(target_name, dtype, m, n, k, accumulate):
    """Several sets of accumulators, whatever is left over of k."""
    need(target_name)
    check(target_name, dtype, (70, 16), m, n, k, accumulate=accumulate)


@pytest.mark.parametrize(("target_name", "dtype"), CASES)
def test_nothing_to_add(target_name, dtype):
    need(target_name)
    for accumulate in (True, False):
        check(target_name, dtype, (70, 70), 5, 7, 0, accumulate=accumulate)


@pytest.mark.parametrize(("target_name", "dtype"), CASES)
def test_all_tiles_fit_the_registers(target_name, dtype):
    target = named(target_name)
    for m, n in [(1, 1), (1, 500), (7, 33), (64, 64), (99, 16), (256, 256)]:
        blocking = blocking_for(target, dtype, m, n)
        sums = blocking.mr * blocking.vectors
        needed = blocking.sets * sums + blocking.vectors + 1
        assert needed <= target.vector_registers
        assert blocking.rows_padded >= m
        assert blocking.ldc >= n
        assert blocking.kc % blocking.k_pack == 0


def test_sets_hide_the_latency_of_dot_products():
    target = find_target("avx512_bf16")
    sets = {t: choose_blocking(target, t, 256, 16).sets for t in ("f32", "bf16", "i8")}
    assert sets == {"f32": 1, "bf16": 2, "i8": 2}
    assert choose_blocking(target, "bf16", 256, 256).sets == 1


@pytest.mark.parametrize("dtype", BYTES)
def test_the_loop_over_k_reads_bytes_as_they_are(dtype):
    """Whatever their signs: to each word of A belong its products, nothing else."""
    target = find_target("avx512_bf16")
    blocking, module = blocking_for(target, dtype, 64, 64), new_module()
    emit_block_gemm(module, target, blocking)
    text = str(module)
    products = text.count('@"llvm.x86.avx512.vpdpbusd.512"(') - 1
    loops = 2  # words of k, and the rest
    beside = blocking.mr * (dtype in ("i8i8", "u8u8"))
    assert products == loops * blocking.mr * blocking.vectors + beside
    assert " xor " not in text


def test_unknown_dtype_is_refused():
    with pytest.raises(ValueError, match="no block GEMM for i64"):
        choose_blocking(find_target("avx2"), "i64", 64, 64)


@pytest.mark.parametrize("target_name", ["avx2", "avx512", "avx512_bf16"])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64", "i8"])
def test_the_object_needs_no_other(target_name, dtype):
    target = find_target(target_name)
    blocking = choose_blocking(target, dtype, 64, 64)
    module = new_module()
    emitted = [emit_block_gemm(module, target, blocking)]
    emitted += [emit_pack(module, target, blocking, name, dtype) for name in ("a", "b")]
    assert emit_block_gemm(module, target, blocking) is emitted[0]
    for function in emitted:
        assert function.linkage == "internal"
        function.linkage = ""
    assert undefined_symbols(emit_object(target, module)) == []


@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize("unroll", [1, 4, 8])
def test_what_is_asked_for_is_needed_next(monkeypatch, unroll, goes_on):
    """Two blocks of rows, two panels; what is asked for is marked with a 1."""
    target = need("avx512_bf16")
    blocking = replace(choose_blocking(target, "f32", 256, 256), unroll=unroll)
    mr, nr, mc, k = blocking.mr, blocking.nr, blocking.mc, 64
    assert blocking.asks_ahead
    assert mc % mr == 0 == nr * mr * 4 % mc  # strips share a panel without a rest

    def mark(builder, pointer):
        builder.store(const(I8, 1), pointer)

    monkeypatch.setattr(Builder, "prefetch_to_l2", mark)
    [gemm] = compile_functions(
        target, [lambda module: emit_block_gemm(module, target, blocking)]
    )
    lda = 2 * k if goes_on else k
    a = np.zeros((3 * mc + mr, lda, 4), np.uint8)
    b = np.zeros((3, 2, k, nr, 4), np.uint8)  # panels of two runs, one panel behind
    c = np.zeros((blocking.rows_padded, blocking.ldc), np.float32)
    panel_stride = 2 * k * nr
    gemm(a, lda, 2 * mc, k, b, panel_stride, 2, c, False, *NOTHING)
    of_a, of_b = a.any(2), b.any((3, 4))
    # The second panel, and the first one for the second block or the next run.
    assert of_b[1, 0].all()
    assert of_b[0, 0].all()
    assert of_b[0, 1].any() == goes_on
    assert not of_b[1, 1].any()
    assert not of_b[2].any()
    # Rows of the second block; then those behind it, or the first ones further on.
    rows = {*np.flatnonzero(of_a.any(1)).tolist()}
    strips = {row + at for row in range(0, mc, mr) for at in (0, 1)}
    last = strips if goes_on else {2 * mc + row for row in strips}
    assert rows == {mc + row for row in strips} | last
    assert not of_a[:mc, :k].any()
    assert of_a[:mc].any() == goes_on


@pytest.mark.parametrize(
    ("k", "panels", "is_asked"), [(15, 2, 1), (16, 2, 0), (0, 2, 1)]
)
def test_a_result_in_the_order_of_memory_is_left_to_hardware(
    monkeypatch, k, panels, is_asked
):
    """Unless steps are few, or panels leave L2: then strips of a panel follow."""
    target = need("avx512")
    blocking = choose_blocking(target, "f32", 256, 256)
    nr, mr = blocking.nr, blocking.mr
    k = k or ceil(target.machine.l2.size // 8 / (panels * nr * 4)) + 1

    def mark(builder, pointer):
        builder.store(const(I8, 1), pointer)

    monkeypatch.setattr(Builder, "prefetch_to_write", mark)
    [gemm] = compile_functions(
        target, [lambda module: emit_block_gemm(module, target, blocking, "f32")]
    )
    a, b = np.zeros((2 * mr, k), np.float32), np.zeros((panels, k, nr), np.float32)
    c = np.zeros((blocking.rows_padded, blocking.ldc), np.float32)
    out = np.zeros((2 * mr, panels * nr, 4), np.uint8)
    no_columns = 0  # are stored: the marks stay
    run = a, k, 2 * mr, k, b, k * nr, panels, c, False, *NOTHING
    gemm(*run, out, panels * nr, no_columns)
    lines = out.reshape(2 * mr, -1, 64).any(2)
    assert lines.all() if is_asked else not lines.any()


@pytest.mark.parametrize("unroll", [1, 4])
def test_of_panels_in_place_the_next_one_is_asked_for(monkeypatch, unroll):
    """Rows of B are further apart than two panels; what is asked for is marked."""
    target = need("avx512")
    blocking = replace(choose_blocking(target, "f32", 256, 256), unroll=unroll)
    nr, mc, k = blocking.nr, blocking.mc, 64

    def mark(builder, pointer):
        builder.store(const(I8, 1), pointer)

    monkeypatch.setattr(Builder, "prefetch_to_l2", mark)
    [gemm] = compile_functions(
        target, [lambda module: emit_block_gemm(module, target, blocking, has_ldb=True)]
    )
    a = np.zeros((2 * mc, k), np.float32)
    b = np.zeros((k, 4, nr // 16, 64), np.uint8)
    c = np.zeros((blocking.rows_padded, blocking.ldc), np.float32)
    gemm(a, k, mc, k, b, nr, 2, c, False, *NOTHING, 4 * nr, 2 * nr)
    assert b.any(3).all((0, 2)).tolist() == [False, True, True, False]
    assert not b[:, [0, 3]].any()


def test_of_what_is_packed_next_no_more_than_its_rows_is_asked_for(monkeypatch):
    """Rows of a tile of B that is wider than they; those are marked with a 1."""
    target = need("unrolled")
    blocking = choose_blocking(target, "f32", 256, 256)
    k, columns = blocking.chunk, blocking.block_n
    assert columns < k

    def mark(builder, pointer):
        builder.store(const(I8, 1), pointer)

    monkeypatch.setattr(Builder, "prefetch_to_l2", mark)
    [gemm] = compile_functions(
        target, [lambda module: emit_block_gemm(module, target, blocking)]
    )
    c = np.zeros((blocking.rows_padded, blocking.ldc), np.float32)
    # What is asked for may be outside of an array, and would be written there.
    a, b, following = (
        np.zeros((3, *shape), dtype)[1]
        for shape, dtype in [
            ((blocking.rows_padded, k), np.float32),
            ((blocking.panels + 1, k, blocking.nr), np.float32),
            ((k, 4, columns, 4), np.uint8),
        ]
    )
    later = (following, 16 * columns, k)
    gemm(a, k, 256, k, b, k * blocking.nr, blocking.panels, c, False, *later)
    rows = following.any((2, 3))
    assert rows[:, 0].sum() > k // 2
    assert not rows[:, 1:].any()


def test_a_body_of_several_steps_asks_once_for_each():
    target = named("unrolled")
    blocking = choose_blocking(target, "f32", 256, 256)
    text = str(emit_block_gemm(new_module(), target, blocking))
    _, *bodies = text.split("\nk4")
    wide = max((body.partition("\nk")[0] for body in bodies), key=len)
    sums = blocking.mr * blocking.vectors
    assert blocking.unroll == 4
    assert wide.count("llvm.fma") == 4 * sums
    assert wide.count("llvm.prefetch") == 2


@pytest.mark.parametrize(("is_made", "bodies"), [(False, 1), (True, 0)])
def test_what_follows_a_that_the_program_computed_is_not_asked_for(is_made, bodies):
    target = named("avx2")
    blocking = choose_blocking(target, "f32", 60, 64)
    text = str(emit_block_gemm(new_module(), target, blocking, None, is_made))
    lines_of_c = blocking.mr
    assert text.count("llvm.prefetch") - lines_of_c == 2 * bodies

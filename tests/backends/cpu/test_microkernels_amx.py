"""The AMX block GEMM, run by the emulator of tests/native."""

import dataclasses
import re

import ml_dtypes
import numpy as np
import pytest
from native_harness import compile_functions, fenced, new_module
from test_microkernels_gemm import NOTHING, panels_of

from xetl_cpu.llvm import VOID, Builder, define
from xetl_cpu.microkernels.amx_tiles import emit_configure, emit_release
from xetl_cpu.microkernels.blocking import choose_blocking
from xetl_cpu.microkernels.gemm import emit_block_gemm
from xetl_cpu.targets import find_target

pytestmark = pytest.mark.usefixtures("amx")
AMX = find_target("amx")
BF16 = ml_dtypes.bfloat16
NEAR = False, False  # stores neither bypass the caches nor have prefetches
BYTES = [(a, b) for a in (np.int8, np.uint8) for b in (np.int8, np.uint8)]


def configure(module):
    function = define(module, "configure", VOID, [])
    builder = Builder(function.append_basic_block("entry"))
    emit_configure(builder)
    builder.ret_void()
    return function


def release(module):
    function = define(module, "release", VOID, [])
    builder = Builder(function.append_basic_block("entry"))
    emit_release(builder)
    builder.ret_void()
    return function


def run(amx, blocking, a, b, c, accumulate=True):
    """C += A @ B under the emulator; what ran is in ``amx`` afterwards."""
    panels = -(-b.shape[1] // blocking.nr)
    packed = panels_of(blocking, b, panels)
    functions = compile_functions(
        AMX, [lambda m: emit_block_gemm(m, AMX, blocking), configure, release]
    )
    gemm, start, stop = functions
    scratch, rows, k = fenced(c), *a.shape
    with amx.counting():
        start()
        of_b = (fenced(packed), packed[0].size, panels)
        gemm(fenced(a), k, rows, k, *of_b, scratch, accumulate, *NOTHING)
        stop()
    assert not amx.errors()
    return scratch


def run_to(amx, blocking, a, b, to, stride, out="bf16", far=NEAR):
    """Store A @ B to the matrix at ``to``, whose rows are ``stride`` elements apart."""
    (rows, k), n = a.shape, b.shape[1]
    panels = -(-n // blocking.nr)
    packed = fenced(panels_of(blocking, b, panels))
    emit = [lambda module: emit_block_gemm(module, AMX, blocking, out)]
    gemm, start, stop = compile_functions(AMX, [*emit, configure, release])
    c = fenced(np.zeros((blocking.rows_padded, blocking.ldc), np.float32))
    with amx.counting():
        start()
        of_b, of_c = (packed, packed[0].size, panels), (c, False, *NOTHING)
        gemm(fenced(a), k, rows, k, *of_b, *of_c, to, stride, n, *far)
        stop()
    assert not amx.errors()


@pytest.mark.parametrize("block", [(32, 32), (64, 64), (16, 48), (48, 16), (16, 16)])
@pytest.mark.parametrize("k", [32, 96, 1056])
def test_bf16(amx, block, k):
    blocking = choose_blocking(AMX, "bf16", *block)
    rng = np.random.default_rng(0)
    rows, columns = blocking.rows_padded, block[1]
    a = rng.integers(-4, 5, (rows, k)).astype(ml_dtypes.bfloat16)
    b = rng.integers(-4, 5, (k, columns)).astype(ml_dtypes.bfloat16)
    c = rng.integers(-4, 5, (rows, blocking.ldc)).astype(np.float32)
    got = run(amx, blocking, a, b, c)
    want = c.copy()
    want[:, :columns] += a.astype(np.float32) @ b.astype(np.float32)
    assert np.array_equal(got, want)
    strips = rows // blocking.mr * blocking.panels
    tiles = blocking.mr // 16 * (blocking.nr // 16)
    assert amx.total()["tdpbf16ps"] == strips * tiles * k // 32
    assert amx.total()["ldtilecfg"] == amx.total()["tilerelease"] == 1
    # A streams, B stays; C begins as zeros and leaves once for each piece of k. Where
    # the piece is short, both stay. A long k of few panels is one piece.
    kc, least, height = blocking.kc, blocking.kc * blocking.nr, rows
    if k > kc * blocking.panels:
        kc, height = k, blocking.mr
    pieces = [min(kc, k - first) for first in range(0, k, kc)]
    streamed = sum(n for n in pieces if (height + blocking.nr) * n > least)
    assert (k == 1056) == (streamed >= 1024)
    assert amx.total()["tileloaddt1"] == strips * streamed // 32 * (blocking.mr // 16)
    loads = strips * k // 32 * (blocking.mr + blocking.nr) // 16
    assert amx.total()["tileloaddt1"] + amx.total()["tileloadd"] == loads
    pieces = strips * len(pieces)
    assert amx.total()["tilezero"] == amx.total()["tilestored"] == pieces * tiles


@pytest.mark.parametrize(("left", "right"), BYTES)
@pytest.mark.parametrize("k", [64, 192, 1088])
def test_bytes(amx, left, right, k):
    unsigned = (left is np.uint8, right is np.uint8)
    blocking = choose_blocking(AMX, "i8", 32, 40, unsigned)
    rng = np.random.default_rng(0)
    a = rng.integers(0, 256, (32, k)).astype(left)
    b = rng.integers(0, 256, (k, 40)).astype(right)
    c = rng.integers(-9, 9, (32, blocking.ldc)).astype(np.int32)
    got = run(amx, blocking, a, b, c)
    want = c.copy()
    want[:, :40] += (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    assert np.array_equal(got, want)


def test_what_is_in_c_need_not_count(amx):
    blocking = choose_blocking(AMX, "bf16", 32, 32)
    a, b = np.ones((32, 64), ml_dtypes.bfloat16), np.ones((64, 32), ml_dtypes.bfloat16)
    c = np.full((32, blocking.ldc), np.nan, np.float32)
    assert (run(amx, blocking, a, b, c, accumulate=False)[:, :32] == 64).all()
    nothing = run(amx, blocking, a[:, :0], b[:0], c, accumulate=False)
    assert (nothing[:, :32] == 0).all()


@pytest.mark.parametrize(("out", "dtype"), [("bf16", BF16), ("f32", np.float32)])
def test_the_last_piece_goes_to_the_users_matrix(amx, out, dtype):
    """Rows and columns that exist, however many the tiles have."""
    blocking = choose_blocking(AMX, "bf16", 64, 64)
    m, n, k = 41, 50, 2 * blocking.kc + 32
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (m, k)).astype(BF16)  # the last strip overlaps
    b = rng.integers(-2, 3, (k, n)).astype(BF16)
    to = fenced(np.full(m * (n + 3) - 3, 7, dtype))
    run_to(amx, blocking, a, b, to, n + 3, out)
    rows = np.append(to, [dtype(7)] * 3).reshape(m, n + 3)
    want = a.astype("f4") @ b.astype("f4")
    assert np.array_equal(rows[:, :n].astype("f4"), want.astype(dtype).astype("f4"))
    assert (rows[:, n:] == 7).all()


def blocks_of(blocking):
    """What stands in the basic blocks of the product, by name."""
    function = emit_block_gemm(new_module(), AMX, blocking, "bf16")
    return {block.name: str(block) for block in function.blocks}


def step_of_k(found, name):
    """What stands in a loop's body before its inner loop; halves of strips branch."""
    return "".join(
        text for at, text in found.items() if f"{at}.".startswith(f"{name}.")
    )


def test_sums_are_finished_between_the_next_products():
    """What vectors do needs no tile: some rows in each step; what is left follows."""
    found = blocks_of(choose_blocking(AMX, "bf16", 64, 64))
    # The loop over rows ends where that over k goes on: A from L2, or from L1.
    for steps, rows in (("k.1", "row"), ("k.2", "row.1")):
        body = step_of_k(found, steps)
        assert body.count("tdpbf16ps") == 4
        assert f'label %"{rows}"' in body
        assert f'label %"{steps}"' in found[f"row.end{rows[3:]}"]
    tail = [name for name in found if "_finish" in found[name]]
    # The last strip; behind the loops over k, none for whole pieces.
    assert tail == ["block.end", "strip.endif.endif.if"]
    assert "tilestored" in found["strip.endif.endif.endif"]


@pytest.mark.parametrize(("rows", "lines"), [(32, 0), (64, 16), (256, 4)])
def test_the_next_piece_of_b_is_asked_for(rows, lines):
    """Each strip asks for its share, line by line."""
    blocking = choose_blocking(AMX, "bf16", rows, 256)
    found = blocks_of(blocking)
    assert step_of_k(found, "k.1").count("llvm.prefetch") == lines
    strips = blocking.mc // blocking.mr
    assert lines * 64 * blocking.kc // 32 * strips in (0, blocking.kc * 32 * 2)


@pytest.mark.parametrize("far", [NEAR, (True, False), (False, True)])
def test_stores_may_bypass_the_caches_or_have_prefetches(amx, far):
    blocking = choose_blocking(AMX, "bf16", 64, 64)
    m, n, k = 41, 50, 64
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, shape).astype(BF16) for shape in ((m, k), (k, n)))
    to = fenced(np.full((m, 64), 7, BF16))  # whole pages: rows begin on lines
    assert to.ctypes.data % 64 == 0
    run_to(amx, blocking, a, b, to, 64, far=far)
    assert np.array_equal(to[:, :n], (a.astype("f4") @ b.astype("f4")).astype(BF16))
    assert (to[:, n:] == 7).all()


@pytest.mark.parametrize(("m", "n", "tiles"), [(64, 64, 16), (41, 64, 12), (41, 41, 9)])
def test_half_strips_have_half_the_products(amx, m, n, tiles):
    """Of 16 rows or columns that are left."""
    blocking, k = choose_blocking(AMX, "bf16", 64, 64), 64
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, shape).astype(BF16) for shape in ((m, k), (k, n)))
    to = fenced(np.zeros((m, n), np.float32))
    run_to(amx, blocking, a, b, to, n, "f32")
    assert np.array_equal(to, a.astype("f4") @ b.astype("f4"))
    assert amx.total()["tdpbf16ps"] == tiles * k // 32


def test_stores_past_the_caches_are_of_whole_lines():
    blocking = choose_blocking(AMX, "bf16", 64, 64)
    text = str(emit_block_gemm(new_module(), AMX, blocking, "bf16"))
    past = [line for line in text.splitlines() if "nontemporal" in line]
    assert len(past) == 2  # A from L2, or from L1
    assert all("store <32 x i16>" in line for line in past)


def test_there_are_no_tiles_of_floats():
    for dtype in ("f32", "f64", "f16"):
        assert choose_blocking(AMX, dtype, 64, 64).arithmetic.instruction == "fma"


def test_sums_that_begin_in_scratch_are_stored_there(amx):
    """The first piece of k needs no vectors; later ones add what it gave."""
    blocking = choose_blocking(AMX, "bf16", 64, 64)
    text = str(emit_block_gemm(new_module(), AMX, blocking))
    assert len(re.findall(r"tilestored64\S* *\(", text)) == 4
    assert len(re.findall(r"select .*, ptr", text)) == 1
    m, n, k = 41, 50, 2 * blocking.kc + 32
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (m, k)).astype(BF16)  # the last strip overlaps
    b = rng.integers(-2, 3, (k, n)).astype(BF16)
    for some in (k, 64):
        c = np.full((64, blocking.ldc), np.nan, np.float32)
        got = run(amx, blocking, a[:, :some].copy(), b[:some], c, accumulate=False)
        want = a[:, :some].astype("f4") @ b[:some].astype("f4")
        assert np.array_equal(got[:m, :n], want)


def test_blocks_of_rows_leave_each_other_their_sums(amx):
    """The last strip begins in the block before, whose pieces of k are all done."""
    blocking = dataclasses.replace(choose_blocking(AMX, "bf16", 128, 64), mc=64)
    m, n, k = 68, 64, 2 * blocking.kc
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (m, k)).astype(BF16)
    b = rng.integers(-2, 3, (k, n)).astype(BF16)
    c = np.full((128, blocking.ldc), np.nan, np.float32)
    got = run(amx, blocking, a, b, c, accumulate=False)
    assert np.array_equal(got[:m, :n], a.astype("f4") @ b.astype("f4"))


def test_sums_of_earlier_calls_lie_panel_after_panel(amx):
    """Whole lines one after the other, not pieces of 128 bytes in as many pages."""
    blocking = choose_blocking(AMX, "bf16", 64, 96)
    m, n, k = 64, 96, 2 * blocking.kc
    rng = np.random.default_rng(0)
    a, b = (
        rng.integers(-2, 3, shape).astype(BF16) for shape in ((m, 2 * k), (2 * k, n))
    )
    emit = [lambda module: emit_block_gemm(module, AMX, blocking, "bf16")]
    gemm, start, stop = compile_functions(AMX, [*emit, configure, release])
    c, to = (
        fenced(np.full((64, blocking.ldc), np.nan, np.float32)),
        fenced(np.zeros((m, n), BF16)),
    )
    sums = np.zeros((m, n), np.float32)
    with amx.counting():
        start()
        for at, out in ((0, None), (k, to)):
            part = fenced(panels_of(blocking, b[at : at + k], 3))
            of_a = (fenced(a[:, at : at + k].copy()), k, m, k)
            of_b = (part, part[0].size, 3)
            gemm(*of_a, *of_b, c, at > 0, *NOTHING, out, n, n, *NEAR)
            sums += a[:, at : at + k].astype("f4") @ b[at : at + k].astype("f4")
            if out is None:
                panels = c.ravel()[: m * n].reshape(3, 64, 32)
                lies = panels.transpose(1, 0, 2).reshape(64, 96)
                assert np.array_equal(lies, sums)
        stop()
    assert np.array_equal(to, sums.astype(BF16))

"""The AMX block GEMM, run by the emulator of tests/native."""

import ml_dtypes
import numpy as np
import pytest
from native_harness import compile_functions, fenced
from test_microkernels_gemm import panels_of

from xetl_cpu.llvm import VOID, define, ir
from xetl_cpu.microkernels import choose_blocking, emit_block_gemm
from xetl_cpu.microkernels.amx import emit_configure, emit_release
from xetl_cpu.targets import find_target

pytestmark = pytest.mark.usefixtures("amx")
AMX = find_target("amx")
BYTES = [(a, b) for a in (np.int8, np.uint8) for b in (np.int8, np.uint8)]


def configure(module):
    function = define(module, "configure", VOID, [])
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    emit_configure(builder)
    builder.ret_void()
    return function


def release(module):
    function = define(module, "release", VOID, [])
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    emit_release(builder)
    builder.ret_void()
    return function


def run(amx, blocking, a, b, c):
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
        gemm(fenced(a), k, rows, k, fenced(packed), packed[0].size, panels, scratch)
        stop()
    assert not amx.errors()
    return scratch


@pytest.mark.parametrize("block", [(32, 32), (64, 64), (16, 48), (48, 16), (16, 16)])
@pytest.mark.parametrize("k", [32, 96, 544])
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


def test_there_are_no_tiles_of_floats():
    for dtype in ("f32", "f64", "f16"):
        assert choose_blocking(AMX, dtype, 64, 64).arithmetic.instruction == "fma"

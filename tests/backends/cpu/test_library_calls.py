"""Products as calls: which, with what, and what happens where they cannot be made."""

import ctypes
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launching import needs, small_integers
from numpy.linalg import _umath_linalg as umath_linalg

from xetl import xetile
from xetl.backend import Artifact, find_backend
from xetl.errors import LaunchError, LibraryWarning
from xetl.language.signature import Signature
from xetl.settings import config
from xetl.xetile import constexpr, f32
from xetl_cpu.library import serve
from xetl_cpu.library.products import DISPATCH_TYPE, INVOKE_TYPE
from xetl_cpu.library.recording import Call, recording
from xetl_cpu.library.serve import Library, UnusableLibraryError, find_library
from xetl_cpu.microkernels.blocking import choose_blocking
from xetl_cpu.targets import find_target

BF16 = ml_dtypes.bfloat16
CPU = find_backend("cpu")
DISPATCH, INVOKE = "xsmm_brgemm_dispatch", "xsmm_brgemm_invoke"
CONFIGURE = "xsmm_intel_amx_tile_config_invoke"


@pytest.fixture(autouse=True)
def _recording() -> Iterator[None]:
    config.xsmm, config.cache = "recording", False
    yield
    del config.xsmm, config.cache, config.target


@xetile.kernel
def gemm(A, B, C, BM: constexpr = 64, BN: constexpr = 64, BK: constexpr = 32):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), f32)
    for _ in range(0, A.shape[1], BK):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@xetile.kernel
def gemm_of_doubles(A, B, C):
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (8, 8)))
    b = xetile.load_tile(xetile.init_tile(B, [0, 0], (8, 8)))
    xetile.store_tile(a @ b, xetile.init_tile(C, [0, 0], (8, 8)))


def run(target: str, m: int, n: int, k: int, dtype: Any = np.float32) -> list[Call]:
    """Multiply, compare with NumPy; the calls of a launch that has its memory."""
    needs(target)
    config.target = target
    rng = np.random.default_rng(0)
    a, b = (
        small_integers(rng, m, k, dtype=dtype),
        small_integers(rng, k, n, dtype=dtype),
    )
    c = np.zeros((m, n), np.float32)
    grid = -(-m // 64), -(-n // 64)
    gemm[grid](a, b, c)
    c[...] = 7
    with recording() as calls:
        gemm[grid](a, b, c)
    assert np.array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
    return calls


def without_addresses(calls: list[Call]) -> list[tuple[str, tuple[int, ...]]]:
    """Kernels and pointers differ from run to run; what is left are plain numbers."""
    plain = {DISPATCH: slice(None), INVOKE: slice(None, None, 8)}
    return [(call.name, call.arguments[plain[call.name]]) for call in calls]


@pytest.mark.parametrize(("target", "panel"), [("avx512", 32), ("avx2", 16)])
def test_calls_of_a_product_in_f32(target: str, panel: int) -> None:
    plan = choose_blocking(find_target(target), "f32", 64, 64)
    chunk, rows = plan.chunk, plan.rows_padded
    calls = run(target, 64, 64, chunk + 44)
    # The program packs a chunk, and 44 steps: blocks of 32 of k. A's copy has rows of
    # an odd number of lines, C's scratch of 64.
    panels = 64 // panel
    row = chunk + 16
    assert without_addresses(calls) == [
        (DISPATCH, (1, rows, panel, 32, row, panel, 64, 32, 32 * panel, 0)),
        *[(INVOKE, (1, chunk // 32))] * panels,
        *[(INVOKE, (1, 2))] * panels,
    ]
    found = [call.arguments for call in calls[1:]]
    assert {call[2] for call in found} == {found[0][2]}
    # A single program packs B for itself, chunk by chunk into the same memory.
    for part in (found[:panels], found[panels:]):
        for before, after in pairwise(part):
            assert after[4] - before[4] == chunk * panel * 4
            assert after[6] - before[6] == panel * 4
    assert found[panels][4] == found[0][4]
    assert found[panels][6] == found[0][6]


def test_calls_of_a_product_in_bf16() -> None:
    calls = run("avx512_bf16", 64, 64, 64, BF16)
    row = choose_blocking(find_target("avx512_bf16"), "bf16", 64, 64).chunk + 32
    assert without_addresses(calls) == [
        (DISPATCH, (258, 64, 32, 32, row, 32, 64, 32, 1024, 2048)),
        *[(INVOKE, (258, 2))] * 2,
    ]


def test_tiles_are_configured_around_all_programs_of_a_thread() -> None:
    """Whoever calls may ask for tiles; NumPy needs none, so this runs anywhere."""
    calls = run("amx", 128, 64, 64, BF16)
    names = [call.name for call in calls]
    assert names.count(DISPATCH) == 1
    assert next(call for call in calls if call.name == DISPATCH).arguments[-1] == 2240
    thread = [CONFIGURE, *[INVOKE] * 4, CONFIGURE]
    assert [name for name in names if name in thread] == thread


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16])
@pytest.mark.parametrize("target", ["host", "avx2"])
@pytest.mark.parametrize("shape", [(70, 75, 45), (1, 200, 549), (3, 1, 1)])
def test_ragged_products(target: str, shape: tuple[int, int, int], dtype: Any) -> None:
    calls = run(target, *shape, dtype)
    assert INVOKE in {call.name for call in calls}


def test_doubles_are_compiled_inline() -> None:
    a = np.arange(64.0).reshape(8, 8)
    c = np.zeros((8, 8))
    with recording() as calls:
        gemm_of_doubles[1](a, a, c)
    assert np.array_equal(c, a @ a)
    assert calls == []
    explained = str(gemm_of_doubles.explain(a, a, c))
    assert "compiled inline: no library is called for f64" in explained


def operands() -> list[Any]:
    rng = np.random.default_rng(0)
    a, b = (small_integers(rng, 64, 64) for _ in range(2))
    return [a, b, np.zeros((64, 64), np.float32)]


def test_inline_calls_nobody() -> None:
    config.xsmm = "inline"
    assert "xsmm_brgemm" not in gemm.ir("llvm", *operands())
    config.xsmm = "recording"
    text = gemm.ir("llvm", *operands())
    assert 'call void @"xsmm_brgemm_invoke"' in text
    assert "xetl_block_gemm" not in text


# Where a call cannot be made --------------------------------------------------------


def test_a_library_that_is_missing_is_said_and_not_needed() -> None:
    config.xsmm = "/there/is/no/library.so"
    a, b, c = operands()
    with pytest.warns(LibraryWarning, match=r"library\.so serves no products") as seen:
        gemm[1, 1](a, b, c)
    assert seen[0].filename == __file__  # the user's line, none of ours
    assert np.array_equal(c, a @ b)


def test_a_library_of_something_else_is_refused() -> None:
    with pytest.raises(UnusableLibraryError, match="no function `xsmm_brgemm_disp"):
        find_library(umath_linalg.__file__)


def broken(monkeypatch: pytest.MonkeyPatch, mode: str, **functions: Any) -> list[Any]:
    """Let ``mode`` be the recording library with other functions; keep them alive."""
    good = find_library("recording")
    others = {
        f"xsmm_brgemm_{name}": ctypes.cast(function, ctypes.c_void_p).value
        for name, function in functions.items()
    }
    library = Library(mode, {**good.addresses, **others}, mode, good.quietly)
    monkeypatch.setattr(serve, "_open", lambda asked: library)
    config.xsmm = mode
    return list(functions.values())


@INVOKE_TYPE
def does_nothing(*arguments: Any) -> None:
    pass


@DISPATCH_TYPE
def has_only_small_ones(*numbers: int) -> int:
    return find_library("recording").dispatch(numbers) if numbers[1] == 2 else 0


def test_a_library_that_computes_wrong_numbers_is_refused(monkeypatch) -> None:
    broken(monkeypatch, "/wrong.so", invoke=does_nothing)
    a, b, c = operands()
    with pytest.warns(LibraryWarning, match="computes wrong numbers in f32"):
        gemm[1, 1](a, b, c)
    assert np.array_equal(c, a @ b)


def test_a_product_without_a_kernel_is_compiled_inline(monkeypatch) -> None:
    broken(monkeypatch, "/small.so", dispatch=has_only_small_ones)
    a, b, c = operands()
    with pytest.warns(LibraryWarning, match=r"/small\.so has no kernel for f32 \["):
        gemm[1, 1](a, b, c)
    assert np.array_equal(c, a @ b)
    with pytest.warns(LibraryWarning):
        assert "xsmm_brgemm" not in gemm.ir("llvm", a, b, c)


def test_a_cached_kernel_is_not_loaded_when_its_calls_have_gone() -> None:
    in_pairs_of_f32 = [1, 64, 32, 32, 272, 32, 64, 32, 1024, 2048]
    meta = {"target": "avx2+recording", "dispatches": [in_pairs_of_f32]}
    with pytest.raises(LaunchError, match="and has none now"):
        CPU.load(Artifact(b"", meta), Signature(()))


def test_caches_tell_them_apart() -> None:
    keys = {CPU.cache_key(CPU.variant("avx2"))}
    config.xsmm = "inline"
    assert CPU.variant("avx2") == "avx2"
    keys.add(CPU.cache_key(CPU.variant("avx2")))
    assert len(keys) == 2


def test_other_words_are_refused(monkeypatch) -> None:
    del config.xsmm
    monkeypatch.setenv("XETL_XSMM", "mkl")
    with pytest.raises(LaunchError, match="it must be inline, libxsmm, recording"):
        gemm[1, 1](*operands())
    config.xsmm = "inline"

"""What kernels say about themselves: `explain`, `stats`, `why_recompiled`, `ir`."""

from __future__ import annotations

import linecache
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xetl
from xetl import xetile
from xetl.errors import LaunchError
from xetl.language.dtypes import f32
from xetl.language.operation import constexpr
from xetl.runtime.kernel import Kernel, kernel


@kernel
def gemm(A, B, C, BM: constexpr = 32):
    m = xetile.program_id(0) * BM
    acc = xetile.zeros((BM, 32), f32)
    for k in range(0, A.shape[1], 16):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, 16)))
        b = xetile.load_tile(xetile.init_tile(B, [k, 0], (16, 32)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m, 0], (BM, 32)))


@kernel
def shared(A):
    local = xetile.init_tile(xetile.slm((16, 16), f32), [0, 0], (16, 16))
    mask = xetile.init_tile(xetile.slm((8, 16), xetile.i1), [0, 0], (8, 16))
    a = xetile.init_tile(A, [0, 0], (16, 16))
    xetile.store_tile(xetile.load_tile(a), local)
    xetile.store_tile(xetile.load_tile(mask), mask)
    xetile.barrier()
    xetile.store_tile(xetile.load_tile(local), a)


SIGNATURE = "f32[M,K] f32[K,N] f32[M,N]"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XETL_CACHE_DIR", str(tmp_path / "cache"))


def x(dtype: str = "f4") -> np.ndarray:
    return np.zeros((32, 32), dtype)


# explain


@pytest.mark.parametrize("target", [None, "avx2", "avx512", "avx512_bf16"])
def test_explain_shows_the_line_and_what_became_of_it(target: str | None) -> None:
    found = gemm.explain(x(), x(), x(), target=target)
    assert (found.kernel, found.target) == ("gemm", target or "host")
    (raised,) = [r for r in found.remarks if r.topic == "brgemm"]
    assert raised.source.strip() == "acc = xetile.tile_mma(a, b, acc)"
    assert linecache.getline(__file__, raised.line).rstrip() == raised.source
    report = str(found)
    assert f"{raised.line} | {raised.source}" in report
    assert "brgemm: the loop over k is one batch-reduce GEMM" in report
    assert "packing: b is packed" in report
    assert __file__ in report
    assert report.count(raised.source) == 1


def test_explain_takes_a_signature_and_needs_no_grid() -> None:
    described = gemm.explain(SIGNATURE, BM=64)
    assert str(described) == str(gemm.explain(x(), x(), x(), BM=64))


def test_explain_tells_of_loops_too() -> None:
    found = shared.explain("f32[M,N]", target="avx2")
    texts = {(r.topic, r.text) for r in found.remarks}
    assert ("loop", "computed and stored in vectors of 8") in texts


@kernel
def single(A):
    A[0, 0] = A[1, 1]


def test_a_kernel_without_remarks_says_so() -> None:
    found = single.explain("f32[M,N]")
    assert found.remarks == ()
    assert (
        str(found) == "single, compiled by `cpu` for `host`: there is nothing to remark"
    )
    assert not gemm.explain(SIGNATURE, backend="reference").remarks


def write(path: Path, lines_before: int) -> Kernel:
    text = """
    from xetl import xetile

    @xetile.function
    def product(a, b):
        return xetile.tile_mma(a, b)

    @xetile.kernel
    def k(A, C):
        xetile.device_assert(A.shape[0] > 1, "small")
        a = xetile.load_tile(xetile.init_tile(A, [0, 0], (16, 16)))
        xetile.store_tile(product(a, a), xetile.init_tile(C, [0, 0], (16, 16)))
    """
    path.write_text("\n" * lines_before + textwrap.dedent(text))
    linecache.clearcache()
    scope: dict[str, Any] = {"__name__": "user"}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return scope["k"]


def test_lines_of_helpers_and_of_code_that_moved(tmp_path: Path) -> None:
    path = tmp_path / "user.py"
    for before in (0, 10):
        k = write(path, before)
        remarks = k.explain("f32[M,N] f32[M,N]").remarks
        assert remarks
        for remark in remarks:
            assert remark.source.strip() == "return xetile.tile_mma(a, b)"


def test_lines_of_assertions_in_code_that_moved(tmp_path: Path) -> None:
    """Code from the disk named the line at which the kernel was compiled."""
    for before in (0, 10, 0):
        k = write(tmp_path / "user.py", before)
        for _ in range(2):
            with pytest.raises(LaunchError, match="assertion failed: small") as error:
                k[1](*np.zeros((2, 1, 16), np.float32))
            assert (error.value.line, error.value.column) == (before + 10, 5)


def test_a_helper_of_another_file(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text(
        "from xetl import xetile\n@xetile.function\ndef product(a, b):\n"
        "    return a @ b\n"
    )
    scope: dict[str, Any] = {"__name__": "helpers"}
    text = (tmp_path / "helpers.py").read_text()
    exec(compile(text, str(tmp_path / "helpers.py"), "exec"), scope)
    product = scope["product"]

    @kernel
    def k(A, C):
        a = xetile.load_tile(xetile.init_tile(A, [0, 0], (16, 16)))
        xetile.store_tile(product(a, a), xetile.init_tile(C, [0, 0], (16, 16)))

    for _ in range(2):
        found = k.explain("f32[M,N] f32[M,N]")
        (remark, *_) = found.remarks
        assert (remark.line, remark.source) == (4, "    return a @ b")
        assert remark.file == str(tmp_path / "helpers.py")
        assert f"--> {remark.file}" in str(found)


def test_wrong_kernels_and_calls_are_errors() -> None:
    with pytest.raises(LaunchError, match="has no target `avx3`"):
        gemm.explain(SIGNATURE, target="avx3")
    with pytest.raises(LaunchError, match="has no target `pvc`"):
        gemm.stats(SIGNATURE, target="pvc", backend="cpu")
    with pytest.raises(LaunchError, match=r"the signature .* is wrong"):
        gemm.explain("f33[M]")
    with pytest.raises(LaunchError, match="without `B`, `C`"):
        gemm.stats(x())


# stats


def test_stats() -> None:
    found = gemm.stats(SIGNATURE)
    assert (found.kernel, found.backend, found.target) == ("gemm", "cpu", "host")
    assert found.compile_ms is not None
    assert 1 < found.compile_ms < 60_000
    assert found.code_bytes is not None
    assert 100 < found.code_bytes < 1_000_000
    assert found.slm_bytes == 0
    assert (found.spill_bytes, found.grf, found.tile_config) == (None, None, None)
    assert f"code_bytes   {found.code_bytes}" in str(found)


def test_stats_has_the_tile_configuration_of_amx() -> None:
    found = gemm.stats("bf16[M,K] bf16[K,N] f32[M,N]", target="amx").tile_config
    assert isinstance(found, str)
    config = bytes.fromhex(found)
    assert (len(config), config[0], max(config[48:])) == (64, 1, 16)
    assert gemm.stats(SIGNATURE, target="amx").tile_config is None  # f32: no tiles


@xetile.kernel
def scaled(X, Y, factor=2.0):
    x = xetile.load_tile(xetile.init_tile(X, [0, 0], (16, 16)))
    xetile.store_tile(x * factor, xetile.init_tile(Y, [0, 0], (16, 16)))


def test_stats_of_a_description_beside_a_default() -> None:
    for target in ("host", "pvc"):
        assert scaled.stats("f32[M,N] f32[M,N]", target=target).target == target
        found = scaled.stats("f32[M,N] f32[M,N]", target=target, factor=3.0)
        assert found.target == target


def test_stats_count_shared_memory() -> None:
    assert shared.stats(x()).slm_bytes == 16 * 16 * 4 + 8 * 16


def test_stats_of_the_interpreter() -> None:
    found = gemm.stats(x(), x(), x(), backend="reference")
    assert found.compile_ms is not None
    assert found.code_bytes is None


# targets


def test_code_for_another_processor_is_made_but_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gemm.warmup(SIGNATURE, target="avx512_bf16")
    targets = pytest.importorskip("xetl_cpu.targets")
    here = frozenset({"avx", "avx2", "fma", "f16c", "bmi2"})
    monkeypatch.setattr(targets, "host_features", lambda: here)
    monkeypatch.setenv("XETL_TARGET", "avx512")
    with pytest.raises(LaunchError, match="this processor cannot run code for target"):
        gemm[1](x(), x(), x())
    assert gemm.stats(SIGNATURE).target == "avx512"
    monkeypatch.setenv("XETL_TARGET", "avx2")
    gemm[1](x(), x(), x())


# why_recompiled


def fresh() -> Any:
    def k(A, B=None, n=1, F: constexpr = None, BM: constexpr = 32):
        return A * SCALE

    return kernel(k)


SCALE = 2


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda k: k[1](x("f8")), "`A` changed: dtype f32 -> f64"),
        (lambda k: k[1](np.zeros(3, "f4")), "`A` changed: rank 2 -> 1"),
        (lambda k: k[1](x().T), "`A` changed: layout stride 1 in dim 1 -> stride 1 in"
         " dim 0"),
        (lambda k: k[1](x()[:, ::2]), "`A` changed: layout stride 1 in dim 1 -> without"
         " a stride of 1"),
        (lambda k: k[1](x(), x()), "`B` changed: None -> an array of f32, rank 2"),
        (lambda k: k[1](x(), 3), "`B` changed: None -> i64"),
        (lambda k: k[1](x(), n=1.5), "`n` changed: i64 -> f64"),
        (lambda k: k[1](x(), BM=64), "`BM` changed: 32 -> 64"),
        (lambda k: k[1](x(), BM=32.0), "`BM` changed: 32 -> 32.0"),
        (lambda k: k[1](x(), F=len), "`F` changed: None -> builtins.len"),
        (lambda k: k[1](x(), F=lambda v: v), "`F` changed: None -> function <lambda>"),
        (lambda k: k[1](x(), backend="reference"), "the backend changed: cpu -> "),
        (lambda k: k.warmup("f32[M,N]", target="avx2"), "the target changed: host ->"),
    ],
)  # fmt: skip
def test_what_changed(fake: Any, call: Any, reason: str) -> None:
    k = fresh()
    assert k.why_recompiled() == "`k` has not been compiled in this process"
    k[1](x())
    assert "because it had not been compiled before" in k.why_recompiled()
    call(k)
    head, first, *_ = k.why_recompiled().splitlines()
    assert head == "`k` was compiled because:"
    assert first.strip().startswith(reason)
    call(k)
    assert k.why_recompiled().splitlines()[1] == first


def test_two_things_at_once(fake: Any) -> None:
    k = fresh()
    k[1](x())
    k[1](x("i2").T, BM=5)
    assert [line.strip() for line in k.why_recompiled().splitlines()[1:]] == [
        "`A` changed: dtype f32 -> i16, layout stride 1 in dim 1 -> stride 1 in dim 0",
        "`BM` changed: 32 -> 5",
    ]


def test_a_captured_value(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    k = fresh()
    k[1](x())
    monkeypatch.setitem(globals(), "SCALE", 3)
    k[1](x())
    assert k.why_recompiled().splitlines()[1:] == [
        "  the captured value `SCALE` changed: 2 -> 3"
    ]


def test_the_last_compile_of_an_earlier_process_counts(
    fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.cacheable = True
    fresh()[1](x())
    k = fresh()
    k[1](x())
    assert k.why_recompiled() == "`k` has not been compiled in this process"
    k[1](x("f8"))
    assert "dtype f32 -> f64" in k.why_recompiled()
    monkeypatch.setattr(xetl, "__version__", "99")
    other = fresh()
    other[1](x("f8"))
    assert "the version of xetl changed: 0.1.0 -> 99" in other.why_recompiled()


def test_a_cache_that_was_emptied(fake: Any, tmp_path: Path) -> None:
    fake.cacheable = True
    fresh()[1](x())
    for path in (tmp_path / "cache").glob("[0-9a-f]*.xetl"):
        path.unlink()
    k = fresh()
    k[1](x())
    assert "nothing changed: its code was not in the cache" in k.why_recompiled()


@pytest.mark.parametrize("edited", ["k", "helper"])
def test_edited_sources(fake: Any, tmp_path: Path, edited: str) -> None:
    path = tmp_path / "user.py"
    text = "def helper(v):\n    return v * 2\n\ndef k(A):\n    return helper(A) + 1\n"
    fake.cacheable = True
    for version in (text, text.replace("* 2" if edited == "helper" else "+ 1", "* 3")):
        path.write_text(version)
        linecache.clearcache()
        scope: dict[str, Any] = {"__name__": "user"}
        exec(compile(version, str(path), "exec"), scope)
        k = kernel(scope["k"])
        k[1](x())
    lines = k.why_recompiled().splitlines()[1:]
    assert lines == [f"  the source of `{edited}` changed"]


# ir


def test_an_unknown_stage_lists_the_stages() -> None:
    with pytest.raises(LaunchError) as caught:
        gemm.ir("spirv", SIGNATURE, backend="cpu")
    assert caught.value.code == "X0812"
    (listed,) = caught.value.notes
    for stage in ("xetile", "raise-to-brgemm", "xsmm", "loops", "llvm", "asm"):
        assert f" {stage}" in listed
    with pytest.raises(LaunchError, match="`lops`") as caught:
        gemm.ir("lops", SIGNATURE)
    assert "did you mean `loops`?" in (caught.value.help or "")


def test_a_target_or_a_stage_is_asked_of_the_backend_that_has_it() -> None:
    assert gemm.stats(SIGNATURE, target="bmg").grf in (128, 256)
    assert "xegpu.create_nd_tdesc" in gemm.ir("xegpu", SIGNATURE)
    assert "Capability" in gemm.ir("spirv", SIGNATURE, target="pvc")
    assert "gpu.func" in gemm.ir("xetile", SIGNATURE, target="pvc")
    with pytest.raises(LaunchError, match="no stage or pass called `spirv`"):
        gemm.ir("spirv", SIGNATURE, backend="cpu")


def test_of_a_text_as_well() -> None:
    text = """
    func.func @k(%A: memref<8x16xf32>) {
      %t = xetile.init_tile %A[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
      %v = xetile.load_tile %t : !xetile.tile<8x16xf32> -> vector<8x16xf32>
      xetile.store_tile %v, %t : vector<8x16xf32>, !xetile.tile<8x16xf32>
      return
    }"""
    k = xetl.load_mlir(text)["k"]
    assert "Capability" in k.ir("spirv", target="bmg")
    assert "xegpu.load_nd" in k.ir("xegpu")


def test_what_is_said_of_all_programs_of_a_text_has_a_line() -> None:
    text = Path(__file__, "../../conformance/sg_calls.mlir").resolve().read_text()
    # Neighbours lie along a row.
    text = text.replace("block_id x", "block_id y").replace("[%m, 0]", "[0, %m]")
    said = xetl.load_mlir(text)["k"].explain(target="avx2")
    text = "neighbours run as one, row by row"
    (about,) = [each for each in said.remarks if each.text == text]
    assert about.source.strip().startswith("xetile.store_tile %s, %t")
    assert f"{about.line} | {about.source}" in str(said)
    assert "(no line)" not in str(said)


@kernel
def one_of_each(X, Y, S, Z):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (8, 64)))
    xetile.store_tile(xetile.cumsum(v, 1), xetile.init_tile(Y, [0, 0], (8, 64)))
    xetile.store_tile(xetile.sort(v, 1), xetile.init_tile(S, [0, 0], (8, 64)))
    xetile.atomic_rmw_tile("add", v, xetile.init_tile(Z, [0, 0], (8, 64)))


def test_scans_sorts_and_atomics_are_explained() -> None:
    said = one_of_each.explain(" ".join(["f32[M,N]"] * 4), target="avx512")
    first = one_of_each.fn.__code__.co_firstlineno
    about = [each for each in said.remarks if "x 64" in each.text]
    found = {each.line - first: each.text for each in about}
    assert found == {
        3: "a pass over 8 x 64 elements, along rows, in vectors of 16",
        4: "8 x 64 elements are sorted by a network of comparisons in memory, in "
        "vectors of 16",
        5: "8 x 64 elements, one after the other",
    }

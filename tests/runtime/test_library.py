"""`xetl.load_mlir`: what is read, what is refused, and how kernels are called."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xetl
from xetl.errors import CheckError, IRError, LaunchError, MissingKernelError

TILE = "!xetile.tile<16x16xf32>"
COPY = f"""
gpu.module @m {{
  gpu.func @copy(%a: memref<16x16xf32>, %b: memref<16x16xf32>, %n: i32) kernel {{
    %t = xetile.init_tile %a[0, 0] : memref<16x16xf32> -> {TILE}
    %v = xetile.load_tile %t : {TILE} -> vector<16x16xf32>
    %u = xetile.init_tile %b[0, 0] : memref<16x16xf32> -> {TILE}
    xetile.store_tile %v, %u : vector<16x16xf32>, {TILE}
    gpu.return
  }}
  func.func @plain(%a: memref<?xf32>) {{
    return
  }}
}}
"""
MAPS = """
#m = #xetile.wg_map<sg_layout = [{0}], sg_data = [8, 8]>
#n = #xetile.wg_map<sg_layout = [2, 2], sg_data = [8, 8]>
func.func @k(%a: memref<32x32xf32>) {{
  %t = xetile.init_tile %a[0, 0] : memref<32x32xf32> -> !xetile.tile<32x32xf32, #m>
  %u = xetile.init_tile %a[0, 0] : memref<32x32xf32> -> !xetile.tile<32x32xf32, #n>
  return
}}
"""


def arrays() -> tuple[Any, Any]:
    return np.arange(256, dtype="f4").reshape(16, 16), np.zeros((16, 16), "f4")


def wrong(text: str) -> IRError:
    with pytest.raises(IRError) as caught:
        xetl.load_mlir(text)
    return caught.value


def test_importing_xetl_loads_no_parser() -> None:
    code = "import sys, xetl; sys.exit('xdsl' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_library_is_a_mapping() -> None:
    library = xetl.load_mlir(COPY)
    assert list(library) == ["copy", "plain"]
    assert "copy" in library
    assert "nope" not in library
    assert "gpu.func @copy" in str(library)
    assert xetl.load_mlir(str(library)).keys() == library.keys()


def test_a_missing_kernel_is_a_launch_error_and_a_key_error() -> None:
    with pytest.raises(MissingKernelError) as caught:
        xetl.load_mlir(COPY)["cpy"]
    assert isinstance(caught.value, KeyError)
    assert caught.value.help == "did you mean `copy`?"


def test_wrong_syntax_has_a_place() -> None:
    error = wrong(COPY.replace("gpu.return", "gpu.leave"))
    assert (error.code, error.line, error.column) == ("X0701", 8, 5)
    error = wrong(COPY.replace("%v, %u", "%w, %u"))
    assert (error.code, error.line) == ("X0701", 7)


def test_a_broken_rule_has_a_place() -> None:
    error = wrong(COPY.replace("vector<16x16xf32>", "vector<16x8xf32>"))
    assert (error.code, error.line, error.column) == ("X0702", 5, 10)
    assert error.source_line is not None


def test_two_functions_of_one_name() -> None:
    assert wrong(COPY.replace("@plain", "@copy")).code == "X0702"


def test_blocks_in_a_chain_are_merged_and_others_refused() -> None:
    chain = "func.func @f() {\n  cf.br ^a\n^a:\n  cf.br ^b\n^b:\n  return\n}"
    assert "cf.br" not in str(xetl.load_mlir(chain))
    error = wrong(chain.replace("return", "cf.br ^a"))
    assert error.code == "X0703"


def test_the_level_follows_from_the_maps() -> None:
    assert 'xetile.level = "subgroup"' in str(xetl.load_mlir(COPY)["copy"])
    assert 'xetile.level = "workgroup"' in str(xetl.load_mlir(MAPS.format("2, 2"))["k"])


def test_maps_for_different_numbers_of_subgroups() -> None:
    kernel = xetl.load_mlir(MAPS.format("4, 4"))["k"]
    with pytest.raises(IRError) as caught:
        kernel[1](np.zeros((32, 32), "f4"))
    assert caught.value.code == "X0704"


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_launching(backend: str) -> None:
    a, b = arrays()
    xetl.load_mlir(COPY)["copy"][(1, 1, 1), (1, 1, 1)](a, b, 3, backend=backend)
    assert np.array_equal(a, b)


WRONG_CALLS: dict[str, tuple[str, Callable[[Any, Any, Any], object]]] = {
    "`b`": ("X0824", lambda k, a, b: k[1](a, b[:8], 3)),
    "stride": ("X0824", lambda k, a, b: k[1](a, b.T, 3)),
    "dtype f64": ("X0824", lambda k, a, b: k[1](a.astype("f8"), b, 3)),
    "rank 1": ("X0824", lambda k, a, b: k[1](a.ravel(), b, 3)),
    "`n` is a float": ("X0805", lambda k, a, b: k[1](a, b, 3.5)),
    "does not fit": ("X0805", lambda k, a, b: k[1](a, b, 1 << 40)),
    "3 arguments": ("X0803", lambda k, a, b: k[1](a, b)),
    "`grd=`": ("X0804", lambda k, a, b: k[1](a, b, 3, grd=1)),
    "without a grid": ("X0802", lambda k, a, b: k(a, b, 3)),
    "empty grid": ("X0802", lambda k, a, b: k[(1, 1, 1), (0, 1, 1)](a, b, 3)),
    "grid of 4 sizes": ("X0802", lambda k, a, b: k[[1, 1, 1, 1]](a, b, 3)),
    "bound without a grid": ("X0802", lambda k, a, b: k.bind(a, b, 3)),
    "interpreted without": ("X0802", lambda k, a, b: k.interpret(a, b, 3)),
    "no check called": ("X0817", lambda k, a, b: k.interpret(a, b, 3, check="x")),
    "not on `cpu`": ("X0810", lambda k, a, b: k.interpret(a, b, 3, backend="cpu")),
    "`grdd=`": ("X0804", lambda k, a, b: k.bind(a, b, 3, grid=1, grdd=2)),
    "3 grids": ("X0802", lambda k, a, b: k[(1,), (1,), (1,)](a, b, 3)),
}


@pytest.mark.parametrize("what", WRONG_CALLS)
def test_wrong_calls(what: str) -> None:
    code, call = WRONG_CALLS[what]
    a, b = arrays()
    with pytest.raises(LaunchError, match=what) as caught:
        call(xetl.load_mlir(COPY)["copy"], a, b)
    assert caught.value.code == code
    assert not b.any()


def test_a_path_is_no_text() -> None:
    with pytest.raises(IRError, match="an operation is expected") as caught:
        xetl.load_mlir("/kernels/copy.mlir")
    assert (caught.value.code, caught.value.line) == ("X0701", 1)
    with pytest.raises(IRError, match="found a PosixPath") as caught:
        xetl.load_mlir(Path("/kernels/copy.mlir"))  # type: ignore[arg-type]
    assert "read_text" in str(caught.value.help)


def test_what_cpu_cannot_do_names_the_operation_and_its_line() -> None:
    text = COPY.replace(
        "    xetile.store_tile",
        "    %i = arith.index_cast %n : i32 to index\n"
        "    %p = memref.alloc(%i) : memref<?xf32>\n"
        "    xetile.store_tile",
    )
    kernel = xetl.load_mlir(text)["copy"]
    a, b = arrays()
    kernel[1](a, b, 3, backend="reference")
    with pytest.raises(IRError, match=r"memref\.alloc") as caught:
        kernel[1](a, b, 3, backend="cpu")
    assert (caught.value.code, caught.value.line) == ("X0705", 8)
    with pytest.raises(IRError, match=r"memref\.alloc"):
        kernel.ir("llvm", backend="cpu")


def test_stages() -> None:
    kernel = xetl.load_mlir(COPY)["copy"]
    assert "xetile.load_tile" in kernel.ir("xetile")
    assert "scf.parallel" in kernel.ir("materialize-grid")
    assert "define" in kernel.ir("llvm")
    with pytest.raises(LaunchError, match="no stage"):
        kernel.ir("lops")


TWINS = """
gpu.module @a { gpu.func @k() kernel { gpu.return } gpu.func @l() { gpu.return } }
gpu.module @b { gpu.func @k() kernel { gpu.return } }
func.func @l() { return }
func.func @h() { return }
"""


def test_kernels_of_one_name_are_called_by_their_modules() -> None:
    library = xetl.load_mlir(TWINS)
    assert sorted(library) == ["a::k", "b::k", "h", "l"]
    assert library["a::l"] is library["l"]
    assert library["b::k"].qualified_name == "b::k"
    with pytest.raises(MissingKernelError, match="no kernel called `k`"):
        library["k"]
    with pytest.raises(MissingKernelError, match="no kernel called `b::l`"):
        library["b::l"]


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_a_plan(backend: str) -> None:
    a, b = arrays()
    kernel = xetl.load_mlir(COPY)["copy"]
    plan = kernel.bind(a, b, 3, grid=[1, 1], subgroups=1, backend=backend)
    assert not b.any()
    for _ in range(2):
        a += 1
        plan()
        assert np.array_equal(a, b)


def test_code_for_any_arguments_is_that_of_a_launch(tmp_path: Path) -> None:
    kernel = xetl.load_mlir(COPY)["copy"]
    kernel.warmup()
    a, b = arrays()
    with xetl.no_compile():
        kernel[1](a, b, 3, backend="cpu")
        assert kernel.stats(a, b, 3, grid=1).code_bytes
    assert np.array_equal(a, b)
    described = str(kernel.stats(target="avx2"))
    assert described.startswith("copy, compiled by `cpu` for `avx2`\n  compile_ms")


def test_interpreting() -> None:
    a, b = arrays()
    kernel = xetl.load_mlir(COPY)["copy"]
    kernel.interpret(a, b, 3, grid=1)
    assert np.array_equal(a, b)
    b[:] = 0
    with pytest.raises(CheckError, match="is written by program") as caught:
        kernel.interpret(a, b, 3, grid=2)
    assert caught.value.line == 7
    assert "xetile.store_tile %v, %u" in str(caught.value)
    assert not b.any()


DOUBLED = """
func.func private @unused(%x: f32) -> f32 { return %x : f32 }
func.func private @inner(%v: vector<8x16xf32>) -> vector<8x16xf32> {
  %w = arith.addf %v, %v : vector<8x16xf32>
  return %w : vector<8x16xf32>
}
func.func private @outer(%v: vector<8x16xf32>) -> vector<8x16xf32> {
  %w = func.call @inner(%v) : (vector<8x16xf32>) -> vector<8x16xf32>
  return %w : vector<8x16xf32>
}
func.func @first(%a: memref<8x16xf32>) {
  %t = xetile.init_tile %a[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
  %v = xetile.load_tile %t : !xetile.tile<8x16xf32> -> vector<8x16xf32>
  %w = func.call @outer(%v) : (vector<8x16xf32>) -> vector<8x16xf32>
  xetile.store_tile %w, %t : vector<8x16xf32>, !xetile.tile<8x16xf32>
  return
}
func.func @second(%a: memref<8x16xf32>) {
  return
}
"""


@pytest.mark.parametrize("target", ["avx2", "pvc"])
def test_a_kernel_comes_with_the_functions_that_it_calls_alone(target: str) -> None:
    kernel = xetl.load_mlir(DOUBLED)["first"]
    text = kernel.ir("xetile", target=target)
    assert "@inner" in text
    assert "@outer" in text
    assert "@second" not in text
    assert "@unused" not in text
    assert kernel.ir("asm" if target == "avx2" else "spirv", target=target)

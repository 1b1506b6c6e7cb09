"""Modules bring code of the host; kernels are read whatever is in it."""

from __future__ import annotations

import pytest

import xetl
from xetl.errors import IRError

KERNEL = """
  gpu.module @m {
    gpu.func @k(%a: memref<4xf32>) kernel { gpu.return }
  }
"""
HOST = """
  func.func @main(%a: memref<4xf32>, %s: f32) -> i32 attributes {llvm.emit} {
    // a brace } in a comment, and below one in a string
    %t = gpu.wait async {note = "}"}
    linalg.fill ins(%s : f32) outs(%a : memref<4xf32>)
    scf.if %c { toy.print %a : !toy.thing<3> }
    return %r : i32
  }
"""


@pytest.mark.parametrize("text", [HOST + KERNEL, KERNEL + HOST])
def test_a_host_function_of_unknown_operations_keeps_its_head(text: str) -> None:
    library = xetl.load_mlir(f"module attributes {{gpu.container_module}} {{{text}}}")
    assert list(library) == ["k"]
    assert "func.func @main" in str(library)
    assert "xetile.unread" in str(library)
    assert list(xetl.load_mlir(str(library))) == ["k"]


def test_names_of_an_unread_function_do_not_leak() -> None:
    text = f"{HOST}{KERNEL}func.func @g() {{ toy.print %a : f32 return }}"
    assert list(xetl.load_mlir(text)) == ["k"]


def test_without_a_kernel_the_function_is_what_is_meant() -> None:
    with pytest.raises(IRError, match=r"gpu\.wait is not registered"):
        xetl.load_mlir(HOST)


def test_a_kernel_of_unknown_operations_is_wrong() -> None:
    with pytest.raises(IRError, match=r"toy\.print is not registered"):
        xetl.load_mlir(KERNEL.replace("gpu.return", "toy.print"))


def test_a_misspelt_operation_gets_its_name() -> None:
    for name, near in (("gpu.retrun", "gpu.return"), ("gpu.yonder", None)):
        with pytest.raises(IRError, match="is not registered") as caught:
            xetl.load_mlir(KERNEL.replace("gpu.return", name))
        wanted = None if near is None else f"did you mean `{near}`?"
        assert caught.value.help == wanted


def test_other_mistakes_of_the_host_are_mistakes() -> None:
    host = "func.func @main() { %c = arith.constant 1 : index return"
    with pytest.raises(IRError):
        xetl.load_mlir(KERNEL + host)


def test_places_in_a_text_are_its_own() -> None:
    """An error points into the text, not where the text was made from."""
    text = KERNEL.replace(
        "{ gpu.return }",
        "{\n%c = arith.constant 1 : i32\n"
        '%d = "arith.addi"(%c) : (i32) -> i32 loc("big.py":500:1 to :9)\n'
        'gpu.return loc(fused<"a pass">["a.py":1:1, unknown]) } loc(#later)',
    )
    with pytest.raises(IRError) as caught:
        xetl.load_mlir(text + '\n#later = loc("later.py":1:1)')
    assert (caught.value.line, caught.value.column) == (5, 6)

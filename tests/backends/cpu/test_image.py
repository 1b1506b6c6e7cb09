"""The image loader, on objects that LLVM made of hand-written IR."""

from __future__ import annotations

import ctypes
import gc
import math
import subprocess
import sys
from collections.abc import Callable

import pytest
from native_kernels import assemble, image_of

from xetl.errors import InternalError
from xetl_cpu.image import Image, build_image, load_image

Unary = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)

ADD = "define i64 @add7(i64 %x) {\n %r = add i64 %x, 7\n ret i64 %r\n}"

TABLE = """
@table = private unnamed_addr constant [4 x i64] [i64 3, i64 1, i64 4, i64 15]
define i64 @pick(i64 %i) {
  %p = getelementptr [4 x i64], ptr @table, i64 0, i64 %i
  %v = load i64, ptr %p
  ret i64 %v
}
"""

CALLS = """
define internal i64 @triple(i64 %x) noinline {
  %r = mul i64 %x, 3
  ret i64 %r
}
define i64 @outer(i64 %x) noinline {
  %r = call i64 @triple(i64 %x)
  %s = add i64 %r, 1
  ret i64 %s
}
define i64 @through_pointer(i64 %x) {
  %p = alloca ptr
  store volatile ptr @outer, ptr %p
  %f = load volatile ptr, ptr %p
  %r = call i64 %f(i64 %x)
  ret i64 %r
}
"""

JUMP_TABLE = (
    "define i64 @jump(i64 %x) {\n switch i64 %x, label %other ["
    + " ".join(f"i64 {i}, label %l{i}" for i in range(8))
    + "]\n"
    + "\n".join(
        f'l{i}:\n call void asm sideeffect "nop # {i}", ""()\n ret i64 {i * i + 3}'
        for i in range(8)
    )
    + "\nother:\n ret i64 -1\n}"
)

MEMSET = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define i64 @clear(i64 %address) {
  %p = inttoptr i64 %address to ptr
  %n = load i64, ptr %p
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %n, i1 false)
  ret i64 %n
}
"""


def bound(image: Image, name: str) -> Callable[[int], int]:
    loaded = load_image(image)
    function = Unary(loaded[name])
    function.image = loaded  # mapped as long as it can be called
    return function


def test_function_runs() -> None:
    loaded = load_image(image_of(ADD, "add7"))
    assert Unary(loaded["add7"])(35) == 42


def test_constants_lie_in_the_image() -> None:
    loaded = load_image(image_of(TABLE, "pick"))
    pick = Unary(loaded["pick"])
    assert [pick(i) for i in range(4)] == [3, 1, 4, 15]


def test_calls_and_addresses_of_functions() -> None:
    loaded = load_image(image_of(CALLS, "outer", "through_pointer"))
    assert Unary(loaded["outer"])(5) == 16
    assert Unary(loaded["through_pointer"])(5) == 16


def test_jump_tables() -> None:
    jump = bound(image_of(JUMP_TABLE, "jump"), "jump")
    assert [jump(i) for i in range(9)] == [i * i + 3 for i in range(8)] + [-1]


def test_vector_constants_keep_their_alignment() -> None:
    text = """
define i64 @lane(i64 %i) {
  %p = alloca <8 x i64>, align 64
  store volatile <8 x i64> <i64 9, i64 8, i64 7, i64 6, i64 5, i64 4, i64 3, i64 2>,
                 ptr %p
  %q = getelementptr i64, ptr %p, i64 %i
  %v = load i64, ptr %q
  ret i64 %v
}"""
    lane = bound(image_of(text, "lane"), "lane")
    assert [lane(i) for i in range(8)] == [9, 8, 7, 6, 5, 4, 3, 2]


def test_allowed_imports_are_bound_when_loading() -> None:
    image = image_of(MEMSET, "clear")
    assert list(image.imports) == ["memset"]
    clear = bound(image, "clear")
    words = (ctypes.c_int64 * 4)(16, 5, 6, 7)
    assert clear(ctypes.addressof(words)) == 16
    assert list(words) == [0, 0, 6, 7]


def test_imports_of_the_mathematical_library() -> None:
    text = """
declare double @sinh(double)
define double @f(double %x) {
  %r = call double @sinh(double %x)
  %s = fadd double %r, 1.0
  ret double %s
}"""
    image = build_image(assemble(text), ["f"], imports={"sinh"})
    loaded = load_image(image)
    call = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(loaded["f"])
    assert call(2.0) == math.sinh(2.0) + 1


def test_unknown_symbol_is_named() -> None:
    text = "declare i64 @nowhere(i64)\ndefine i64 @f(i64 %x) {\n"
    text += " %r = call i64 @nowhere(i64 %x)\n %s = add i64 %r, 1\n ret i64 %s\n}"
    with pytest.raises(InternalError, match="`nowhere`, which nobody defines"):
        image_of(text, "f")


def test_import_this_system_lacks() -> None:
    with pytest.raises(InternalError, match="no C function `xetl_never`"):
        load_image(Image(b"\0" * 16, {}, {"xetl_never": 8}))


@pytest.mark.parametrize("variable", ["global i64 5", "global i64 0"])
def test_variables_are_refused(variable: str) -> None:
    text = f"@counter = internal {variable}\ndefine i64 @f(i64 %x) {{\n"
    text += " store volatile i64 %x, ptr @counter\n ret i64 %x\n}"
    with pytest.raises(InternalError, match="the code has variables"):
        image_of(text, "f")


def test_absolute_addresses_are_refused() -> None:
    text = "@here = internal constant ptr @f\ndefine i64 @f(i64 %x) {\n"
    text += " %p = load volatile ptr, ptr @here\n %r = ptrtoint ptr %p to i64\n"
    text += " ret i64 %r\n}"
    with pytest.raises(InternalError, match=r"variables|position-independent"):
        image_of(text, "f")


def test_missing_entry_is_named() -> None:
    with pytest.raises(InternalError, match="does not define xetl_kernel"):
        image_of(ADD, "xetl_kernel")


def test_not_an_object() -> None:
    with pytest.raises(InternalError, match="not a relocatable ELF object"):
        build_image(b"#!/bin/sh" + bytes(100), [])


def test_serialisation_is_identity() -> None:
    image = image_of(MEMSET, "clear")
    again = Image.from_bytes(image.to_bytes())
    assert again == image
    with pytest.raises(InternalError, match="not an image"):
        Image.from_bytes(b"something else entirely")


def _mapping_at(address: int) -> str | None:
    with open("/proc/self/maps") as maps:
        for line in maps:
            span, rights, *_ = line.split()
            start, end = (int(each, 16) for each in span.split("-"))
            if start <= address < end:
                return rights
    return None


def test_memory_is_never_writable_and_executable_and_goes_away() -> None:
    loaded = load_image(image_of(ADD, "add7"))
    address = loaded.address
    assert _mapping_at(address) == "r-xp"
    del loaded
    gc.collect()
    rights = _mapping_at(address)
    assert rights is None or "x" not in rights


def test_loading_needs_no_llvm() -> None:
    data = image_of(ADD, "add7").to_bytes()
    script = f"""
import ctypes, sys
from xetl_cpu.image import Image, load_image
loaded = load_image(Image.from_bytes({data!r}))
assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(loaded["add7"])(1) == 8
assert not {{"llvmlite", "numba", "xdsl", "xetl_cpu.elf"}} & set(sys.modules)
"""
    path = ":".join(sys.path)
    subprocess.run([sys.executable, "-c", script], check=True, env={"PYTHONPATH": path})

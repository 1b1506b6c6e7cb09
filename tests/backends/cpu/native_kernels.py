"""Small kernels of the CPU ABI, written by hand in LLVM IR."""

from __future__ import annotations

from functools import cache
from typing import Any

import llvmlite.binding as _llvm

from xetl_cpu.image import Image, build_image

llvm: Any = _llvm

SCALE = """
; C[i] = factor * A[i] for A: slots 8 (address), 9 (size), 10 (stride), C: 11, 12, 13
; and the factor, a double, in slot 14.
define i64 @xetl_kernel(ptr %slots) {
entry:
  %a.slot = getelementptr i64, ptr %slots, i64 8
  %n.slot = getelementptr i64, ptr %slots, i64 9
  %sa.slot = getelementptr i64, ptr %slots, i64 10
  %c.slot = getelementptr i64, ptr %slots, i64 11
  %sc.slot = getelementptr i64, ptr %slots, i64 13
  %f.slot = getelementptr i64, ptr %slots, i64 14
  %a = load ptr, ptr %a.slot
  %n = load i64, ptr %n.slot
  %sa = load i64, ptr %sa.slot
  %c = load ptr, ptr %c.slot
  %sc = load i64, ptr %sc.slot
  %f = load double, ptr %f.slot
  %factor = fptrunc double %f to float
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %go = icmp slt i64 %i, %n
  br i1 %go, label %body, label %done
body:
  %ia = mul i64 %i, %sa
  %ic = mul i64 %i, %sc
  %pa = getelementptr float, ptr %a, i64 %ia
  %pc = getelementptr float, ptr %c, i64 %ic
  %x = load float, ptr %pa
  %y = fmul float %x, %factor
  store float %y, ptr %pc
  %next = add i64 %i, 1
  br label %head
done:
  ret i64 0
}
"""

TEAM = """
; Each of num_threads chunks adds its length to the i64 at slot 7 (an array).
define internal void @chunk(ptr %args, ptr %dims, ptr %steps, ptr %data) {
  %n = load i64, ptr %dims
  %old = atomicrmw add ptr %data, i64 %n monotonic
  ret void
}
define i64 @xetl_kernel(ptr %slots) {
  %args = alloca i64
  %dims = alloca i64
  %steps = alloca i64
  %t.slot = getelementptr i64, ptr %slots, i64 1
  %a.slot = getelementptr i64, ptr %slots, i64 8
  %pool = load ptr, ptr %slots
  %threads = load i64, ptr %t.slot
  %array = load ptr, ptr %a.slot
  store i64 0, ptr %args
  store i64 64, ptr %dims
  store i64 1, ptr %steps
  %serial = icmp eq ptr %pool, null
  br i1 %serial, label %alone, label %team
alone:
  call void @chunk(ptr %args, ptr %dims, ptr %steps, ptr %array)
  ret i64 0
team:
  %fork = load ptr, ptr %pool
  %n = trunc i64 %threads to i32
  call void %fork(ptr @chunk, ptr %args, ptr %dims, ptr %steps, ptr %array,
                  i64 0, i64 1, i32 %n)
  ret i64 0
}
"""

SCRATCH = """
; Asks for 1000 bytes of workspace, then stores its size and address into the array.
define i64 @xetl_kernel(ptr %slots) {
  %w.slot = getelementptr i64, ptr %slots, i64 2
  %b.slot = getelementptr i64, ptr %slots, i64 3
  %a.slot = getelementptr i64, ptr %slots, i64 8
  %w = load i64, ptr %w.slot
  %b = load i64, ptr %b.slot
  %array = load ptr, ptr %a.slot
  %few = icmp ult i64 %b, 100000
  br i1 %few, label %ask, label %go
ask:
  ret i64 100000
go:
  store i64 %b, ptr %array
  %second = getelementptr i64, ptr %array, i64 1
  store i64 %w, ptr %second
  ret i64 0
}
"""


@cache
def machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(opt=2, reloc="pic", codemodel="small")


def assemble(text: str) -> bytes:
    return machine().emit_object(llvm.parse_assembly(text))


def image_of(text: str, *entries: str) -> Image:
    return build_image(assemble(text), entries or ("xetl_kernel",))

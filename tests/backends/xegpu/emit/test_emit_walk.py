"""Programs that walk in groups of rows: which number each gets that starts.

The driver for CPUs starts programs in an order of its own. So the kernel's LLVM IR runs
on this processor, once for each program, with functions that say which one it is.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest
from llvmlite import binding

from tests.backends.xegpu.emit.on_opencl import kernel, parsed
from xetl_xegpu.emit.module import llvm_text
from xetl_xegpu.launch.facts import fits_messages

NUMBERS = """
      %x = simt.group_id x
      %y = simt.group_id y
      %z = simt.group_id z
      %c8 = arith.constant 8 : i64
      %next = arith.addi %out, %c8 : i64
      %last = arith.addi %next, %c8 : i64
      simt.store %x, %out, %on : i64
      simt.store %y, %next, %on : i64
      simt.store %z, %last, %on : i64"""

ASKED = """
@started = global [3 x i64] zeroinitializer
@grid = global [3 x i64] zeroinitializer
define i32 @_Z22get_sub_group_local_idv() { ret i32 0 }
define i64 @_Z12get_group_idj(i32 %axis) {
  %at = getelementptr i64, ptr @started, i32 %axis
  %found = load i64, ptr %at
  ret i64 %found
}
define i64 @_Z14get_num_groupsj(i32 %axis) {
  %at = getelementptr i64, ptr @grid, i32 %axis
  %found = load i64, ptr %at
  ret i64 %found
}
"""


def numbers(grid: tuple[int, ...], rows: int) -> Iterator[tuple[int, ...]]:
    """What programs are told, in the order in which they start."""
    more = f", xegpu.walk = {rows}"
    text = llvm_text(parsed(kernel("k", "%out: i64", NUMBERS, more=more)), "pvc")
    kept = text[text.index("define") :].partition("\ndeclare")[0]
    kept = kept.replace("spir_kernel ", "").replace("spir_func ", "")
    kept = kept.replace(" !reqd_work_group_size !0 !intel_reqd_sub_group_size !1", "")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(
        binding.parse_assembly(ASKED + kept.split("\n!")[0]), machine
    )
    three = ctypes.c_int64 * 3
    started, whole = (
        three.from_address(engine.get_global_value_address(name))
        for name in ("started", "grid")
    )
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(
        engine.get_function_address("k")
    )
    whole[:], told = grid, three()
    for z, y, x in np.ndindex(grid[::-1]):
        started[:] = x, y, z
        run(ctypes.addressof(told), 0)
        yield tuple(told)


@pytest.mark.parametrize("grid", [(5, 3, 2), (1, 4, 1), (4, 1, 1), (8, 5, 1)])
@pytest.mark.parametrize("rows", [2, 3, 8])
def test_a_group_of_rows_comes_after_the_other(
    grid: tuple[int, ...], rows: int
) -> None:
    wide, high, deep = grid
    assert list(numbers(grid, rows)) == [
        (x, y, z)
        for z in range(deep)
        for start in range(0, wide, rows)
        for y in range(high)
        for x in range(start, min(start + rows, wide))
    ]


def test_launches_that_32_bits_do_not_count_take_the_other_kernel() -> None:
    assert fits_messages((1 << 16, (1 << 16) - 1, 9))
    assert not fits_messages((1 << 16, 1 << 16, 1))

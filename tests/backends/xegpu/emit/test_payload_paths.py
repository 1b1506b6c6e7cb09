"""Payloads that go on in place move the blocks that the kernel asks for.

Nobody here has the functions for payloads. So the kernel's LLVM IR runs on this
processor, with functions that write down the place of each message.
"""

from __future__ import annotations

import ctypes

import pytest
from llvmlite import binding

from tests.backends.xegpu.emit.block_kernels import SURFACE
from tests.backends.xegpu.emit.on_opencl import kernel, parsed
from xetl_xegpu.emit.module import llvm_text

MESSAGE = """%base, %w, %h, %p, {place}
        {{bits = 32 : i64, rows = 16 : i64, columns = 8 : i64, mode = "transpose"}}
        : vector<8xi32>"""

COUNTED = """
      %n = scf.while (%j = %first) : (i32) -> (i32) {{
        %i = arith.index_cast %j : i32 to index
        {body}
        %next = arith.addi %j, %step : i32
        %more = arith.cmpi slt, %next, %end : i32
        scf.condition(%more) %next : i32
      }} do {{
      ^bb0(%m: i32):
        {after}
      }}"""
EVENLY = COUNTED.replace("{after}", "scf.yield %m : i32")
UNEVENLY = COUNTED.replace(
    "{after}", "%o = arith.addi %m, %step : i32\n        scf.yield %o : i32"
)
PLAIN = """
      %a = arith.index_cast %first : i32 to index
      %b = arith.index_cast %end : i32 to index
      %c = arith.index_cast %step : i32 to index
      scf.for %i = %a to %b step %c {{
        {body}
      }}"""

LOGGED = """
@log = global [256 x i32] zeroinitializer
@count = global i32 0
@payloads = global [8 x [2 x i32]] zeroinitializer
@made = global i32 0
define i32 @"_Z22get_sub_group_local_idv"() { ret i32 0 }
define void @write(i32 %x, i32 %y) {
  %n = load i32, ptr @count
  %at = getelementptr [2 x i32], ptr @log, i32 %n
  store i32 %x, ptr %at
  %beside = getelementptr i32, ptr %at, i32 1
  store i32 %y, ptr %beside
  %more = add i32 %n, 1
  store i32 %more, ptr @count
  ret void
}
define void @documented(ptr addrspace(1) %m, i32 %w, i32 %h, i32 %p, <2 x i32> %at,
    ptr %to) {
  %x = extractelement <2 x i32> %at, i32 0
  %y = extractelement <2 x i32> %at, i32 1
  call void @write(i32 %x, i32 %y)
  ret void
}
define ptr @createBlock2DAddressPayload(i64 %m, i32 %w, i32 %h, i32 %p, i32 %x, i32 %y,
    i32 %columns, i32 %rows, i32 %count) {
  %n = load i32, ptr @made
  %more = add i32 %n, 1
  store i32 %more, ptr @made
  %payload = getelementptr [2 x i32], ptr @payloads, i32 %n
  %beside = getelementptr i32, ptr %payload, i32 1
  store i32 %x, ptr %payload
  store i32 %y, ptr %beside
  ret ptr %payload
}
define <8 x i32> @read(ptr %p, i32 %dx, i32 %dy, i32 %caches) {
  %x = load i32, ptr %p
  %beside = getelementptr i32, ptr %p, i32 1
  %y = load i32, ptr %beside
  call void @write(i32 %x, i32 %y)
  ret <8 x i32> zeroinitializer
}
define void @block_read_ap_prefetch_u16_m8k32v1(ptr %p, i32 %dx, i32 %dy, i32 %caches) {
  call <8 x i32> @read(ptr %p, i32 %dx, i32 %dy, i32 %caches)
  ret void
}
define <8 x float> @product(<8 x i16> %a, <8 x i32> %b, <8 x float> %c) {
  ret <8 x float> %c
}
"""
MOVERS = "".join(
    f"""
define void @{verb}Block2DAddressPayloadBlock{axis}(ptr %p, i32 %by) {{
  %at = getelementptr i32, ptr %p, i32 {number}
  %old = load i32, ptr %at
  %new = add i32 %by, {"%old" if verb == "add" else "0"}
  store i32 %new, ptr %at
  ret void
}}"""
    for verb in ("add", "set")
    for number, axis in enumerate("XY")
)


def places(llvm: str) -> list[tuple[int, int]]:
    """Where the messages of a kernel are, in order."""
    kept, _, _ = llvm[llvm.index("define") :].partition("\ndeclare")
    for old, new in (
        ("spir_kernel ", ""),
        ("spir_func ", ""),
        ("!reqd_work_group_size !0 !intel_reqd_sub_group_size !1", ""),
        ("__builtin_IB_subgroup_block_read_ap_transpose_u32_m16k8v1", "read"),
        ("__builtin_IB_subgroup_", ""),
        ("_Z40intel_sub_group_bf16_bf16_matrix_mad_k16Dv8_sDv8_iDv8_f", "product"),
    ):
        kept = kept.replace(old, new)
    name = "_Z51intel_sub_group_2d_block_read_transpose_32b_16r8x1cPU3AS1viiiDv2_iPj"
    kept = kept.replace(name, "documented")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    module = binding.parse_assembly(LOGGED + MOVERS + kept)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 7)
    run(engine.get_function_address("k"))(0, 64, 64, 64, 1000, 7, 0)
    count = ctypes.c_int32.from_address(engine.get_global_value_address("count"))
    log = engine.get_global_value_address("log")
    numbers = (ctypes.c_int32 * (2 * count.value)).from_address(log)
    return list(zip(numbers[::2], numbers[1::2]))


@pytest.mark.parametrize(
    ("loop", "shift", "verb"),
    [
        (EVENLY, 3, "add"),
        (PLAIN, 3, "add"),
        (EVENLY, 6, "set"),  # 32 is no multiple of 64
        (UNEVENLY, 3, "set"),
    ],
)
def test_places_in_loops(loop: str, shift: int, verb: str) -> None:
    load = MESSAGE.format(place="%right, %down")
    body = f"""
        %c24 = arith.constant 24 : index
        %by = arith.constant {shift} : index
        %sum = arith.addi %i, %c24 : index
        %part = arith.shrsi %sum, %by : index
        %down = arith.index_cast %part : index to i64
        %right = arith.addi %down, %x : i64
        %v = simt.block_load {load}
        %u = simt.block_load {load}"""
    numbers = "\n".join(
        f"%{name} = arith.constant {number} : i32"
        for name, number in (("first", -8), ("step", 32), ("end", 100))
    )
    text = kernel("k", SURFACE, numbers + loop.format(body=body))
    llvm = llvm_text(parsed(text), "pvc")
    assert f'call spir_func void @"__builtin_IB_subgroup_{verb}Block' in llvm
    assert ("subgroup_set" in llvm) == (verb == "set")
    found = places(llvm)
    counters = range(-8, 132, 64) if loop is UNEVENLY else range(-8, 100, 32)
    downs = [(i + 24) >> shift for i in counters]
    # The first message is a documented one, the second has a payload.
    assert found == [(down + 1000, down) for down in downs for _ in range(2)]


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("count", [1, 2])
def test_places_of_one_of_two(*, is_first: bool, count: int) -> None:
    """A prefetch of a matrix that is chosen before the loop; a second one beside it."""
    prefetch = """
        simt.block_prefetch %base, %w, %h, %p, %right, %down
            {bits = 16 : i64, rows = 8 : i64, columns = 32 : i64}"""
    body = f"""
        %further = arith.addi %i, %i : index
        %at = arith.index_cast %i : index to i64
        %twice = arith.index_cast %further : index to i64
        %right = arith.select %is_first, %at, %x : i64
        %down = arith.select %is_first, %y, %twice : i64{prefetch * count}
        %sum = simt.dpas %a, %b, %zero {{a_type = "bf16", b_type = "bf16"}}
            : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>"""
    numbers = f"""
        %is_first = arith.cmpi {"sgt" if is_first else "slt"}, %x, %y : i64
        %a = arith.constant dense<0> : vector<8xi16>
        %b = arith.constant dense<0> : vector<8xi32>
        %zero = arith.constant dense<0.0> : vector<8xf32>
        %first = arith.constant -8 : i32
        %step = arith.constant 32 : i32
        %end = arith.constant 100 : i32
"""
    text = kernel("k", SURFACE, numbers + EVENLY.format(body=body))
    llvm = llvm_text(parsed(text), "pvc")
    assert "subgroup_set" not in llvm
    steps = range(-8, 100, 32)
    wanted = [(i, 7) if is_first else (1000, 2 * i) for i in steps]
    assert places(llvm) == [place for place in wanted for _ in range(count)]

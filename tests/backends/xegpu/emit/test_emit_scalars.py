"""Where Intel's builtins are emulated, arithmetic is written number by number.

That the numbers are right, all tests say that run kernels on opencl:cpu.
"""

from __future__ import annotations

from tests.backends.xegpu.emit.on_opencl import kernel, parsed
from xetl.codegen.types import F32, HALF, I16, I32, ll
from xetl_xegpu.emit.module import llvm_text
from xetl_xegpu.emit.scalars import ScalarBuilder

SURFACE = "%base: i64, %w: i64, %h: i64, %p: i64, %x: i64, %y: i64"
BLOCK = "{bits = 16, rows = 8, columns = 16}"
PLACE = "%base, %w, %h, %p, %x, %y"
DOUBLED = f"""
      %v = simt.block_load {PLACE} {BLOCK} : vector<8xi16>
      %f = arith.bitcast %v : vector<8xi16> to vector<8xf16>
      %d = arith.addf %f, %f : vector<8xf16>
      %r = arith.bitcast %d : vector<8xf16> to vector<8xi16>
      simt.block_store %r, {PLACE} {BLOCK} : vector<8xi16>"""
KINDS = '{a_type = "bf16", b_type = "bf16"}'
PRODUCT = f"""
      %a = simt.block_load {PLACE} {BLOCK} : vector<8xi16>
      %b = simt.block_load {PLACE} {{bits = 16, rows = 16, columns = 16,
        mode = "transform"}} : vector<8xi32>
      %c = arith.constant dense<0.0> : vector<8xf32>
      %d = simt.dpas %a, %b, %c {KINDS} :
        vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
      %e = simt.dpas %a, %b, %d {KINDS} :
        vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
      %one = vector.extract %e[3] : f32 from vector<8xf32>
      simt.store %one, %base, %on : f32"""


def body(text: str, target: str) -> str:
    """The LLVM IR of the kernel alone."""
    whole = llvm_text(parsed(kernel("k", SURFACE, text)), target)
    start = whole.index("define spir_kernel")
    return whole[start : whole.index("\n}", start)]


def test_sums_are_of_numbers_and_blocks_of_words() -> None:
    emulated = body(DOUBLED, "opencl")
    assert emulated.count("fadd float") == 8
    # What moves a block gives or takes words: no memory that it would be inlined for.
    assert "alloca" not in emulated
    assert emulated.count("extractelement <4 x i32>") == 4
    assert emulated.count("insertelement <4 x i32>") == 4
    assert "insertelement <8" not in emulated
    assert " x half>" not in emulated
    assert body(DOUBLED, "pvc").count("fadd <8 x float>") == 1


def test_what_goes_from_memory_to_a_product_stays_whole() -> None:
    emulated = body(PRODUCT, "opencl")
    assert emulated.count("call spir_func <8 x i32>") == 1
    assert emulated.count("call spir_func <4 x i32>") == 1
    assert "element <4 x i32>" not in emulated
    assert emulated.count("extractelement <8 x float>") == 1
    # The place of a block is a vector of two.
    assert "insertelement <8" not in emulated


def built() -> tuple[ScalarBuilder, list[object]]:
    types = [ll.VectorType(each, 2) for each in (F32, F32)]
    module = ll.Module()
    function = ll.Function(module, ll.FunctionType(ll.VoidType(), types), "f")
    builder = ScalarBuilder(function.append_basic_block("entry"))
    return builder, list(function.args)


def opcodes(builder: ScalarBuilder) -> list[str]:
    builder.finish()
    return [each.opname for each in builder.block.instructions]


def test_what_nobody_asks_for_is_left_out() -> None:
    builder, (a, b) = built()
    total = builder.fadd(a, b)
    builder.bitcast(total, ll.VectorType(I32, 2))
    assert opcodes(builder) == ["extractelement"] * 4 + ["fadd"] * 2


def test_a_vector_is_put_together_for_whoever_takes_it() -> None:
    builder, (a, b) = built()
    total = builder.fadd(a, b)
    phi = builder.phi(total.type)
    phi.add_incoming(total, builder.block)
    found = opcodes(builder)
    assert found[-3:] == ["insertelement", "insertelement", "phi"]
    assert phi.incomings[0][0] is total


def test_items_are_found_through_casts_shuffles_and_constants() -> None:
    builder, (a, _) = built()
    half = builder.fptrunc(a, ll.VectorType(HALF, 2))
    word = builder.bitcast(half, ll.VectorType(I32, 1))
    again = builder.bitcast(word, ll.VectorType(I16, 2))
    mask = ll.Constant(ll.VectorType(I32, 2), [I32(3), I32(0)])
    other = ll.Constant(again.type, [I16(5), I16(7)])
    swapped = builder.shuffle_vector(again, other, mask)
    assert builder.extract_element(swapped, I32(0)).constant == 7
    first = builder.extract_element(swapped, I32(1))
    assert (first.opname, str(first.type)) == ("trunc", "i16")
    replaced = builder.insert_element(swapped, first, I32(0))
    assert builder.extract_element(replaced, I32(0)) is first


def test_bytes_of_a_word_come_and_go_by_shifts() -> None:
    builder, (a, _) = built()
    word = builder.fptosi(builder.extract_element(a, I32(0)), I32)
    quarters = builder.bitcast(word, ll.VectorType(ll.IntType(8), 4))
    third = builder.extract_element(quarters, I32(2))
    assert (third.opname, third.operands[0].opname) == ("trunc", "lshr")
    again = builder.bitcast(quarters, I32)
    assert (again.opname, str(again.type)) == ("or", "i32")
    builder.ret(again)
    assert "bitcast" not in opcodes(builder)

"""The XeGPU dialect: text, constructors, what operations refuse."""

from io import StringIO

import pytest
from xdsl.dialects.builtin import IndexType, ModuleOp, VectorType, f16, f32, i1, i8, i64
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tests.backends.xegpu.dialect.xegpu_forms import FORMS, OURS
from xetl.dialects.parser import make_context, parse_module
from xetl.dialects.verify import verify
from xetl_xegpu import dialect as xegpu
from xetl_xegpu.dialect import BlockTdescAttr, ScatterTdescAttr, TensorDescType


def parse(text: str) -> ModuleOp:
    module = parse_module(text, "<text>", make_context(xegpu.DIALECTS))
    verify(module)
    return module


@pytest.mark.parametrize("text", [*FORMS.values(), OURS], ids=[*FORMS, "ours"])
def test_print_then_parse_is_the_identity(text: str) -> None:
    module = parse(text)
    printed = str(module)
    again = parse(printed)
    assert again.is_structurally_equivalent(module)
    assert str(again) == printed
    generic = StringIO()
    Printer(generic, print_generic_format=True).print_op(module)
    assert parse(generic.getvalue()).is_structurally_equivalent(module)


def test_every_operation_has_its_text_in_the_tests() -> None:
    shown = {op.name for text in (*FORMS.values(), OURS) for op in parse(text).walk()}
    known = {op.name for each in xegpu.DIALECTS for op in each.operations}
    assert known <= shown


def values(*types):
    return AnyOp(result_types=list(types)).results


def test_a_load_knows_what_it_brings() -> None:
    i, j = values(IndexType(), IndexType())
    tdescs = values(
        TensorDescType((16, 16), f16),
        TensorDescType((16, 16), f16, BlockTdescAttr(array_length=2)),
        TensorDescType((16, 8), f32),
        TensorDescType((32, 16), i8),
    )
    plain = xegpu.LoadNdOp(tdescs[0], [i, j])
    assert plain.value.type == VectorType(f16, [16, 16])
    assert plain.mixed_offsets == (i, j)
    packed = xegpu.LoadNdOp(tdescs[0], [i, 8], packed=True)
    assert packed.value.type == VectorType(f16, [8, 16, 2])
    assert packed.mixed_offsets == (i, 8)
    two = xegpu.LoadNdOp(tdescs[1], [i, j], packed=True)
    assert two.value.type == VectorType(f16, [2, 8, 16, 2])
    turned = xegpu.LoadNdOp(tdescs[2], [i, j], transpose=True, l1_hint="cached")
    assert turned.value.type == VectorType(f32, [8, 16])
    assert turned.is_transposed
    quads = xegpu.LoadNdOp(tdescs[3], [i, j], packed=True)
    assert quads.value.type == VectorType(i8, [8, 16, 4])
    for op in (plain, packed, two, turned, quads):
        op.verify()


def test_constructors_build_what_text_says() -> None:
    (memref,) = parse("func.func private @f(memref<64x64xf16>)").ops
    base, address, i = values(*memref.function_type.inputs.data, i64, IndexType())
    block = TensorDescType((8, 16), f16)
    static = xegpu.CreateNdTdescOp(base, block)
    assert (static.mixed_shape, static.mixed_strides) == ((), ())
    given = xegpu.CreateNdTdescOp(address, block, shape=[i, 64], strides=[i, 1])
    assert given.mixed_shape == (i, 64)
    assert given.mixed_strides == (i, 1)
    load = xegpu.LoadNdOp(given, [i, i])
    store = xegpu.StoreNdOp(load, static, [i, i], l3_hint="write_back")
    prefetch = xegpu.PrefetchNdOp(static, [i, i])
    offsets, mask = values(VectorType(IndexType(), [16]), VectorType(i1, [16]))
    row = VectorType(f16, [16])
    gather = xegpu.LoadOp(address, offsets, mask, row)
    scatter = xegpu.StoreOp(gather, address, offsets, mask)
    places = TensorDescType((16,), f16, ScatterTdescAttr())
    places = xegpu.CreateTdescOp(address, offsets, places)
    added = xegpu.AtomicRmwOp(places, mask, gather, kind="addf")
    assert added.kind_name == "addf"
    fence = xegpu.FenceOp("slm", "workgroup")
    for op in (static, given, load, store, prefetch, gather, scatter, places, added):
        op.verify()
    fence.verify()
    assert store.tensor_desc is static.result
    assert (scatter.value, scatter.offsets) == (gather.value, offsets)


def test_a_product_says_which_side_has_no_sign() -> None:
    a, b = values(VectorType(i8, [8, 32]), VectorType(i8, [8, 16, 4]))
    (acc,) = values(VectorType(f32, [8, 16]))
    with pytest.raises(TypeError, match="type of its result"):
        xegpu.DpasOp(a, b)
    wrong = xegpu.DpasOp(a, b, acc, b_unsigned=True)
    assert wrong.unsigned == (False, True)
    with pytest.raises(VerifyException, match="only integers"):
        wrong.verify()


BLOCK = "!xegpu.tensor_desc<8x16xf16>"
PLACES = "!xegpu.tensor_desc<16xf32, #xegpu.scatter_tdesc_attr<>>"
WRONG = {
    f"%v = xegpu.load_nd %t[%i] : {BLOCK} -> vector<8x16xf16>": "1 offsets",
    f"%v = xegpu.load_nd %t[%i, %i] : {BLOCK} -> vector<16x8xf16>": "the load brings",
    f"%v = xegpu.load_nd %t[%i, %i] <{{packed}}> : {BLOCK} -> vector<8x16xf16>": (
        "brings vector<4x16x2xf16>"
    ),
    f"%v = xegpu.load_nd %t[%i, %i] <{{transpose = array<i64: 0>}}> : {BLOCK}"
    " -> vector<8x16xf16>": "`transpose` is",
    f"%v = xegpu.load_nd %t[%i, %i] <{{l1_hint = #xegpu.cache_hint<write_back>}}>"
    f" : {BLOCK} -> vector<8x16xf16>": "l1_hint is one of",
    f"xegpu.store_nd %f, %t[%i, %i] : vector<16xf32>, {BLOCK}": "the block holds",
    f"%d = xegpu.create_nd_tdesc %m : memref<64xf32> -> {BLOCK}": "memref holds f32",
    f"%d = xegpu.create_nd_tdesc %p : i64 -> {BLOCK}": "must be given",
    f"%d = xegpu.create_nd_tdesc %p, shape : [8, 8], strides : [1] : i64 -> {BLOCK}": (
        "2 sizes, but 1 strides"
    ),
    f"%d = xegpu.create_tdesc %m, %off : memref<64xf32>, vector<16xindex> -> {BLOCK}": (
        "scatter_tdesc_attr"
    ),
    f"%d = xegpu.create_tdesc %l, %off : memref<64xf32, 3>, vector<16xindex>"
    f" -> {PLACES}": "lies in slm",
    f"%d = xegpu.create_tdesc %m, %few : memref<64xf32>, vector<8xindex> -> {PLACES}": (
        "has 16 places"
    ),
    "%g = xegpu.load %m[%off], %ok : memref<64xf32>, vector<16xindex>, vector<8xi1>"
    " -> vector<16xf32>": "one bit a place",
    "%g = xegpu.load %m[%off], %mask : memref<64xf32>, vector<16xindex>,"
    " vector<16xi1> -> vector<16xf16>": "the memory holds f32",
    "%g = xegpu.load %m[%off], %mask <{chunk_size = 2}> : memref<64xf32>,"
    " vector<16xindex>, vector<16xi1> -> vector<16xf32>": "2 elements at each",
    f"%g = xegpu.load %t, %mask : {BLOCK}, vector<16xi1> -> vector<16xf16>": (
        "load_nd, store_nd"
    ),
    "%c = xegpu.dpas %a, %a : vector<8x16xf16>, vector<8x16xf16> -> vector<8x16xf32>": (
        "a has 16 columns, but b 8 rows"
    ),
    "%c = xegpu.dpas %a, %b : vector<8x16xf16>, vector<16x16xf16>"
    " -> vector<4x16xf32>": "gives 8x16",
    "%d = xegpu.create_mem_desc %l : memref<64xf32, 3> -> !xegpu.mem_desc<16x16xf32>": (
        "has 2048 bits"
    ),
    "%v = xegpu.load_matrix %d[0] : !xegpu.mem_desc<8x8xf32> -> vector<8x8xf32>": (
        "1 offsets"
    ),
    "%v = xegpu.load_matrix %d[0, 0] : !xegpu.mem_desc<8x8xf32> -> vector<8x16xf32>": (
        "is no block of"
    ),
}


@pytest.mark.parametrize("line", WRONG)
def test_what_does_not_fit_is_refused(line: str) -> None:
    text = f"""
    func.func @f(%t: {BLOCK}, %i: index, %f: vector<16xf32>, %m: memref<64xf32>,
                 %p: i64, %off: vector<16xindex>, %few: vector<8xindex>,
                 %mask: vector<16xi1>, %ok: vector<8xi1>, %a: vector<8x16xf16>,
                 %b: vector<16x16xf16>, %l: memref<64xf32, 3>) {{
      {line}
      return
    }}"""
    if "%d[" in line:
        made = "%d = xegpu.create_mem_desc %l : memref<64xf32, 3> -> "
        text = text.replace(line, f"{made}!xegpu.mem_desc<8x8xf32>\n{line}")
    with pytest.raises(VerifyException) as caught:
        parse(text)
    assert WRONG[line] in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "#xegpu.layout<sg_data = [1, 1]>",
        "#xegpu.layout<sg_layout = [1], lane_layout = [1, 16]>",
        "#xegpu.cache_hint<warm>",
        "#xegpu.mem_layout<>",
        "#xegpu.slice<1 : i32, dims = [1]>",
        "!xegpu.tensor_desc<16x4xf32, #xegpu.scatter_tdesc_attr<chunk_size = 8>>",
        "!xegpu.tensor_desc<8x16xf16, #xegpu.block_tdesc_attr<memory_space = slm>>",
        "!xegpu.tensor_desc<?x16xf16>",
        "!xegpu.mem_desc<8x16xf16, #xegpu.mem_layout<stride = [1]>>",
    ],
)
def test_wrong_attributes_are_refused(text: str) -> None:
    with pytest.raises(Exception, match="<text>"):
        parse(f"func.func private @f() attributes {{a = {text}}}")

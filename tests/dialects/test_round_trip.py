"""Print then parse is the identity, for numbers and for tiles of any kind."""

import math
import struct
from dataclasses import replace
from io import StringIO

from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import (
    BytesAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    ModuleOp,
    VectorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i32,
)
from xdsl.ir import Block
from xdsl.printer import Printer

# Loaded here, not within the time of an example.
from xetl.dialects.assembly import format_of as format_of
from xetl.dialects.parser import parse_module
from xetl.dialects.upstream import arith
from xetl.dialects.upstream import directives as directives
from xetl.dialects.verify import verify
from xetl.dialects.xetile import (
    InitTileOp,
    LayoutAttr,
    LoadTileOp,
    SgMapAttr,
    TileAttr,
    TileType,
    WgMapAttr,
    XeMapAttr,
    attribute_of,
    layout_of,
)
from xetl.language.distribution import Layout

FLOATS = st.sampled_from([f16, bf16, f32, f64])


def assert_identity(module: ModuleOp) -> None:
    text = str(module)
    again = parse_module(text)
    verify(again)
    assert again.is_structurally_equivalent(module), text
    assert str(again) == text
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    generic = parse_module(stream.getvalue())
    assert generic.is_structurally_equivalent(module), stream.getvalue()


@given(element=FLOATS, data=st.data())
def test_float_bits_survive(element, data) -> None:
    size = element.compile_time_size
    count = data.draw(st.integers(1, 5))
    raw = data.draw(st.binary(min_size=size * count, max_size=size * count))
    values = element.unpack(raw, count)
    # Signalling NaNs become quiet ones on the way through Python's floats.
    raw = element.pack(values)
    dense = DenseIntOrFPElementsAttr(VectorType(element, [count]), BytesAttr(raw))
    (op,) = parse_module(str(ModuleOp([arith.ConstantOp(dense)]))).ops
    assert isinstance(op, arith.ConstantOp)
    assert isinstance(op.value, DenseIntOrFPElementsAttr)
    assert op.value.data.data == raw


@given(value=st.floats(width=64))
def test_scalar_floats_survive(value: float) -> None:
    module = ModuleOp([arith.ConstantOp(FloatAttr(value, f64), f64)])
    (op,) = parse_module(str(module)).ops
    assert isinstance(op, arith.ConstantOp)
    found = op.value.value.data
    same_bits = struct.pack("<d", found) == struct.pack("<d", value)
    assert same_bits or (math.isnan(found) and math.isnan(value))


@given(
    element=st.sampled_from([i1, i8, i32]),
    values=st.lists(st.integers(0, 1) | st.integers(-128, 127), min_size=1, max_size=6),
)
def test_integers_survive(element, values) -> None:
    if element == i1:
        values = [value & 1 for value in values]
    type_ = VectorType(element, [len(values)])
    dense = DenseIntOrFPElementsAttr.from_list(type_, values)
    assert_identity(ModuleOp([arith.ConstantOp(dense)]))


@st.composite
def tile_attrs(draw) -> TileAttr:
    scattered = draw(st.booleans())
    layout = Layout(draw(st.sampled_from([(2, 2), (4, 1), (8, 8)])), (8, 8))
    if draw(st.booleans()):
        layout = replace(layout, order=(0, 1))
    if draw(st.booleans()):
        layout = replace(layout, inst_data=(8, 4))
    if draw(st.booleans()):
        layout = replace(layout, lane_layout=(1, 4), lane_data=(2, 1))
    wg_map = attribute_of(layout)
    assert layout_of(wg_map) == layout
    return TileAttr(
        wg_map=draw(st.none() | st.just(wg_map)),
        sg_map=draw(st.none() | st.just(SgMapAttr([2, 8], [1, 2]))),
        order=draw(st.sampled_from([(1, 0), (0, 1)])),
        array_length=1 if scattered else draw(st.sampled_from([1, 2, 4])),
        memory_space=draw(st.sampled_from([0, 3])),
        scattered=scattered,
        inner_blocks=draw(st.sampled_from([(), (8, 16), (4, 4)])),
    )


def test_a_plain_layout_is_a_wg_map() -> None:
    plain = Layout((8, 4), (32, 64))
    assert attribute_of(plain) == WgMapAttr((8, 4), (32, 64))
    others = replace(plain, order=(0, 1)), Layout((2, 2, 1), (4, 4, 4))
    assert all(isinstance(attribute_of(each), LayoutAttr) for each in others)


def test_an_xe_map_is_a_layout_with_lanes() -> None:
    joined = XeMapAttr(WgMapAttr((8, 4), (32, 64)), SgMapAttr((1, 16), (1, 2)))
    lanes = {"lane_layout": (1, 16), "lane_data": (1, 2)}
    assert layout_of(joined) == Layout((8, 4), (32, 64), **lanes)
    assert layout_of(XeMapAttr(joined.wg)) == Layout((8, 4), (32, 64))


@given(attr=tile_attrs(), element=st.sampled_from([f16, bf16, f32, i8, i1]))
def test_tile_types_survive(attr: TileAttr, element) -> None:
    type_ = TileType((32, 64), element, attr)
    text = f"func.func private @f({type_}) attributes {{map = {attr.wg_map or 1}}}"
    (op,) = parse_module(text).ops
    assert op.function_type.inputs.data[0] == type_
    assert str(type_) in str(op)


@given(
    offsets=st.tuples(*[st.none() | st.integers(-4, 100)] * 2),
    sizes=st.tuples(*[st.none() | st.integers(1, 100)] * 2),
    length=st.sampled_from([1, 2, 4]),
)
def test_init_and_load_survive(offsets, sizes, length) -> None:
    header = parse_module(
        "func.func @f(%m: memref<?x?xf16, strided<[?, 1]>>, %i: index) { return }"
    )
    (function,) = header.ops
    block: Block = function.body.block
    memref, i = block.args
    tile = TileType((32, 16), f16, TileAttr(array_length=length))

    def mix(values):
        return [i if value is None else value for value in values]

    init = InitTileOp(memref, mix(offsets), tile, mix(sizes), [i, 1])
    block.insert_ops_before([init, LoadTileOp(init)], block.last_op)
    verify(header)
    assert_identity(header)

"""Values that are spread over subgroups are what they were."""

import numpy as np
import pytest
from mapped_kernels import (
    AB,
    HEAD,
    LAYOUTS,
    NATIVE,
    check,
    distributed,
    init,
    kernel,
    layouts,
    line,
    lines,
    named,
    numbers,
    ragged,
    tile,
    vec,
)

from xetl.dialects.upstream import memref
from xetl.language.distribution import Layout
from xetl.transforms.check_workgroup import shared_bytes


@layouts
def test_conversions_move_values(layout):
    body = ""
    for number, other in enumerate(LAYOUTS.values()):
        body += f"""
      %v{number + 1} = xetile.tile_conv_layout %v{number}
          {{map = {named(other)}}} : {vec()}"""
    last = tile([*LAYOUTS.values()][-1])
    text = f"""{HEAD}
      {init("s", "a", tile(layout))}
      {init("d", "b", last)}
      %v0 = xetile.load_tile %s : {tile(layout)} -> {vec()}
      {body}
      xetile.store_tile %v{len(LAYOUTS)}, %d : {vec()}, {last}"""
    a = numbers(40, 50)
    _, found = check(
        kernel(AB, text), [a, numbers(40, 50, seed=1)], native=layout in NATIVE
    )
    np.testing.assert_array_equal(found, a)


@layouts
@pytest.mark.parametrize("element", ["f32", "f16", "i8"])
def test_products(layout, element):
    """Of operands that come as the product wants them, in parts of K, or otherwise."""
    result = {"i8": "i32"}.get(element, element)
    own = [
        Layout(layout.sg_layout, (layout.sg_data[0], 16), order=layout.order),
        Layout(layout.sg_layout, (16, layout.sg_data[1]), order=layout.order),
    ]
    if layout.sg_layout[1] != 1:  # nobody has all of K
        own = [Layout((4, 1), (8, 16)), Layout((1, 4), (64, 8))]
    ta, tb = tile(own[0], "32x64", element), tile(own[1], "64x32", element)
    tc, vc = tile(layout, element=result), vec(element=result)
    va, vb = vec("32x64", element), vec("64x32", element)
    body = f"""{HEAD}
      {init("ta", "a", ta, element, at="%row, %zero")}
      {init("tb", "b", tb, element, at="%zero, %column")}
      {init("tc", "c", tc, result)}
      %x = xetile.load_tile %ta : {ta} -> {va}
      %y = xetile.load_tile %tb : {tb} -> {vb}
      %z = xetile.load_tile %tc : {tc} -> {vc}
      %p = xetile.tile_mma %x, %y, %z {{wg_map_c = {named(layout)}}}
          : {va}, {vb}, {vc} -> {vc}
      xetile.store_tile %p, %tc : {vc}, {tc}"""
    arguments = f"%a: {ragged(element)}, %b: {ragged(element)}, %c: {ragged(result)}"
    types = {"f32": "float32", "f16": "float16", "i8": "int8", "i32": "int32"}
    a = numbers(40, 50, dtype=types[element])
    b = numbers(50, 60, seed=1, dtype=types[element])
    c = numbers(40, 60, seed=2, dtype=types[result])
    *_, found = check(kernel(arguments, body), [a, b, c], native=layout in NATIVE)
    truth = a.astype("float64") @ b.astype("float64") + c
    np.testing.assert_array_equal(found, truth.astype(types[result]))


@layouts
def test_transposes(layout):
    turned = Layout(
        layout.sg_layout[::-1], layout.sg_data[::-1], order=layout.order[::-1]
    )
    for source in (turned, layout, LAYOUTS["rows"]):
        body = f"""{HEAD}
      {init("s", "a", tile(source))}
      {init("d", "b", tile(layout), at="%column, %row")}
      %v = xetile.load_tile %s : {tile(source)} -> {vec()}
      %w = xetile.tile_transpose %v, [1, 0] {{map = {named(layout)}}}
          : {vec()} -> {vec()}
      xetile.store_tile %w, %d : {vec()}, {tile(layout)}"""
        a = numbers(40, 50)
        _, found = check(
            kernel(AB, body), [a, numbers(50, 40, seed=1)], native=layout in NATIVE
        )
        np.testing.assert_array_equal(found, a.T)


@layouts
@pytest.mark.parametrize("dims", [[0], [1], [0, 1]])
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_reductions_and_broadcasts(layout, dims, element):
    left = lines(layout, dims)
    shape = "x".join("1" if dim in dims else "32" for dim in (0, 1))
    type_, whole = tile(layout, element=element), vec(element=element)
    some = vec(shape, element)
    body = f"""{HEAD}
      {init("s", "a", type_, element)}
      {init("d", "b", type_, element)}
      %v = xetile.load_tile %s : {type_} -> {whole}
      %r = xetile.tile_reduce <add>, %v {dims} {{map = {named(left)}}}
          : {whole} -> {some}
      %w = xetile.tile_broadcast %r {dims} {{map = {named(layout)}}}
          : {some} -> {whole}
      %m = xetile.tile_reduce <maxsi>, %v {dims} {{map = {named(left)}}}
          : {whole} -> {some}
      %n = xetile.tile_broadcast %m {dims} {{map = {named(layout)}}}
          : {some} -> {whole}
      %z = arith.mulf %w, %n {{map = {named(layout)}}} : {whole}
      xetile.store_tile %z, %d : {whole}, {type_}""".replace("maxsi", "maximumf")
    arguments = f"%a: {ragged(element)}, %b: {ragged(element)}"
    dtype = {"f32": "float32", "f16": "float16"}[element]
    a, b = numbers(32, 40, dtype=dtype), numbers(32, 40, seed=1, dtype=dtype)
    check(kernel(arguments, body), [a, b], grid=(2, 1), native=layout in NATIVE)


@layouts
def test_reductions_do_not_wait_for_a_conversion(layout):
    """Partial results move; the whole value of 4 KiB does not."""
    rows = LAYOUTS["rows"]
    type_, result = tile(layout), tile(line(rows, 0), "32x1")
    body = f"""{HEAD}
      {init("s", "a", type_)}
      {init("d", "b", result, at="%row, %zero")}
      %v = xetile.load_tile %s : {type_} -> {vec()}
      %w = xetile.tile_conv_layout %v {{map = {named(rows)}}} : {vec()}
      %r = xetile.tile_reduce <add>, %w [1] {{map = {named(line(rows, 0))}}}
          : {vec()} -> {vec("32x1")}
      xetile.store_tile %r, %d : {vec("32x1")}, {result}"""
    a, text = numbers(32, 32), kernel(AB, body)
    _, found = check(text, [a, numbers(32, 1, seed=1)], grid=(1, 1))
    np.testing.assert_array_equal(found, a.sum(1, keepdims=True))
    operations = distributed(text).walk()
    sizes = [shared_bytes(op) for op in operations if isinstance(op, memref.AllocOp)]
    assert sum(sizes) <= 32 * 4 * 4


@layouts
def test_reductions_of_groups(layout):
    grouped = Layout(
        layout.sg_layout,
        (layout.sg_data[0], max(1, layout.sg_data[1] // 4)),
        order=layout.order,
    )
    type_, small = tile(layout), tile(grouped, "32x8")
    body = f"""{HEAD}
      {init("s", "a", type_)}
      {init("d", "b", small, at="%row, %zero")}
      %v = xetile.load_tile %s : {type_} -> {vec()}
      %r = xetile.tile_reduce <add>, %v [1]
          {{map = {named(grouped)}, reduction_size = 4 : i64}}
          : {vec()} -> {vec("32x8")}
      xetile.store_tile %r, %d : {vec("32x8")}, {small}"""
    a = numbers(32, 32)
    _, found = check(
        kernel(AB, body),
        [a, numbers(32, 8, seed=1)],
        grid=(1, 1),
        native=layout in NATIVE,
    )
    np.testing.assert_array_equal(found, a.reshape(32, 8, 4).sum(2))


@layouts
@pytest.mark.parametrize("dim", [0, 1])
def test_scans(layout, dim):
    type_ = tile(layout)
    body = f"""{HEAD}
      {init("s", "a", type_)}
      {init("d", "b", type_)}
      %v = xetile.load_tile %s : {type_} -> {vec()}
      %w = xetile.tile_scan <add>, %v [{dim}] {{map = {named(layout)}}}
          : {vec()} -> {vec()}
      xetile.store_tile %w, %d : {vec()}, {type_}"""
    a = numbers(32, 32)
    _, found = check(
        kernel(AB, body),
        [a, numbers(32, 32, seed=1)],
        grid=(1, 1),
        native=layout in NATIVE,
    )
    np.testing.assert_array_equal(found, a.cumsum(dim))


@layouts
def test_index_ranges_and_masks(layout):
    """`arange` as a row and as a column, bounds, a table of constants."""
    row, column, m = line(layout, 1), line(layout, 0), named(layout)
    table = ", ".join(str(i * i % 7) for i in range(32))
    body = f"""{HEAD}
      {init("d", "b", tile(layout))}
      %n = arith.constant 23 : index
      %bound = arith.subi %n, %row : index
      %step = vector.step : vector<32xindex>
      %wide = arith.index_cast %step : vector<32xindex> to vector<32xi32>
      %across = vector.shape_cast %wide {{map = {named(row)}}}
          : vector<32xi32> to {vec("1x32", "i32")}
      %down = vector.shape_cast %across {{map = {named(column)}}}
          : {vec("1x32", "i32")} to {vec("32x1", "i32")}
      %x = xetile.tile_broadcast %across [0] {{map = {m}}}
          : {vec("1x32", "i32")} -> {vec(element="i32")}
      %y = xetile.tile_broadcast %down [1] {{map = {m}}}
          : {vec("32x1", "i32")} -> {vec(element="i32")}
      %hundred = arith.constant {{map = {m}}} dense<100> : {vec(element="i32")}
      %yy = arith.muli %y, %hundred {{map = {m}}} : {vec(element="i32")}
      %sum = arith.addi %x, %yy {{map = {m}}} : {vec(element="i32")}
      %f = arith.sitofp %sum {{map = {m}}} : {vec(element="i32")} to {vec()}
      %mask = vector.create_mask %bound, %n {{map = {m}}} : {vec(element="i1")}
      %fixed = vector.constant_mask [20, 10] {{map = {m}}} : {vec(element="i1")}
      %squares = arith.constant {{map = {named(row)}}} dense<[[{table}]]>
          : {vec("1x32", "i32")}
      %sf = arith.sitofp %squares {{map = {named(row)}}}
          : {vec("1x32", "i32")} to {vec("1x32")}
      %t = xetile.tile_broadcast %sf [0] {{map = {m}}} : {vec("1x32")} -> {vec()}
      %scale = arith.constant 0.5 : f32
      %half = vector.broadcast %scale {{map = {m}}} : f32 to {vec()}
      %u = arith.select %mask, %f, %t {{map = {m}}} : {vec(element="i1")}, {vec()}
      %v = arith.select %fixed, %half, %u {{map = {m}}} : {vec(element="i1")}, {vec()}
      xetile.store_tile %v, %d : {vec()}, {tile(layout)}"""
    (found,) = check(
        kernel(f"%b: {ragged()}", body),
        [numbers(40, 32)],
        grid=(1, 2),
        native=layout in NATIVE,
    )
    i, j = np.indices((40, 32))
    expected = np.where((i < 23) & (j < 23), j + 100 * (i % 32), j * j % 7)
    expected = np.where((i % 32 < 20) & (j < 10), 0.5, expected)
    np.testing.assert_array_equal(found, expected)


def test_what_can_be_computed_in_place_is_not_exchanged():
    """A column of indices needs nothing from other subgroups."""
    layout = LAYOUTS["exact"]
    row, column = line(layout, 1), line(layout, 0)
    out = tile(column, "32x1", "i32")
    body = f"""{HEAD}
      {init("d", "b", out, "i32", at="%row, %zero")}
      %step = vector.step : vector<32xindex>
      %wide = arith.index_cast %step : vector<32xindex> to vector<32xi32>
      %across = vector.shape_cast %wide {{map = {named(row)}}}
          : vector<32xi32> to {vec("1x32", "i32")}
      %down = vector.shape_cast %across {{map = {named(column)}}}
          : {vec("1x32", "i32")} to {vec("32x1", "i32")}
      xetile.store_tile %down, %d : {vec("32x1", "i32")}, {out}"""
    text = kernel(f"%b: {ragged('i32')}", body)
    check(text, [numbers(40, 1, dtype="int32")], grid=(1, 2))
    names = [op.name for op in distributed(text).walk()]
    assert "gpu.barrier" not in names
    assert "memref.alloc" not in names


@layouts
def test_what_has_no_distributed_form_is_computed_by_all(layout):
    type_, m = tile(layout), named(layout)
    packed = "vector<4x2x8x16xf32>"
    square = ", ".join(
        "[" + ", ".join(f"{(i * j) % 5}.0" for j in range(32)) + "]" for i in range(32)
    )
    body = f"""{HEAD}
      {init("s", "a", type_)}
      {init("d", "b", type_)}
      %v = xetile.load_tile %s : {type_} -> {vec()}
      %c = arith.constant {{map = {m}}} dense<[{square}]> : {vec()}
      %x = arith.addf %v, %c {{map = {m}}} : {vec()}
      %flat = vector.shape_cast %x : {vec()} to vector<1024xf32>
      %twice = arith.addf %flat, %flat : vector<1024xf32>
      %y = vector.shape_cast %twice {{map = {m}}} : vector<1024xf32> to {vec()}
      %start = arith.constant dense<0.0> : vector<32xf32>
      %sums = vector.multi_reduction <add>, %y, %start [0] : {vec()} to vector<32xf32>
      %line = vector.shape_cast %sums {{map = {named(line(layout, 1))}}}
          : vector<32xf32> to {vec("1x32")}
      %rows = xetile.tile_broadcast %line [0] {{map = {m}}} : {vec("1x32")} -> {vec()}
      %p = xetile.tile_pack %rows {{inner_blocks = array<i64: 8, 16>}}
          : {vec()} -> {packed}
      %q = arith.addf %p, %p : {packed}
      %u = xetile.tile_unpack %q {{inner_blocks = array<i64: 8, 16>, map = {m}}}
          : {packed} -> {vec()}
      %z = arith.subf %u, %y {{map = {m}}} : {vec()}
      xetile.store_tile %z, %d : {vec()}, {type_}"""
    a = numbers(32, 32)
    _, found = check(
        kernel(AB, body),
        [a, numbers(32, 32, seed=1)],
        grid=(1,),
        native=layout in NATIVE,
    )
    y = 2 * (a + np.multiply.outer(range(32), range(32)) % 5)
    np.testing.assert_array_equal(found, 2 * y.sum(0) - y)

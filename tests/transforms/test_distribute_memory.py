"""Tiles, arrays and scalars: what a workgroup writes, its subgroups write once."""

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
from xdsl.context import Context

from xetl.dialects.parser import parse_module
from xetl.errors import IRError
from xetl.transforms.distribute_to_subgroups import DistributeToSubgroupsPass


@layouts
def test_ragged_tiles_are_padded_and_cut_as_before(layout):
    type_ = tile(layout)
    body = f"""{HEAD}
      {init("s", "a", type_)}
      {init("d", "b", type_)}
      xetile.prefetch_tile %s : {type_}
      %v = xetile.load_tile %s {{padding = 3.0 : f32}} : {type_} -> {vec()}
      %c = arith.constant {{map = {named(layout)}}} dense<2.0> : {vec()}
      %w = arith.addf %v, %c {{map = {named(layout)}}} : {vec()}
      xetile.store_tile %w, %d : {vec()}, {type_}"""
    a, b = numbers(45, 50), numbers(50, 60)
    _, found = check(kernel(AB, body), [a, b], native=layout in NATIVE)
    expected = np.pad(a, ((0, 5), (0, 10)), constant_values=3) + 2
    np.testing.assert_array_equal(found, expected)


@layouts
def test_gathers_and_scatters(layout):
    m, scattered = named(layout), ", scattered = true"
    type_ = tile(layout, more=scattered)
    index, mask = vec(element="index"), vec(element="i1")
    table = line(layout, 1)
    body = f"""
      %step = vector.step : vector<32xindex>
      %across = vector.shape_cast %step {{map = {named(table)}}}
          : vector<32xindex> to {vec("1x32", "index")}
      %x = xetile.tile_broadcast %across [0] {{map = {m}}}
          : {vec("1x32", "index")} -> {index}
      %down = xetile.tile_transpose %x, [1, 0] {{map = {m}}} : {index} -> {index}
      %c32 = arith.constant {{map = {m}}} dense<32> : {index}
      %flat = arith.muli %down, %c32 {{map = {m}}} : {index}
      %at = arith.addi %flat, %x {{map = {m}}} : {index}
      %last = arith.constant {{map = {m}}} dense<1023> : {index}
      %back = arith.subi %last, %at {{map = {m}}} : {index}
      %some = arith.cmpi ult, %at, %c900 {{map = {m}}} : {index}
      %s = xetile.init_tile %a, %at : memref<2048xf32>, {index} -> {type_}
      %d = xetile.init_tile %b, %back : memref<2048xf32>, {index} -> {type_}
      %thousand = arith.constant {{map = {m}}} dense<1024> : {index}
      %moved = xetile.update_tile_offset %s, %thousand : {type_}, {index}
      %v = xetile.load_gather %s, %some {{padding = 5.0 : f32}}
          : {type_}, {mask} -> {vec()}
      %w = xetile.load_gather %moved, %some : {type_}, {mask} -> {vec()}
      %z = arith.addf %v, %w {{map = {m}}} : {vec()}
      xetile.store_scatter %z, %some, %d : {vec()}, {mask}, {type_}"""
    body = f"%c900 = arith.constant {{map = {m}}} dense<900> : {index}{body}"
    a, b = numbers(2048), numbers(2048, seed=1)
    text = kernel("%a: memref<2048xf32>, %b: memref<2048xf32>", body)
    _, found = check(text, [a, b], grid=(1,), native=layout in NATIVE)
    expected = b.copy()
    expected[124:1024] = (a[:900] + a[1024:1924])[::-1]
    np.testing.assert_array_equal(found, expected)


@layouts
def test_atomics_happen_once_and_tell_the_old_value(layout):
    type_, m = tile(layout), named(layout)
    body = f"""{HEAD}
      {init("s", "a", type_)}
      {init("d", "b", type_)}
      %v = arith.constant {{map = {m}}} dense<2.0> : {vec()}
      %old = xetile.atomic_rmw_tile <add> %v, %s : {vec()}, {type_} -> {vec()}
      %unused = xetile.atomic_rmw_tile <add> %v, %s : {vec()}, {type_} -> {vec()}
      %double = arith.addf %old, %old {{map = {m}}} : {vec()}
      %o = xetile.tile_conv_layout %double {{map = {named(LAYOUTS["rows"])}}} : {vec()}
      %w = xetile.tile_conv_layout %o {{map = {m}}} : {vec()}
      xetile.store_tile %w, %d : {vec()}, {type_}"""
    a, b = numbers(40, 50), numbers(40, 50, seed=1)
    summed, found = check(kernel(AB, body), [a, b], native=layout in NATIVE)
    np.testing.assert_array_equal(summed, a + 4)
    np.testing.assert_array_equal(found, a * 2)


def test_scattered_tiles_of_rank_1_are_one_subgroups_work():
    type_ = "!xetile.tile<32xf32, #xetile.tile_attr<scattered = true>>"
    kept = tile(LAYOUTS["exact"])
    body = f"""
      %at = vector.step : vector<32xindex>
      %mask = arith.constant dense<true> : vector<32xi1>
      %s = xetile.init_tile %a, %at : memref<1024xf32>, vector<32xindex> -> {type_}
      %d = xetile.init_tile %b, %at : memref<1024xf32>, vector<32xindex> -> {type_}
      %v = arith.constant dense<2.0> : vector<32xf32>
      %old = xetile.atomic_rmw_tile <add> %v, %s
          : vector<32xf32>, {type_} -> vector<32xf32>
      xetile.store_scatter %old, %mask, %d : vector<32xf32>, vector<32xi1>, {type_}
      %m = memref.reinterpret_cast %a to offset: [0], sizes: [32, 32], strides: [32, 1]
          : memref<1024xf32> to memref<32x32xf32, strided<[32, 1]>>
      %t = xetile.init_tile %m[0, 0] : memref<32x32xf32, strided<[32, 1]>> -> {kept}
      xetile.prefetch_tile %t : {kept}"""
    a, b = numbers(1024), numbers(1024, seed=1)
    text = kernel("%a: memref<1024xf32>, %b: memref<1024xf32>", body)
    summed, found = check(text, [a, b], grid=(1,))
    np.testing.assert_array_equal(summed[:32], a[:32] + 2)
    np.testing.assert_array_equal(found[:32], a[:32])


def test_scalars_are_written_once_and_known_to_all(capsys):
    layout = LAYOUTS["exact"]
    type_, m = tile(layout), named(layout)
    body = f"""{HEAD}
      {init("s", "a", type_)}
      {init("d", "b", type_)}
      %v = xetile.load_tile %s : {type_} -> {vec()}
      %r = xetile.tile_reduce <add>, %v [0, 1] {{map = {named(lines(layout, [0, 1]))}}}
          : {vec()} -> {vec("1x1")}
      %sum = vector.extract %r[0, 0] : f32 from {vec("1x1")}
      %some = vector.extract %v[3, 30] : f32 from {vec()}
      xetile.print "sum {{}} some {{}}"(%sum, %some) : f32, f32
      %positive = arith.cmpi ult, %zero, %one : index
      xetile.assert %positive, "never {{}}"(%v) : {vec()}
      memref.store %sum, %c[%zero] : memref<4xf32>
      %old = memref.atomic_rmw addf %sum, %c[%one] : (f32, memref<4xf32>) -> f32
      %all = arith.addf %old, %sum : f32
      %w = vector.broadcast %all {{map = {m}}} : f32 to {vec()}
      xetile.store_tile %w, %d : {vec()}, {type_}"""
    a, b = numbers(32, 32), numbers(32, 32, seed=1)
    c = numbers(4, seed=2)
    text = kernel(f"{AB}, %c: memref<4xf32>", body)
    _, found, kept = check(text, [a, b, c], grid=(1,))
    total = a.sum()
    np.testing.assert_array_equal(kept, [total, c[1] + total, c[2], c[3]])
    assert np.all(found == c[1] + total)
    line = f"sum {total} some {a[3, 30]}\n"
    assert capsys.readouterr().out == line * 2  # once at either level


@layouts
def test_several_vectors_of_one_tile(layout):
    pair = tile(layout, more=", array_length = 2 : i64")
    type_, m = tile(layout), named(layout)
    body = f"""{HEAD}
      {init("s", "a", pair)}
      {init("d", "b", type_)}
      %v:2 = xetile.load_tile %s : {pair} -> {vec()}, {vec()}
      %w = arith.subf %v#0, %v#1 {{map = {m}}} : {vec()}
      xetile.store_tile %w, %d : {vec()}, {type_}"""
    a, b = numbers(32, 64), numbers(32, 32, seed=1)
    _, found = check(kernel(AB, body), [a, b], grid=(1,), native=layout in NATIVE)
    np.testing.assert_array_equal(found, a[:, :32] - a[:, 32:])


def test_blocked_tiles_are_everybodys():
    layout = LAYOUTS["exact"]
    type_ = tile(layout, more=", inner_blocks = [8, 16]")
    blocked = "vector<4x2x8x16xf32>"
    body = f"""{HEAD}
      {init("s", "a", type_)}
      {init("d", "b", type_)}
      %v = xetile.load_tile %s : {type_} -> {blocked}
      %w = arith.addf %v, %v : {blocked}
      xetile.store_tile %w, %d : {blocked}, {type_}"""
    a = numbers(40, 40)
    _, found = check(kernel(AB, body), [a, numbers(40, 40, seed=1)])
    np.testing.assert_array_equal(found, a * 2)


@layouts
def test_column_major_tiles_and_higher_ranks(layout):
    type_ = tile(layout, more=", order = [0, 1]")
    plain = tile(layout)
    memory = "memref<3x40x50xf32>"
    body = f"""{HEAD}
      %s = xetile.init_tile %a[%two, %row, %column] : {memory} -> {plain}
      %d = xetile.init_tile %b[%row, %column]
          : memref<40x50xf32, strided<[1, 40]>> -> {type_}
      %v = xetile.load_tile %s : {plain} -> {vec()}
      xetile.store_tile %v, %d : {vec()}, {type_}"""
    a, b = numbers(3, 40, 50), np.asfortranarray(numbers(40, 50, seed=1))
    arguments = f"%a: {memory}, %b: memref<40x50xf32, strided<[1, 40]>>"
    _, found = check(kernel(arguments, body), [a, b], native=layout in NATIVE)
    np.testing.assert_array_equal(found, a[2])


def test_shared_memory_stays_once():
    layout = LAYOUTS["round robin"]
    shared = tile(layout, more=", memory_space = 3")
    type_ = tile(layout)
    turned = tile(LAYOUTS["rows"], more=", memory_space = 3")
    out = tile(LAYOUTS["rows"])
    body = f"""{HEAD}
      %slm = memref.alloc() : memref<32x32xf32, 3>
      {init("s", "a", type_)}
      {init("d", "b", out)}
      %x = xetile.init_tile %slm[0, 0] : memref<32x32xf32, 3> -> {shared}
      %y = xetile.init_tile %slm[0, 0] : memref<32x32xf32, 3> -> {turned}
      %v = xetile.load_tile %s : {type_} -> {vec()}
      xetile.store_tile %v, %x : {vec()}, {shared}
      gpu.barrier
      %w = xetile.load_tile %y : {turned} -> {vec()}
      xetile.store_tile %w, %d : {vec()}, {out}
      memref.dealloc %slm : memref<32x32xf32, 3>"""
    a = numbers(40, 40)
    _, found = check(kernel(AB, body), [a, numbers(40, 40, seed=1)])
    np.testing.assert_array_equal(found, a)


def test_private_memory():
    """Scalars of it are each subgroup's own; tiles of it are refused, with a line."""
    layout = LAYOUTS["exact"]
    type_, m = tile(layout), named(layout)
    body = f"""{HEAD}
      %own = memref.alloca() : memref<32x32xf32>
      {init("s", "a", type_)}
      %x = arith.constant 7.0 : f32
      memref.store %x, %own[%one, %one] : memref<32x32xf32>
      %y = memref.load %own[%one, %one] : memref<32x32xf32>
      %v = vector.broadcast %y {{map = {m}}} : f32 to {vec()}
      xetile.store_tile %v, %s : {vec()}, {type_}"""
    (found,) = check(kernel(f"%a: {ragged()}", body), [numbers(32, 32)], grid=(1,))
    assert np.all(found == 7)
    body += f"""
      %t = xetile.init_tile %own[0, 0] : memref<32x32xf32> -> {type_}"""
    with pytest.raises(IRError, match="memory that all its subgroups see") as caught:
        distributed(kernel(f"%a: {ragged()}", body))
    assert caught.value.line
    assert caught.value.code == "X0705"


def test_a_kernel_takes_arrays_and_scalars():
    layout = LAYOUTS["exact"]
    body = f"""
      %w = arith.addf %v, %v {{map = {named(layout)}}} : {vec()}"""
    text = kernel(f"%v: {vec()}", body)
    with pytest.raises(IRError, match="takes arrays and scalars") as caught:
        DistributeToSubgroupsPass().apply(Context(), parse_module(text, "k.mlir"))
    assert caught.value.line == 2


@layouts
def test_vectors_go_to_plain_memory_once(layout):
    m = named(layout)
    body = f"""{HEAD}
      %v = vector.load %a[%row, %column] {{map = {m}}} : memref<64x64xf32>, {vec()}
      %w = arith.addf %v, %v {{map = {m}}} : {vec()}
      gpu.barrier
      vector.store %w, %a[%row, %column] : memref<64x64xf32>, {vec()}"""
    a = numbers(64, 64)
    (found,) = check(kernel("%a: memref<64x64xf32>", body), [a])
    np.testing.assert_array_equal(found, 2 * a)

"""Gathers, atomics, shared memory, loops, texts: what lanes do with memory."""

from __future__ import annotations

import numpy as np
import pytest
from lane_interpreter import launch, to_lanes
from test_lanes_values import kernel

from xetl.errors import XetlError
from xetl_xegpu import simt


def test_masked_lanes_touch_nothing():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(40).astype(np.float32), np.full(16, 9.0, np.float32)
    # Lanes 10 and above would read far outside, and write over what is there.
    body = """
    %ten = arith.constant dense<10> : vector<16xindex>
    %mask = arith.cmpi ult, %step, %ten : vector<16xindex>
    %far = arith.constant dense<1000> : vector<16xindex>
    %four = arith.constant dense<4> : vector<16xindex>
    %near = arith.muli %step, %four : vector<16xindex>
    %at = arith.select %mask, %near, %far : vector<16xi1>, vector<16xindex>
    %v = xegpu.load %a0[%at], %mask
        : memref<40xf32>, vector<16xindex>, vector<16xi1> -> vector<16xf32>
    xegpu.store %v, %a1[%step], %mask
        : vector<16xf32>, memref<16xf32>, vector<16xindex>, vector<16xi1>
    """
    launch(kernel(body, "40xf32", "16xf32"), x, y)
    assert np.array_equal(y[:10], x[::4])
    assert np.all(y[10:] == 9.0)


@pytest.mark.parametrize(
    ("kind", "wanted"), [("addi", 16 * 3), ("maxs", 3), ("assign", 3), ("xori", 0)]
)
def test_atomics_of_lanes_that_meet(kind: str, wanted: int):
    x, old = np.zeros(4, np.int32), np.zeros(16, np.int32)
    body = f"""
    %two = arith.constant dense<2> : vector<16xindex>
    %v = arith.constant dense<3> : vector<16xi32>
    %t = xegpu.create_tdesc %a0, %two : memref<4xi32>, vector<16xindex>
        -> !xegpu.tensor_desc<16xi32, #xegpu.scatter_tdesc_attr<>>
    %o = xegpu.atomic_rmw {kind} %t, %on, %v
        : !xegpu.tensor_desc<16xi32, #xegpu.scatter_tdesc_attr<>>,
          vector<16xi1>, vector<16xi32> -> vector<16xi32>
    xegpu.store %o, %a1[%step], %on
        : vector<16xi32>, memref<16xi32>, vector<16xindex>, vector<16xi1>
    """
    launch(kernel(body, "4xi32", "16xi32"), x, old)
    assert x.tolist() == [0, 0, wanted, 0]
    assert sorted(old)[0] == 0
    if kind == "addi":
        assert sorted(old) == [3 * n for n in range(16)]


def test_an_address_is_memory_too():
    y = np.zeros(16, np.float32)
    body = """
    %p = memref.extract_aligned_pointer_as_index %a0 : memref<16xf32> -> index
    %q = arith.index_cast %p : index to i64
    %v = arith.constant dense<2.5> : vector<16xf32>
    xegpu.store %v, %q[%step], %on
        : vector<16xf32>, i64, vector<16xindex>, vector<16xi1>
    """
    launch(kernel(body, "16xf32"), y)
    assert y.tolist() == [2.5] * 16


def test_subgroups_exchange_through_shared_memory():
    """Each writes its fragment, all meet, each reads its neighbour's, transposed."""
    x, y = np.zeros((32, 16), np.int32), np.zeros((32, 16), np.int32)
    x[...] = np.arange(512).reshape(32, 16)
    body = """
    %s = gpu.subgroup_id : index
    %c8 = arith.constant 8 : index
    %c3 = arith.constant 3 : index
    %row = arith.muli %s, %c8 : index
    %next = arith.subi %c3, %s : index
    %other = arith.muli %next, %c8 : index
    %i = xegpu.create_nd_tdesc %a0 : memref<32x16xi32> -> !xegpu.tensor_desc<8x16xi32>
    %o = xegpu.create_nd_tdesc %a1 : memref<32x16xi32> -> !xegpu.tensor_desc<8x16xi32>
    %unused = memref.alloc() : memref<3xi8, 3>
    %slm = memref.alloc() : memref<2048xi8, 3>
    %m = xegpu.create_mem_desc %slm : memref<2048xi8, 3> -> !xegpu.mem_desc<32x16xi32>
    %v = xegpu.load_nd %i[%row, %c0] : !xegpu.tensor_desc<8x16xi32> -> vector<8x16xi32>
    xegpu.store_matrix %v, %m[%row, 0]
        : vector<8x16xi32>, !xegpu.mem_desc<32x16xi32>, index
    gpu.barrier
    %w = xegpu.load_matrix %m[%other, 0]
        : !xegpu.mem_desc<32x16xi32>, index -> vector<8x16xi32>
    xegpu.store_nd %w, %o[%row, %c0] : vector<8x16xi32>, !xegpu.tensor_desc<8x16xi32>
    """
    launch(kernel(body, "32x16xi32", "32x16xi32", subgroups=4), x, y)
    assert np.array_equal(y, x.reshape(4, 8, 16)[::-1].reshape(32, 16))


def test_shared_memory_has_the_strides_of_its_matrix():
    y = np.zeros((8, 16), np.float32)
    body = """
    %slm = memref.alloc() : memref<256xf32, 3>
    %m = xegpu.create_mem_desc %slm : memref<256xf32, 3>
        -> !xegpu.mem_desc<16x16xf32, #xegpu.mem_layout<stride = [1, 16]>>
    %n = xegpu.create_mem_desc %slm : memref<256xf32, 3> -> !xegpu.mem_desc<16x16xf32>
    %v = arith.index_cast %step : vector<16xindex> to vector<16xi32>
    %f = arith.sitofp %v : vector<16xi32> to vector<16xf32>
    %r = vector.broadcast %f : vector<16xf32> to vector<8x16xf32>
    xegpu.store_matrix %r, %m[8, 0] : vector<8x16xf32>,
        !xegpu.mem_desc<16x16xf32, #xegpu.mem_layout<stride = [1, 16]>>
    gpu.barrier
    %w = xegpu.load_matrix %n[4, 0] : !xegpu.mem_desc<16x16xf32> -> vector<8x16xf32>
    %o = xegpu.create_nd_tdesc %a0 : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %w, %o[%c0, %c0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    """
    launch(kernel(body, "8x16xf32"), y)
    assert np.array_equal(y[:, 8:], np.repeat(np.arange(4.0, 12.0)[:, None], 8, axis=1))


def test_loops_and_branches_carry_pieces():
    y = np.zeros((8, 16), np.float32)
    body = """
    %n = arith.constant 10 : index
    %zero = arith.constant dense<0.0> : vector<8x16xf32>
    %one = arith.constant dense<1.0> : vector<8x16xf32>
    %c7 = arith.constant 7 : index
    %sum:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero, %j = %c0)
        -> (vector<8x16xf32>, index) {
      %small = arith.cmpi slt, %i, %c7 : index
      %z = scf.if %small -> (vector<8x16xf32>) {
        %p = arith.addf %x, %one : vector<8x16xf32>
        scf.yield %p : vector<8x16xf32>
      } else {
        scf.yield %x : vector<8x16xf32>
      }
      scf.yield %z, %i : vector<8x16xf32>, index
    }
    %w:2 = scf.while (%k = %sum#1, %x = %sum#0)
        : (index, vector<8x16xf32>) -> (index, vector<8x16xf32>) {
      %go = arith.cmpi sgt, %k, %c7 : index
      scf.condition(%go) %k, %x : index, vector<8x16xf32>
    } do {
    ^bb0(%k: index, %x: vector<8x16xf32>):
      %less = arith.subi %k, %c1 : index
      %more = arith.addf %x, %x : vector<8x16xf32>
      scf.yield %less, %more : index, vector<8x16xf32>
    }
    %o = xegpu.create_nd_tdesc %a0 : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %w#1, %o[%c0, %c0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    """
    launch(kernel(body, "8x16xf32"), y)
    assert np.all(y == 28.0)


def test_dynamic_arrays_and_numbers_are_arguments():
    x = np.arange(40 * 24, dtype=np.float32).reshape(40, 24)[:, :20]
    y = np.zeros((3, 16), np.float32)
    text = """
    gpu.module @m { gpu.func @k(%x: memref<?x?xf32, strided<[?, 1]>>, %n: i64,
        %y: memref<?x16xf32>) kernel
        attributes {known_block_size = array<i32: 16, 1, 1>} {
      %on = arith.constant dense<true> : vector<16xi1>
      %b, %o, %s:2, %t:2 = memref.extract_strided_metadata %x
          : memref<?x?xf32, strided<[?, 1]>>
          -> memref<f32>, index, index, index, index, index
      %step = vector.step : vector<16xindex>
      %g = gpu.block_id y
      %all = gpu.grid_dim y
      %m = arith.index_cast %n : i64 to index
      %r = arith.addi %g, %m : index
      %first = arith.muli %r, %t#0 : index
      %w = vector.broadcast %first : index to vector<16xindex>
      %at = arith.addi %w, %step : vector<16xindex>
      %start = memref.extract_aligned_pointer_as_index %x
          : memref<?x?xf32, strided<[?, 1]>> -> index
      %from = arith.index_cast %start : index to i64
      %v = xegpu.load %from[%at], %on
          : i64, vector<16xindex>, vector<16xi1> -> vector<16xf32>
      %a = arith.index_cast %all : index to i64
      %f = arith.sitofp %a : i64 to f32
      %fs = vector.broadcast %f : f32 to vector<16xf32>
      %sum = arith.addf %v, %fs : vector<16xf32>
      %c16 = arith.constant 16 : index
      %end = memref.extract_aligned_pointer_as_index %y : memref<?x16xf32> -> index
      %to = arith.index_cast %end : index to i64
      %down = arith.muli %g, %c16 : index
      %d = vector.broadcast %down : index to vector<16xindex>
      %out = arith.addi %d, %step : vector<16xindex>
      xegpu.store %sum, %to[%out], %on
          : vector<16xf32>, i64, vector<16xindex>, vector<16xi1>
      gpu.return
    } }"""
    wide = np.ascontiguousarray(x)
    launch(text, wide, 5, y, grid=(1, 3, 1))
    assert np.array_equal(y, wide[5:8, :16] + 3)


def test_texts_get_what_a_lane_holds():
    body = """
    %v = arith.constant dense<2.0> : vector<4x16xf32>
    %w = arith.constant dense<3.0> : vector<1x16xf32>
    "xegpu_x.print"(%c1, %v, %w)
        <{template = "{} {}", shapes = [array<i64>, array<i64: 5, 16>]}>
        : (index, vector<4x16xf32>, vector<1x16xf32>) -> ()
    """
    ((text, values),) = launch(kernel(body))
    assert text == "{} {}"
    assert [value.shape for value in values] == [(16,), (16, 4), (16,)]
    made, _ = to_lanes(kernel(body))
    (op,) = [op for op in made.walk() if isinstance(op, simt.PrintOp)]
    assert op.field_shapes() == [(), (5, 16)]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%m = memref.alloc() : memref<8xf32>", "cannot allocate global memory"),
        (
            "%m = memref.alloc() : memref<64xf32, 3>\n"
            "%d = xegpu.create_mem_desc %m : memref<64xf32, 3> -> "
            "!xegpu.mem_desc<8x8xf32, #xegpu.mem_layout<block = [4, 4]>>",
            "has no blocks here",
        ),
        (
            "%d = xegpu.create_nd_tdesc %a0 : memref<64x64xf32> -> "
            "!xegpu.tensor_desc<8x4xf32>\n"
            "%v = xegpu.load_nd %d[%c0, %c0] : !xegpu.tensor_desc<8x4xf32> -> "
            "vector<8x4xf32>",
            "16 lanes cannot share",
        ),
        (
            "%p = memref.extract_aligned_pointer_as_index %a0 "
            ": memref<64x64xf32> -> index\n"
            "%q = arith.index_cast %p : index to i64\n"
            "%v = xegpu.load %q[%step], %on {chunk_size = 4 : i64} : i64, "
            "vector<16xindex>, vector<16xi1> -> vector<16x4xf32>",
            "16 lanes access one element each",
        ),
    ],
)
def test_what_a_text_asks_of_memory_in_vain_is_named(body: str, message: str):
    with pytest.raises(XetlError, match=message) as error:
        launch(kernel(body, "64x64xf32"), np.zeros((64, 64), np.float32))
    assert error.value.line == 8 + body.count("\n")
    assert error.value.code == "X0705"


@pytest.mark.parametrize("size", ["8, 2, 1", "24, 1, 1"])
def test_a_workgroup_is_whole_subgroups_along_x(size: str):
    text = kernel("").replace("16, 1, 1", size)
    with pytest.raises(XetlError, match="whole subgroups of 16 lanes"):
        to_lanes(text)


def test_an_array_begins_at_its_first_element_whatever_its_type_says():
    x = np.arange(64, dtype=np.float32).reshape(4, 16)
    text = """
    gpu.module @m { gpu.func @k(%x: memref<?x16xf32, strided<[?, 1], offset: ?>>) kernel
        attributes {known_block_size = array<i32: 16, 1, 1>} {
      %c1 = arith.constant 1 : index
      %c0 = arith.constant 0 : index
      %v = arith.constant dense<9.0> : vector<1x16xf32>
      %d = xegpu.create_nd_tdesc %x, shape: [4, 16], strides: [16, 1]
          : memref<?x16xf32, strided<[?, 1], offset: ?>> -> !xegpu.tensor_desc<1x16xf32>
      xegpu.store_nd %v, %d[%c1, %c0] : vector<1x16xf32>, !xegpu.tensor_desc<1x16xf32>
      gpu.return
    } }"""
    wanted = x.copy()
    wanted[1] = 9.0
    launch(text, x)
    assert np.array_equal(x, wanted)

"""Loads, stores, local memory and barriers on opencl:cpu."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.xegpu.emit.elementwise import DTYPES, edges
from tests.backends.xegpu.emit.on_opencl import Program, i64, kernel

SIZES = {name: np.dtype(dtype).itemsize for name, dtype in DTYPES.items()}
FILLS = {"i1": "true", "f16": "-1.5", "bf16": "-1.5", "f32": "-1.5", "f64": "-1.5"}


def masked_copy(type_: str) -> str:
    """Lanes below ``%n`` copy an element, the others have what fills it."""
    fill = FILLS.get(type_, "-7")
    literal = fill if type_ == "i1" else f"{fill} : {type_}"
    body = f"""
      %size = arith.constant {SIZES[type_]} : i64
      %offset = arith.muli %wide, %size : i64
      %from = arith.addi %in, %offset : i64
      %to = arith.addi %out, %offset : i64
      %also = arith.addi %masked, %offset : i64
      %mask = arith.cmpi slt, %wide, %n : i64
      %fill = arith.constant {literal}
      %v = simt.load %from, %mask, %fill : {type_}
      simt.store %v, %to, %on : {type_}
      simt.store %v, %also, %mask : {type_}"""
    return kernel(f"k_{type_}", "%in: i64, %out: i64, %masked: i64, %n: i64", body)


def test_masked_elements_are_not_touched():
    program = Program("\n".join(masked_copy(type_) for type_ in DTYPES))
    for type_, dtype in DTYPES.items():
        for count in (0, 1, 15, 16):
            values = edges(dtype, 64, 3)[:16]
            given = values[:count].copy()  # what is behind it belongs to nobody
            out, masked = np.zeros(16, dtype), np.zeros(16, dtype)
            program(f"k_{type_}", given, out, masked, i64(count))
            fill = True if type_ == "i1" else float(FILLS.get(type_, "-7"))
            expected = np.full(16, fill, dtype)
            expected[:count] = given
            assert out.tobytes() == expected.tobytes(), type_
            expected[count:] = 0
            assert masked.tobytes() == expected.tobytes(), type_


def test_masked_addresses_may_be_anything():
    """An address that is masked is never used: here it is one that faults."""
    body = """
      %bad = arith.constant 8 : i64
      %off = arith.constant false
      %fill = arith.constant 3.0 : f32
      %two = arith.constant 2 : i32
      %odd = arith.remui %lane, %two : i32
      %one = arith.constant 1 : i32
      %mask = arith.cmpi eq, %odd, %one : i32
      %four = arith.constant 4 : i64
      %offset = arith.muli %wide, %four : i64
      %good = arith.addi %out, %offset : i64
      %address = arith.select %mask, %good, %bad : i64
      %v = simt.load %address, %mask, %fill : f32
      %w = arith.addf %v, %v : f32
      simt.store %w, %address, %mask : f32
      %old = simt.atomic "add" %w, %address, %mask : f32
      %none = simt.load %bad, %off, %fill : f32
      simt.store %none, %bad, %off : f32"""
    out = np.arange(16, dtype=np.float32)
    Program(kernel("k", "%out: i64", body))("k", out)
    expected = np.arange(16, dtype=np.float32)
    expected[1::2] *= 4
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("type_", ["i1", "i8", "bf16", "f32", "i64"])
def test_local_memory_is_shared_by_the_workgroup(type_: str):
    """64 lanes write, meet, and read what another subgroup wrote."""
    size = SIZES[type_]
    fill = "false" if type_ == "i1" else f"{'0.0' if 'f' in type_ else '0'} : {type_}"
    body = f"""
      %sg = simt.subgroup_id
      %c16 = arith.constant 16 : i32
      %first = arith.muli %sg, %c16 : i32
      %here = arith.addi %first, %lane : i32
      %here64 = arith.extui %here : i32 to i64
      %last = arith.constant 63 : i64
      %there64 = arith.subi %last, %here64 : i64
      %size = arith.constant {size} : i64
      %mine = arith.muli %here64, %size : i64
      %other = arith.muli %there64, %size : i64
      %slm = simt.local_base 128
      %write = arith.addi %slm, %mine : i64
      %read = arith.addi %slm, %other : i64
      %from = arith.addi %in, %mine : i64
      %to = arith.addi %out, %mine : i64
      %fill = arith.constant {fill}
      %v = simt.load %from, %on, %fill : {type_}
      simt.store %v, %write, %on {{space = "local"}} : {type_}
      simt.barrier
      %mask = arith.cmpi sgt, %other, %size : i64
      %w = simt.load %read, %mask, %fill {{space = "local"}} : {type_}
      simt.fence "workgroup"
      simt.fence "device"
      simt.store %w, %to, %on : {type_}"""
    slm = 128 + 64 * size
    text = kernel("k", "%in: i64, %out: i64", body, lanes=64, slm=slm)
    given = edges(DTYPES[type_], 64, 9)
    out = np.zeros_like(given)
    Program(text)("k", given, out, lanes=64)
    expected = given[::-1].copy()
    expected[-2:] = 0  # their masks are not set
    assert out.tobytes() == expected.tobytes()


def test_ids_and_sizes_of_the_grid():
    body = """
      %x = simt.group_id x
      %y = simt.group_id y
      %z = simt.group_id z
      %nx = simt.num_groups x
      %ny = simt.num_groups y
      %sg = simt.subgroup_id
      %c16 = arith.constant 16 : i32
      %c32 = arith.constant 32 : i64
      %c8 = arith.constant 8 : i64
      %first = arith.muli %sg, %c16 : i32
      %in_group = arith.addi %first, %lane : i32
      %local = arith.extui %in_group : i32 to i64
      %group = arith.muli %x, %c32 : i64
      %item = arith.addi %group, %local : i64
      %offset = arith.muli %item, %c8 : i64
      %to = arith.addi %out, %offset : i64
      %yz = arith.addi %y, %z : i64
      %sizes = arith.muli %nx, %ny : i64
      %known = arith.addi %yz, %sizes : i64
      %v = arith.addi %known, %item : i64
      simt.store %v, %to, %on : i64"""
    out = np.zeros(3 * 32, np.int64)
    text = kernel("k", "%out: i64", body, lanes=32)
    Program(text)("k", out, groups=3, lanes=32)
    np.testing.assert_array_equal(out, np.arange(3 * 32) + 3)

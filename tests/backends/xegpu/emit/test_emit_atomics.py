"""Atomic operations of all kinds and types on opencl:cpu, many lanes on one element."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.xegpu.emit.elementwise import DTYPES, assert_same, edges
from tests.backends.xegpu.emit.on_opencl import Program, kernel, parsed
from xetl.dialects.reduction_kinds import FLOAT_KINDS, INTEGER_KINDS
from xetl_reference.combining import combine
from xetl_xegpu.emit.module import llvm_text

GROUPS, LANES = 8, 32


def kinds_of(type_: str) -> tuple[str, ...]:
    return (*(FLOAT_KINDS if "f" in type_ else INTEGER_KINDS), "assign")


def atomic_kernel(kind: str, type_: str) -> str:
    """Element ``lane % 4`` of memory takes part of every lane; old values are kept."""
    size = np.dtype(DTYPES[type_]).itemsize
    zero = "false" if type_ == "i1" else f"{'0.0' if 'f' in type_ else '0'} : {type_}"
    body = f"""
      %sg = simt.subgroup_id
      %x = simt.group_id x
      %c16 = arith.constant 16 : i32
      %first = arith.muli %sg, %c16 : i32
      %local = arith.addi %first, %lane : i32
      %local64 = arith.extui %local : i32 to i64
      %many = arith.constant {LANES} : i64
      %base = arith.muli %x, %many : i64
      %item = arith.addi %base, %local64 : i64
      %size = arith.constant {size} : i64
      %offset = arith.muli %item, %size : i64
      %from = arith.addi %in, %offset : i64
      %to = arith.addi %old, %offset : i64
      %four = arith.constant 4 : i64
      %element = arith.remui %item, %four : i64
      %shift = arith.muli %element, %size : i64
      %where = arith.addi %memory, %shift : i64
      %zero = arith.constant {zero}
      %v = simt.load %from, %on, %zero : {type_}
      %three = arith.constant 3 : i64
      %mask = arith.cmpi ne, %element, %three : i64
      %was = simt.atomic "{kind}" %v, %where, %mask : {type_}
      simt.store %was, %to, %on : {type_}"""
    arguments = "%memory: i64, %in: i64, %old: i64"
    return kernel(f"k_{kind}", arguments, body, lanes=LANES)


def numbers(type_: str, kind: str) -> np.ndarray:
    rng, count = np.random.default_rng(4), GROUPS * LANES
    if "f" in type_ and kind in ("add", "mul"):
        some = [0.5, 1.0, -1.0, 2.0] if kind == "mul" else [-2.0, -1.0, 1.0, 3.0]
        return rng.choice(some, count).astype(DTYPES[type_])
    return edges(DTYPES[type_], count, 6)


@pytest.mark.parametrize("type_", list(DTYPES))
def test_all_kinds(type_: str):
    dtype = np.dtype(DTYPES[type_])
    program = Program("\n".join(atomic_kernel(kind, type_) for kind in kinds_of(type_)))
    for kind in kinds_of(type_):
        given = numbers(type_, kind)
        # Guards around it: narrow elements share a word with their neighbours.
        memory = np.ones(8, dtype)
        old = np.zeros_like(given)
        program(f"k_{kind}", memory[2:], given, old, groups=GROUPS, lanes=LANES)
        assert (memory[[0, 1, 5, 6, 7]] == 1).all(), kind
        lanes = np.arange(len(given)) % 4
        assert (old[lanes == 3] == 0).all(), kind
        for element in range(3):
            mine = given[lanes == element]
            was = old[lanes == element]
            _check(kind, dtype, mine, was, memory[2 + element])


def _check(
    kind: str, dtype: np.dtype, given: np.ndarray, old: np.ndarray, last: np.ndarray
) -> None:
    if kind == "assign":  # each value was somebody's old one, or stays
        seen = np.sort(np.append(old, last).astype(np.float64))
        expected = np.sort(np.append(given, dtype.type(1)).astype(np.float64))
        np.testing.assert_array_equal(seen, expected)
        return
    step, total = combine(kind, dtype), np.ones(1, dtype)
    with np.errstate(all="ignore"):
        for value in given:
            total = step(total, np.array([value], dtype))
    assert_same(np.array([last], dtype), total.astype(dtype), kind)


def test_old_values_are_those_of_a_moment():
    """Lanes that count get every number once."""
    program = Program(atomic_kernel("add", "i32"))
    memory = np.zeros(8, np.int32)
    given = np.ones(GROUPS * LANES, np.int32)
    old = np.zeros_like(given)
    program("k_add", memory, given, old, groups=GROUPS, lanes=LANES)
    for element in range(3):
        found = np.sort(old[np.arange(len(old)) % 4 == element])
        np.testing.assert_array_equal(found, np.arange(GROUPS * LANES // 4))


@pytest.mark.parametrize("type_", ["i8", "i16", "i32", "i64", "f16", "bf16", "f32"])
def test_local_memory(type_: str):
    size = np.dtype(DTYPES[type_]).itemsize
    is_float = "f" in type_
    one = f"{'1.0' if is_float else '1'} : {type_}"
    zero = f"{'0.0' if is_float else '0'} : {type_}"
    body = f"""
      %slm = simt.local_base {8 + size}
      %zero = arith.constant {zero}
      %one = arith.constant {one}
      simt.store %zero, %slm, %on {{space = "local"}} : {type_}
      simt.barrier
      %old = simt.atomic "add" %one, %slm, %on {{space = "local"}} : {type_}
      simt.barrier
      %sum = simt.load %slm, %on, %zero {{space = "local"}} : {type_}
      %size = arith.constant {size} : i64
      %offset = arith.muli %wide, %size : i64
      %to = arith.addi %out, %offset : i64
      simt.store %sum, %to, %on : {type_}"""
    out = np.zeros(16, DTYPES[type_])
    text = kernel("k", "%out: i64", body, lanes=64, slm=32)
    Program(text)("k", out, lanes=64)
    assert (out == 64).all()


def test_a_loop_stands_once_where_builtins_are_emulated():
    """512 of them took 36 s to build on opencl:cpu; GPUs have no calls."""
    module = parsed(atomic_kernel("add", "f16"))
    assert 'define spir_func half @"xetl_atomic_add_f16"' in llvm_text(module, "opencl")
    assert "xetl_atomic" not in llvm_text(module, "pvc")

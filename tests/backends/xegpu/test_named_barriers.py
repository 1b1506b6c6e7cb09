"""Named barriers for some subgroups: as GPUs have them, and gathered for emulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lane_interpreter import launch, run, to_lanes
from test_lanes_values import kernel
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from xetl.errors import XetlError
from xetl_xegpu import simt
from xetl_xegpu.lowering.gather_barriers import GatherBarriersPass

ROW = "vector<1x16xf32>"
MATRIX = "!xegpu.mem_desc<32x16xf32>"


def meetings(side: str, count: int) -> str:
    """A branch in which two subgroups add what the other has, in turns."""
    lines: list[str] = []
    for turn in range(count):
        at, last, new = f"%{side}_at{turn}", f"%{side}{turn}", f"%{side}{turn + 1}"
        lines.append(f"""
        %{side}_c{turn} = arith.constant {8 * turn} : index
        {at} = arith.addi %s, %{side}_c{turn} : index
        {at}_b = arith.addi %bit, %{side}_c{turn} : index
        xegpu.store_matrix {last if turn else "%v"}, %m[{at}, 0]
            : {ROW}, {MATRIX}, index
        xegpu.nbarrier_arrive %{side} : !xegpu.nbarrier
        xegpu.nbarrier_wait %{side} : !xegpu.nbarrier
        {at}_w = xegpu.load_matrix %m[{at}_b, 0] : {MATRIX}, index -> {ROW}
        {new} = arith.addf {at}_w, {last if turn else "%v"} : {ROW}""")
    return "\n".join([*lines, f"scf.yield %{side}{count} : {ROW}"])


def kernel_of(members: int, left: int, right: int, turns: int = 2) -> str:
    """Four subgroups in pairs; ``members`` are to meet at the barrier of a pair."""
    body = f"""
    %s = gpu.subgroup_id : index
    %c2 = arith.constant 2 : index
    %turns = arith.constant {turns} : index
    %n1 = arith.constant 1 : i8
    %n2 = arith.constant 2 : i8
    %count = arith.constant {members} : i8
    %left = xegpu.init_nbarrier %n1, %count : i8, i8 -> !xegpu.nbarrier
    %right = xegpu.init_nbarrier %n2, %count : i8, i8 -> !xegpu.nbarrier
    %slm = memref.alloc() : memref<512xf32, 3>
    %m = xegpu.create_mem_desc %slm : memref<512xf32, 3> -> {MATRIX}
    %bit = arith.xori %s, %c1 : index
    %pair = arith.divui %s, %c2 : index
    %is_left = arith.cmpi eq, %pair, %c0 : index
    %lanes = arith.index_cast %step : vector<16xindex> to vector<16xi32>
    %f = arith.sitofp %lanes : vector<16xi32> to vector<16xf32>
    %s32 = arith.index_cast %s : index to i32
    %sf = arith.sitofp %s32 : i32 to f32
    %sv = vector.broadcast %sf : f32 to vector<16xf32>
    %sum = arith.addf %f, %sv : vector<16xf32>
    %start = vector.shape_cast %sum : vector<16xf32> to {ROW}
    %end = scf.for %k = %c0 to %turns step %c1 iter_args(%v = %start) -> ({ROW}) {{
      %found = scf.if %is_left -> ({ROW}) {{
        {meetings("left", left)}
      }} else {{
        {meetings("right", right)}
      }}
      scf.yield %found : {ROW}
    }}
    %flat = vector.shape_cast %end : {ROW} to vector<16xf32>
    %c16 = arith.constant 16 : index
    %row = arith.muli %s, %c16 : index
    %rows = vector.broadcast %row : index to vector<16xindex>
    %at = arith.addi %rows, %step : vector<16xindex>
    xegpu.store %flat, %a0[%at], %on
        : vector<16xf32>, memref<64xf32>, vector<16xindex>, vector<16xi1>
    """
    return kernel(body, "64xf32", subgroups=4)


def expected(left: int, right: int, turns: int = 2) -> Any:
    rows = np.arange(16.0) + np.arange(4.0)[:, None]
    for pair, count in ((slice(0, 2), left), (slice(2, 4), right)):
        for _ in range(count * turns):
            rows[pair] = rows[pair].sum(axis=0)
    return rows


COUNTS = [(2, 2), (2, 3), (3, 2)]


@pytest.mark.parametrize(("left", "right"), COUNTS)
def test_pairs_of_subgroups_meet_at_barriers_of_their_own(left: int, right: int):
    out = np.zeros((4, 16), np.float32)
    launch(kernel_of(2, left, right), out.reshape(64))
    np.testing.assert_array_equal(out, expected(left, right))


def test_a_barrier_that_nobody_else_comes_to_is_found():
    with pytest.raises(AssertionError, match="wait at a barrier"):
        launch(kernel_of(3, 2, 2), np.zeros(64, np.float32))


@pytest.mark.parametrize("members", [2, 4])
@pytest.mark.parametrize(("left", "right"), COUNTS)
def test_gathered_barriers_give_the_same(left: int, right: int, members: int):
    made, types = to_lanes(kernel_of(members, left, right))
    module = made.parent_op()
    assert isinstance(module, ModuleOp)
    GatherBarriersPass().apply(Context(), module)
    module.verify()
    barriers = [op for op in made.walk() if "barrier" in op.name]
    assert {type(op) for op in barriers} == {simt.BarrierOp}
    assert len(barriers) == max(left, right)
    out = np.zeros((4, 16), np.float32)
    run(made, types, out.reshape(64))
    np.testing.assert_array_equal(out, expected(left, right))


def made(count: int) -> str:
    """So many barriers for two of four subgroups."""
    lines = ["%two = arith.constant 2 : i8"]
    for number in range(count):
        lines.append(f"%n{number} = arith.constant {number} : i8")
        lines.append(
            f"%b{number} = xegpu.init_nbarrier %n{number}, %two"
            " : i8, i8 -> !xegpu.nbarrier"
        )
    return kernel("\n".join(lines), subgroups=4)


def test_a_workgroup_has_31_barriers_for_some():
    to_lanes(made(31))
    with pytest.raises(XetlError, match="no more than 31 named barriers"):
        to_lanes(made(32))


def test_a_loop_carries_no_barrier():
    body = """
    %n = arith.constant 1 : i8
    %four = arith.constant 4 : i8
    %b = xegpu.init_nbarrier %n, %four : i8, i8 -> !xegpu.nbarrier
    %c = scf.for %i = %c0 to %c1 step %c1 iter_args(%x = %b) -> (!xegpu.nbarrier) {
      xegpu.nbarrier_arrive %x : !xegpu.nbarrier
      xegpu.nbarrier_wait %x : !xegpu.nbarrier
      scf.yield %x : !xegpu.nbarrier
    }"""
    with pytest.raises(XetlError, match="cannot carry a named barrier"):
        to_lanes(kernel(body, subgroups=4))


BRINGS = f"""
    %w = arith.addf %v, %v : {ROW}
    xegpu.store_matrix %w, %m[%c0, 0] : {ROW}, {MATRIX}, index
    xegpu.nbarrier_arrive %b : !xegpu.nbarrier
"""
TAKES = f"""
    xegpu.nbarrier_arrive %b : !xegpu.nbarrier
    xegpu.nbarrier_wait %b : !xegpu.nbarrier
    %w = xegpu.load_matrix %m[%c0, 0] : {MATRIX}, index -> {ROW}
    %flat = vector.shape_cast %w : {ROW} to vector<16xf32>
    %rows = vector.broadcast %row : index to vector<16xindex>
    %at = arith.addi %rows, %step : vector<16xindex>
    xegpu.store %flat, %a0[%at], %on
        : vector<16xf32>, memref<64xf32>, vector<16xindex>, vector<16xi1>
"""


def bringing(first: str) -> str:
    """Subgroup 0 brings a row to the three others; which side stands first."""
    then, other = (BRINGS, TAKES) if first == "brings" else (TAKES, BRINGS)
    compare = "eq" if first == "brings" else "ne"
    body = f"""
    %s = gpu.subgroup_id : index
    %n1 = arith.constant 1 : i8
    %four = arith.constant 4 : i8
    %c16 = arith.constant 16 : index
    %row = arith.muli %s, %c16 : index
    %b = xegpu.init_nbarrier %n1, %four : i8, i8 -> !xegpu.nbarrier
    %slm = memref.alloc() : memref<512xf32, 3>
    %m = xegpu.create_mem_desc %slm : memref<512xf32, 3> -> {MATRIX}
    %ones = arith.constant dense<1.0> : vector<16xf32>
    %v = vector.shape_cast %ones : vector<16xf32> to {ROW}
    %is = arith.cmpi {compare}, %s, %c0 : index
    """
    if first == "apart":
        body += f"scf.if %is {{ {TAKES} }}\n%not = arith.cmpi eq, %s, %c0 : index\n"
        body += f"scf.if %not {{ {BRINGS} }}"
    else:
        body += f"scf.if %is {{ {then} }} else {{ {other} }}"
    return kernel(body, "64xf32", subgroups=4)


BROUGHT = [0.0] * 16 + [2.0] * 48


@pytest.mark.parametrize("first", ["brings", "takes", "apart"])
def test_who_brings_something_need_not_wait(first: str) -> None:
    out = np.zeros(64, np.float32)
    launch(bringing(first), out)
    np.testing.assert_array_equal(out, BROUGHT)


@pytest.mark.parametrize("first", ["brings", "takes"])
def test_gathered_who_brings_meets_those_who_wait(first: str) -> None:
    made, types = to_lanes(bringing(first), "opencl")
    module = made.parent_op()
    assert isinstance(module, ModuleOp)
    GatherBarriersPass().apply(Context(), module)
    out = np.zeros(64, np.float32)
    run(made, types, out)
    np.testing.assert_array_equal(out, BROUGHT)


def test_who_waits_in_a_branch_before_that_of_others_is_not_emulated() -> None:
    """Gathered, they would read what nobody has brought yet."""
    with pytest.raises(XetlError, match="in different branches: emulation"):
        to_lanes(bringing("apart"), "opencl")


def test_barriers_in_opposite_orders_need_all_to_wait() -> None:
    body = """
    %s = gpu.subgroup_id : index
    %n1 = arith.constant 1 : i8
    %n2 = arith.constant 2 : i8
    %four = arith.constant 4 : i8
    %a = xegpu.init_nbarrier %n1, %four : i8, i8 -> !xegpu.nbarrier
    %b = xegpu.init_nbarrier %n2, %four : i8, i8 -> !xegpu.nbarrier
    %is = arith.cmpi eq, %s, %c0 : index
    scf.if %is {
      xegpu.nbarrier_arrive %a : !xegpu.nbarrier
      xegpu.nbarrier_arrive %b : !xegpu.nbarrier
    } else {
      xegpu.nbarrier_arrive %b : !xegpu.nbarrier
      xegpu.nbarrier_arrive %a : !xegpu.nbarrier
      xegpu.nbarrier_wait %a : !xegpu.nbarrier
      xegpu.nbarrier_wait %b : !xegpu.nbarrier
    }"""
    with pytest.raises(XetlError, match="never wait"):
        to_lanes(kernel(body, subgroups=4))

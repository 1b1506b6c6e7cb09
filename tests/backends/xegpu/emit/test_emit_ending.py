"""Assertions of kernels with barriers on opencl:cpu: one fails, all end together."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.xegpu.emit.on_opencl import Program, i64, kernel, parsed
from xetl.runtime.log import read_records
from xetl_xegpu.emit.module import llvm_text

pytestmark = pytest.mark.optimised  # the driver forms no subgroups of these otherwise

SUBGROUPS, TURNS = 4, 3
LANES = 16 * SUBGROUPS
NOBODY = 9

WHO = f"""
      %sg = simt.subgroup_id
      %me = arith.extui %sg : i32 to i64
      %c16 = arith.constant 16 : i64
      %size = arith.constant 8 : i64
      %zero = arith.constant 0 : i64
      %one = arith.constant 1 : i64
      %turns = arith.constant {TURNS} : i64
      %first = arith.muli %me, %c16 : i64
      %item = arith.addi %first, %wide : i64
      %mine = arith.muli %item, %size : i64
      %to = arith.addi %out, %mine : i64
      %slm = simt.local_base 0
      %write = arith.addi %slm, %mine : i64
      %last = arith.constant {LANES - 1} : i64
      %there = arith.subi %last, %item : i64
      %other = arith.muli %there, %size : i64
      %read = arith.addi %slm, %other : i64
      %is_other = arith.cmpi ne, %me, %bad : i64"""
FAILS = 'simt.assert {}, "{} of {{}}"(%me : i64) {{shapes = [array<i64>]}}'


def in_turns(before: str, between: str, after: str) -> str:
    """Subgroups exchange numbers; in turn 1 the ``bad`` one fails."""
    return f"""{WHO}
      scf.for %k = %zero to %turns step %one : i64 {{
        %early = arith.cmpi ne, %k, %one : i64
        %fine = arith.ori %is_other, %early : i1
        {before}
        %v = arith.addi %item, %k : i64
        simt.store %v, %write, %on {{space = "local"}} : i64
        simt.barrier
        {between}
        %w = simt.load %read, %on, %zero {{space = "local"}} : i64
        simt.store %w, %to, %on : i64
        simt.barrier_arrive
        {after}
        simt.barrier_wait
      }}"""


def run(body: str, bad: int, out: np.ndarray | None = None):
    """What is written, and what the log says."""
    program = Program(kernel("k", "%out: i64, %bad: i64", body, lanes=LANES, slm=512))
    out = np.full(LANES, -1, np.int64) if out is None else out
    program("k", out, i64(bad), lanes=LANES)
    records = read_records(program.status.ctypes.data, program.log)
    return out.reshape(SUBGROUPS, -1), [each.text for each in records]


def exchanged(turn: int) -> np.ndarray:
    return (np.arange(LANES)[::-1] + turn).reshape(SUBGROUPS, 16)


FAIL = FAILS.format("%fine", "end")


@pytest.mark.parametrize("bad", [*range(SUBGROUPS), NOBODY])
def test_before_a_barrier(bad: int):
    """All end at the barrier, so nobody stores what the bad one did not give."""
    found, records = run(in_turns(FAIL, "", ""), bad)
    if bad == NOBODY:
        np.testing.assert_array_equal(found, exchanged(TURNS - 1))
        assert records == []
        return
    np.testing.assert_array_equal(found, exchanged(0))
    assert records == [f"end of {bad}"]


@pytest.mark.parametrize("bad", range(SUBGROUPS))
def test_between_two_barriers(bad: int):
    """Others store until the next one; the bad one does not."""
    found, records = run(in_turns("", FAIL, ""), bad)
    expected = exchanged(1)
    expected[bad] = exchanged(0)[bad]
    np.testing.assert_array_equal(found, expected)
    assert records == [f"end of {bad}"]


@pytest.mark.parametrize("bad", range(SUBGROUPS))
def test_between_the_halves_of_a_barrier(bad: int):
    found, records = run(in_turns("", "", FAIL), bad)
    np.testing.assert_array_equal(found, exchanged(1))
    assert records == [f"end of {bad}"]


def test_all_fail_at_once():
    fail = FAILS.format("%early", "end")
    found, records = run(in_turns(fail, "", ""), NOBODY)
    np.testing.assert_array_equal(found, exchanged(0))
    assert sorted(records) == [f"end of {n}" for n in range(SUBGROUPS)]


@pytest.mark.parametrize("bad", range(SUBGROUPS))
def test_who_has_failed_touches_nothing(bad: int):
    """Addresses that the assertion was to keep away, and words that nobody wants."""
    harmful = f"""
        %no = arith.constant 24 : i64
        %address = arith.select %fine, %to, %no : i64
        %far = arith.constant 1 : i64
        %shared = arith.shli %far, %turn_bits : i64
        %place = arith.select %fine, %write, %shared : i64
        %x = simt.load %address, %on, %zero : i64
        %old = simt.atomic "add" %x, %address, %on : i64
        %y = simt.load %place, %on, %zero {{space = "local"}} : i64
        %again = simt.atomic "mul" %one, %address, %on : i64
        simt.store %y, %place, %on {{space = "local"}} : i64
        simt.print "{{}} lives in {{}}"(%me, %k : i64, i64) {{
            shapes = [array<i64>, array<i64>]}}
        %never = arith.constant false
        %sure = arith.ori %fine, %never : i1
        {FAILS.format("%sure", "second")}"""
    bits = "%turn_bits = arith.constant 40 : i64"
    found, records = run(in_turns(f"{FAIL}\n{bits}\n{harmful}", "", ""), bad)
    # Added to itself in turns 0 and 1, but by the bad one not in turn 1.
    expected = 2 * exchanged(0)
    expected[bad] = exchanged(0)[bad]
    np.testing.assert_array_equal(found, expected)
    alive = [n for n in range(SUBGROUPS) if n != bad]
    wanted = [f"{n} lives in 0" for n in range(SUBGROUPS)]
    wanted += [f"{n} lives in 1" for n in alive]
    assert sorted(records) == sorted([*wanted, f"end of {bad}"])


@pytest.mark.parametrize("bad", range(SUBGROUPS))
@pytest.mark.parametrize("by_lanes", ["", ", by_lanes"])
def test_behind_the_last_barrier(bad: int, by_lanes: str):
    """Others end as they would; blocks of the bad one are not stored."""
    body = f"""{WHO}
      simt.barrier
      {FAILS.format("%is_other", "end")}
      %width = arith.constant 64 : i64
      %height = arith.constant {SUBGROUPS} : i64
      %me32 = arith.trunci %me : i64 to i32
      simt.block_store %me32, %out, %width, %height, %width, %zero, %me {{
          bits = 32, rows = 1, columns = 16{by_lanes}}} : i32"""
    memory = np.zeros(SUBGROUPS * 64 + 64, np.int8)
    start = -memory.ctypes.data % 64
    out = memory[start : start + SUBGROUPS * 64].view(np.int32)
    out[:] = -1
    found, records = run(body, bad, out)
    expected = np.repeat(np.arange(SUBGROUPS)[:, None], 16, axis=1)
    expected[bad] = -1
    np.testing.assert_array_equal(found, expected)
    assert records == [f"end of {bad}"]


def test_stores_of_a_gpu_have_no_payload_where_a_subgroup_may_be_dead():
    store = """simt.block_store %v, %out, %w, %h, %w, %z, %z
        {bits = 32, rows = 8, columns = 16} : vector<8xi32>"""
    body = f"""
      %z = arith.constant 0 : i64
      %w = arith.constant 64 : i64
      %h = arith.constant 8 : i64
      %v = arith.constant dense<1> : vector<8xi32>
      simt.assert %fine, "no" {{shapes = []}}
      simt.barrier
      {store}
      {store}"""
    text = llvm_text(parsed(kernel("k", "%out: i64, %fine: i1", body, lanes=32)), "pvc")
    calls = [line for line in text.splitlines() if "call spir_func void" in line]
    assert sum("intel_sub_group_2d_block_write" in line for line in calls) == 2

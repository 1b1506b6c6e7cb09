# ruff: noqa: E501 - a line of IR is a line
"""Loops, branches, calls, grids and subgroups."""

import numpy as np
import pytest

from tests.run_module import run_module
from xetl.dialects.parser import parse_module
from xetl.errors import InternalError, LaunchError
from xetl_reference.interpreter import TABLE


def run(text, *arrays, grid=(), **options):
    run_module(parse_module(text, "test"), grid, arrays, **options)


def function(body, more=""):
    """A function that gives numbers to %put, one after the other."""
    return f"""
    {more}
    func.func @main(%out: memref<?xindex>, %n: index) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      {body}
      func.return
    }}"""


def results(body, n=5, count=8, more="", **options):
    out = np.full(count, -1, np.int64)
    run(function(body, more), out, n, kernel="main" if more else None, **options)
    return out.tolist()


def test_for_carries_values_at_once():
    body = """
      %a, %b = scf.for %i = %c0 to %n step %c2 iter_args(%x = %c0, %y = %c1) -> (index, index) {
        %z = arith.addi %x, %y : index
        scf.yield %y, %z : index, index
      }
      memref.store %a, %out[%c0] : memref<?xindex>
      memref.store %b, %out[%c1] : memref<?xindex>"""
    assert results(body, n=5)[:2] == [2, 3]
    assert results(body, n=0)[:2] == [0, 1]
    assert results(body, n=-7)[:2] == [0, 1]


def test_for_refuses_a_step_of_zero():
    body = """scf.for %i = %c0 to %n step %c0 { scf.yield }"""
    with pytest.raises(InternalError, match="step of 0"):
        results(body)


def test_if():
    body = """
      %odd = arith.remsi %n, %c2 : index
      %is = arith.cmpi eq, %odd, %c1 : index
      %v = scf.if %is -> (index) { scf.yield %c2 : index } else { scf.yield %n : index }
      memref.store %v, %out[%c0] : memref<?xindex>
      scf.if %is { memref.store %n, %out[%c1] : memref<?xindex> }"""
    assert results(body, n=5)[:2] == [2, 5]
    assert results(body, n=6)[:2] == [6, -1]


def test_while():
    body = """
      %r:2 = scf.while (%x = %n, %steps = %c0) : (index, index) -> (index, index) {
        %go = arith.cmpi sgt, %x, %c1 : index
        scf.condition(%go) %x, %steps : index, index
      } do {
      ^bb0(%x: index, %steps: index):
        %half = arith.divsi %x, %c2 : index
        %more = arith.addi %steps, %c1 : index
        scf.yield %half, %more : index, index
      }
      memref.store %r#0, %out[%c0] : memref<?xindex>
      memref.store %r#1, %out[%c1] : memref<?xindex>"""
    assert results(body, n=40)[:2] == [1, 5]


def test_parallel_and_its_reduction():
    body = """
      %sum = scf.parallel (%i, %j) = (%c0, %c1) to (%n, %n) step (%c2, %c1) init (%c0) -> index {
        %p = arith.muli %i, %j : index
        memref.store %p, %out[%i] : memref<?xindex>
        scf.reduce(%p : index) {
        ^bb0(%a: index, %b: index):
          %s = arith.addi %a, %b : index
          scf.reduce.return %s : index
        }
      }
      memref.store %sum, %out[%c1] : memref<?xindex>"""
    # i in 0 2 4, j in 1 2 3 4
    assert results(body, n=5)[:5] == [0, 60, 8, -1, 16]


def test_calls_also_of_oneself():
    more = """
    func.func @factorial(%n: index) -> index {
      %one = arith.constant 1 : index
      %done = arith.cmpi sle, %n, %one : index
      %r = scf.if %done -> (index) { scf.yield %one : index } else {
        %less = arith.subi %n, %one : index
        %f = func.call @factorial(%less) : (index) -> index
        %p = arith.muli %n, %f : index
        scf.yield %p : index
      }
      func.return %r : index
    }"""
    body = """
      %f = func.call @factorial(%n) : (index) -> index
      memref.store %f, %out[%c0] : memref<?xindex>"""
    assert results(body, n=10, more=more)[0] == 3628800


def test_branches_between_blocks():
    text = """
    func.func @main(%out: memref<?xindex>, %n: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      cf.br ^loop(%n, %c0 : index, index)
    ^loop(%x: index, %sum: index):
      %go = arith.cmpi sgt, %x, %c0 : index
      cf.cond_br %go, ^body, ^end(%sum : index)
    ^body:
      %next = arith.subi %x, %c1 : index
      %more = arith.addi %sum, %x : index
      cf.br ^loop(%next, %more : index, index)
    ^end(%r: index):
      memref.store %r, %out[%c0] : memref<?xindex>
      func.return
    }"""
    out = np.zeros(1, np.int64)
    run(text, out, 10)
    assert out[0] == 55


def test_an_assertion_that_fails():
    body = """
      %is = arith.cmpi eq, %n, %c2 : index
      cf.assert %is, "n is two"
      memref.store %n, %out[%c0] : memref<?xindex>"""
    assert results(body, n=2)[0] == 2
    with pytest.raises(LaunchError, match="assertion failed: n is two"):
        results(body, n=3)


def test_printing(capsys):
    body = """
      %v = arith.constant dense<[-1, 2]> : vector<2xi8>
      %f = arith.constant 0.5 : f64
      %b = arith.constant true
      %small = arith.constant -1 : i8
      xetile.print "n={} {:.2f} {} {} {}"(%n, %f, %b, %v, %v) {unsigned = array<i64: 4>} : index, f64, i1, vector<2xi8>, vector<2xi8>
      xetile.print "{:>5}{{}}"(%small) {unsigned = array<i64: 0>} : i8"""
    results(body, n=7)
    assert capsys.readouterr().out == "n=7 0.50 True [-1  2] [255   2]\n  255{}\n"


def test_an_assertion_with_values():
    body = """
      %is = arith.cmpi eq, %n, %c2 : index
      xetile.assert %is, "n is {}"(%n) : index"""
    results(body, n=2)
    with pytest.raises(LaunchError, match="assertion failed: n is 3") as caught:
        results(body, n=3)
    assert caught.value.line is not None


# Programs ---------------------------------------------------------------------------


def test_grid_runs_x_fastest():
    text = """
    gpu.module @m { gpu.func @k(%out: memref<?x4xindex>, %count: memref<1xindex>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %x = gpu.block_id x
      %y = gpu.block_id y
      %z = gpu.block_id z
      %gx = gpu.grid_dim x
      %gz = gpu.grid_dim z
      %g = arith.muli %gx, %gz : index
      %n = memref.load %count[%c0] : memref<1xindex>
      memref.store %x, %out[%n, %c0] : memref<?x4xindex>
      memref.store %y, %out[%n, %c1] : memref<?x4xindex>
      memref.store %z, %out[%n, %c2] : memref<?x4xindex>
      memref.store %g, %out[%n, %c3] : memref<?x4xindex>
      %m = arith.addi %n, %c1 : index
      memref.store %m, %count[%c0] : memref<1xindex>
      gpu.return
    } }"""
    out, count = np.zeros((24, 4), np.int64), np.zeros(1, np.int64)
    run(text, out, count, grid=(3, 2, 4))
    wanted = [[x, y, z, 12] for z in range(4) for y in range(2) for x in range(3)]
    assert out.tolist() == wanted
    run(text, out, np.zeros(1, np.int64), grid=(3, 0, 4))  # no program at all


SHARED = """
gpu.module @m { gpu.func @k(%out: memref<?xindex>) kernel attributes {ATTRIBUTES} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %slm = memref.alloc() : memref<64xindex, 3>
  %me = gpu.subgroup_id : index
  %all = gpu.num_subgroups : index
  memref.store %me, %slm[%me] : memref<64xindex, 3>
  gpu.barrier
  %next = arith.addi %me, %c1 : index
  %other = arith.remsi %next, %all : index
  %v = memref.load %slm[%other] : memref<64xindex, 3>
  memref.store %v, %out[%me] : memref<?xindex>
  gpu.return
} }"""


def test_subgroups_share_memory_and_meet_at_barriers():
    text = SHARED.replace(
        "ATTRIBUTES", 'xetile.level = "subgroup", xetile.subgroups = array<i64: 2, 3>'
    )
    out = np.full(6, -1, np.int64)
    run(text, out, grid=(2,))
    assert out.tolist() == [1, 2, 3, 4, 5, 0]
    text = SHARED.replace("ATTRIBUTES", "known_block_size = array<i32: 4, 1, 1>")
    out = np.full(8, -1, np.int64)
    run(text, out, grid=(1,))
    assert out.tolist() == [1, 2, 3, 0, -1, -1, -1, -1]
    run(text, out, grid=(1,), subgroups=(2, 2, 2))
    assert out.tolist() == [1, 2, 3, 4, 5, 6, 7, 0]


def test_memory_in_the_head_of_a_function():
    """workgroup(...) is shared by the subgroups of a program, private(...) is not."""
    text = """
    gpu.module @m { gpu.func @k(%out: memref<?x2xindex>) workgroup(%w: memref<8xindex, 3>)
        private(%p: memref<1xindex>) kernel attributes {known_block_size = array<i32: 4, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %me = gpu.subgroup_id : index
      memref.store %me, %w[%me] : memref<8xindex, 3>
      memref.store %me, %p[%c0] : memref<1xindex>
      gpu.barrier
      %next = arith.addi %me, %c1 : index
      %other = arith.remsi %next, %c4 : index
      %v = memref.load %w[%other] : memref<8xindex, 3>
      %u = memref.load %p[%c0] : memref<1xindex>
      memref.store %v, %out[%me, %c0] : memref<?x2xindex>
      memref.store %u, %out[%me, %c1] : memref<?x2xindex>
      gpu.return
    } }"""
    out = np.zeros((4, 2), np.int64)
    run(text, out, grid=(2,))
    assert out.tolist() == [[1, 0], [2, 1], [3, 2], [0, 3]]


def test_a_function_with_block_ids_is_a_kernel():
    text = """func.func @k(%out: memref<?xindex>) {
      %x = gpu.block_id x
      memref.store %x, %out[%x] : memref<?xindex>
      return }"""
    out = np.full(4, -1, np.int64)
    run(text, out, grid=(3,))
    assert out.tolist() == [0, 1, 2, -1]


def test_a_kernel_at_workgroup_level_runs_once():
    text = SHARED.replace(
        "ATTRIBUTES",
        'xetile.level = "workgroup", known_block_size = array<i32: 4, 1, 1>',
    )
    out = np.full(4, -1, np.int64)
    run(text, out, grid=(1,))
    assert out.tolist() == [0, -1, -1, -1]


def test_thread_ids_count_subgroups():
    text = """
    gpu.module @m { gpu.func @k(%out: memref<?x3xindex>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %x = gpu.thread_id x
      %y = gpu.thread_id y
      %w = gpu.block_dim x
      %g = gpu.global_id x
      %row = arith.muli %y, %w : index
      %me = arith.addi %row, %x : index
      %id = gpu.subgroup_id : index
      memref.store %id, %out[%me, %c0] : memref<?x3xindex>
      memref.store %g, %out[%me, %c1] : memref<?x3xindex>
      memref.store %w, %out[%me, %c2] : memref<?x3xindex>
      gpu.return
    } }"""
    out = np.zeros((6, 3), np.int64)
    run(text, out, grid=(2,), subgroups=(3, 2, 1))
    assert out[:, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert out[:, 1].tolist() == [3, 4, 5, 3, 4, 5]
    assert (out[:, 2] == 3).all()


def test_an_error_in_one_subgroup_ends_all():
    text = SHARED.replace("ATTRIBUTES", "known_block_size = array<i32: 4, 1, 1>")
    with pytest.raises(InternalError, match="leaves its memory"):
        run(text, np.zeros(2, np.int64), grid=(1,))


# Other operations -------------------------------------------------------------------


def test_an_unknown_operation_is_named():
    text = function("gpu.barrier").replace("gpu.barrier", "xegpu.compile_hint")
    known = dict(TABLE.meanings)
    TABLE.meanings.pop("xegpu.compile_hint")
    try:
        with pytest.raises(InternalError, match=r"xegpu\.compile_hint"):
            run(text, np.zeros(1, np.int64), 1)
        seen = []
        TABLE.meanings["xegpu.compile_hint"] = lambda op: lambda: seen.append(op.name)
        run(text, np.zeros(1, np.int64), 1)
        assert seen == ["xegpu.compile_hint"]
        extra = {"xegpu.compile_hint": lambda op: lambda: seen.append("extra")}
        run(text, np.zeros(1, np.int64), 1, extra_ops=extra)
        assert seen[1:] == ["extra"]
    finally:
        TABLE.meanings.clear()
        TABLE.meanings.update(known)

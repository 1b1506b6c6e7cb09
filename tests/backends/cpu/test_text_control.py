"""Control flow and subgroups of texts: equal to reference and to NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from texts import run_both

import xetl
from xetl.errors import LaunchError


def some(*shape, dtype="f4"):
    return np.random.default_rng(0).integers(-9, 10, shape).astype(dtype)


def test_a_parallel_loop_adds_up():
    text = """
    func.func @k(%a: memref<8x9xf32>, %b: memref<8x9xf32>, %o: memref<1xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c9 = arith.constant 9 : index
      %z = arith.constant 1.0 : f32
      %r = scf.parallel (%i, %j) = (%c0, %c0) to (%c8, %c9) step (%c1, %c1) init (%z)
          -> f32 {
        %x = memref.load %a[%i, %j] : memref<8x9xf32>
        %y = arith.addf %x, %x : f32
        memref.store %y, %b[%i, %j] : memref<8x9xf32>
        scf.reduce(%y : f32) {
          ^bb0(%l: f32, %m: f32):
            %s = arith.addf %l, %m : f32
            scf.reduce.return %s : f32
        }
      }
      memref.store %r, %o[%c0] : memref<1xf32>
      return
    }"""
    a = some(8, 9)
    _, b, total = run_both(text, a, np.zeros_like(a), np.zeros(1, "f4"))
    assert np.array_equal(b, 2 * a)
    assert total[0] == 2 * a.sum() + 1


@pytest.mark.parametrize("number", [0, 2, 5, 9])
def test_a_switch_and_a_region(number):
    text = """
    func.func @k(%a: memref<4x8xf32>, %i: index) {
      %c0 = arith.constant 0 : index
      %v = vector.load %a[%c0, %c0] : memref<4x8xf32>, vector<4x8xf32>
      %r = scf.index_switch %i -> vector<4x8xf32>
      case 2 {
        %x = arith.addf %v, %v : vector<4x8xf32>
        scf.yield %x : vector<4x8xf32>
      }
      case 5 {
        %x = arith.negf %v : vector<4x8xf32>
        scf.yield %x : vector<4x8xf32>
      }
      default {
        scf.yield %v : vector<4x8xf32>
      }
      %s = scf.execute_region -> vector<4x8xf32> {
        %x = arith.addf %r, %v : vector<4x8xf32>
        scf.yield %x : vector<4x8xf32>
      }
      vector.store %s, %a[%c0, %c0] : memref<4x8xf32>, vector<4x8xf32>
      return
    }"""
    a = some(4, 8)
    factor = {2: 2, 5: -1}.get(number, 1) + 1
    assert np.array_equal(run_both(text, a, number)[0], factor * a)


def test_vectors_of_three_dimensions_in_loops_and_branches():
    text = """
    func.func @k(%a: memref<2x3x8xf32>, %n: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %v = vector.load %a[%c0, %c0, %c0] : memref<2x3x8xf32>, vector<2x3x8xf32>
      %r = scf.for %k = %c0 to %n step %c1 iter_args(%x = %v) -> (vector<2x3x8xf32>) {
        %first = arith.cmpi eq, %k, %c0 : index
        %y = scf.if %first -> (vector<2x3x8xf32>) {
          %e = arith.addf %x, %x : vector<2x3x8xf32>
          scf.yield %e : vector<2x3x8xf32>
        } else {
          %q = vector.extract %x[1] : vector<3x8xf32> from vector<2x3x8xf32>
          %e = vector.insert %q, %x[0] : vector<3x8xf32> into vector<2x3x8xf32>
          scf.yield %e : vector<2x3x8xf32>
        }
        scf.yield %y : vector<2x3x8xf32>
      }
      vector.store %r, %a[%c0, %c0, %c0] : memref<2x3x8xf32>, vector<2x3x8xf32>
      return
    }"""
    a = some(2, 3, 8)
    expected = 2 * a
    expected[0] = expected[1]
    assert np.array_equal(run_both(text, a, 3)[0], expected)


def test_calls():
    text = """
    func.func private @twice(%x: vector<4x8xf32>) -> vector<4x8xf32> {
      %r = arith.addf %x, %x : vector<4x8xf32>
      return %r : vector<4x8xf32>
    }
    func.func @k(%a: memref<4x8xf32>) {
      %c0 = arith.constant 0 : index
      %v = vector.load %a[%c0, %c0] : memref<4x8xf32>, vector<4x8xf32>
      %w = func.call @twice(%v) : (vector<4x8xf32>) -> vector<4x8xf32>
      %u = func.call @twice(%w) : (vector<4x8xf32>) -> vector<4x8xf32>
      vector.store %u, %a[%c0, %c0] : memref<4x8xf32>, vector<4x8xf32>
      return
    }"""
    a = some(4, 8)
    assert np.array_equal(run_both(text, a)[0], 4 * a)


def team(body, barriers=2):
    """A kernel of 2 x 2 x 2 subgroups that pass a number on through shared memory."""
    return f"""
    gpu.module @m {{
      gpu.func @k(%o: memref<8xindex>) kernel
          attributes {{xetile.level = "subgroup"}} {{
        %slm = memref.alloc() : memref<8xindex, 3>
        %id = arith.constant 1 : i8
        %count = arith.constant 8 : i8
        xegpu.alloc_nbarrier {barriers}
        %nb = xegpu.init_nbarrier %id, %count : i8, i8 -> !xegpu.nbarrier
        %x = gpu.thread_id x
        %y = gpu.thread_id y
        %z = gpu.thread_id z
        %sg = gpu.subgroup_id : index
        %dx = gpu.block_dim x
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %c7 = arith.constant 7 : index
        %c8 = arith.constant 8 : index
        {body}
        gpu.return
      }}
    }}"""


NEIGHBOUR = """
        %m = arith.addi %sg, %c1 : index
        %n = arith.andi %m, %c7 : index
        %v = memref.load %slm[%n] : memref<8xindex, 3>
        memref.store %v, %o[%sg] : memref<8xindex>"""
NUMBER = """
        %zy = arith.muli %z, %c2 : index
        %a = arith.addi %zy, %y : index
        %ay = arith.muli %a, %dx : index
        %number = arith.addi %ay, %x : index
        memref.store %number, %slm[%sg] : memref<8xindex, 3>"""


@pytest.mark.parametrize(
    "meet",
    [
        "gpu.barrier",
        "xegpu.nbarrier_arrive %nb : !xegpu.nbarrier\n"
        "xegpu.nbarrier_wait %nb : !xegpu.nbarrier",
        "xegpu.nbarrier_arrive %nb : !xegpu.nbarrier\ngpu.barrier\n"
        "xegpu.nbarrier_wait %nb : !xegpu.nbarrier\ngpu.barrier",
    ],
)
def test_subgroups_meet(meet):
    """Ids count x fastest; a barrier of either kind lets nobody read too early."""
    text = team(f"{NUMBER}\n{meet}\n{NEIGHBOUR}")
    (found,) = run_both(text, np.zeros(8, "i8"), subgroups=(2, 2, 2))
    assert found.tolist() == [1, 2, 3, 4, 5, 6, 7, 0]


def test_some_subgroups_wait_for_others_that_do_not():
    """Four subgroups wait until all eight have arrived, three times."""
    body = f"""{NUMBER}
        %waits = arith.cmpi ult, %sg, %c2 : index
        scf.for %i = %c0 to %c2 step %c1 {{
          xegpu.nbarrier_arrive %nb : !xegpu.nbarrier
          scf.if %waits {{
            xegpu.nbarrier_wait %nb : !xegpu.nbarrier
          }}
        }}
        scf.if %waits {{
          %other = arith.subi %c7, %sg : index
          %v = memref.load %slm[%other] : memref<8xindex, 3>
          memref.store %v, %o[%sg] : memref<8xindex>
        }}"""
    (found,) = run_both(team(body), np.zeros(8, "i8"), subgroups=(2, 2, 2))
    assert found.tolist() == [7, 6, 0, 0, 0, 0, 0, 0]


def test_subgroups_that_wait_for_nobody_are_found_out():
    kernel = xetl.load_mlir(team("xegpu.nbarrier_wait %nb : !xegpu.nbarrier"))["k"]
    with pytest.raises(LaunchError, match="wait for one another"):
        kernel[1, (8, 1, 1)](np.zeros(8, "i8"), backend="cpu")

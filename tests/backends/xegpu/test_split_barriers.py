"""Split barriers mean what whole ones mean, whoever is early and whoever is late."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from lane_interpreter import EARLY, LATE, launch, run, to_lanes
from test_lanes_values import kernel
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from xetl_xegpu import simt
from xetl_xegpu.lowering.split_barriers import ENOUGH, SplitBarriersPass

SUBGROUPS, STEPS = 4, 3
BF16 = ml_dtypes.bfloat16
Array = np.ndarray[Any, np.dtype[Any]]


def exchange(products: int, *, prefetches: bool = False) -> str:
    """Each subgroup multiplies what its neighbour put into shared memory, in turns."""
    chain = "\n".join(
        f"%p{i + 1} = xegpu.dpas %a, %b, %p{i} : vector<8x16xbf16>, "
        "vector<16x16xbf16>, vector<8x16xf32> -> vector<8x16xf32>"
        for i in range(products)
    )
    prefetch = "xegpu.prefetch_nd %i[%row, %c0] : !xegpu.tensor_desc<8x16xbf16>"
    body = f"""
    %s = gpu.subgroup_id : index
    %c4 = arith.constant {SUBGROUPS} : index
    %c8 = arith.constant 8 : index
    %steps = arith.constant {STEPS} : index
    %row = arith.muli %s, %c8 : index
    %next = arith.addi %s, %c1 : index
    %beside = arith.remui %next, %c4 : index
    %other = arith.muli %beside, %c8 : index
    %i = xegpu.create_nd_tdesc %a0 : memref<32x16xbf16> -> !xegpu.tensor_desc<8x16xbf16>
    %j = xegpu.create_nd_tdesc %a1
        : memref<16x16xbf16> -> !xegpu.tensor_desc<16x16xbf16>
    %o = xegpu.create_nd_tdesc %a2 : memref<32x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    %slm = memref.alloc() : memref<1024xi8, 3>
    %m = xegpu.create_mem_desc %slm : memref<1024xi8, 3> -> !xegpu.mem_desc<32x16xbf16>
    %first = xegpu.load_nd %i[%row, %c0]
        : !xegpu.tensor_desc<8x16xbf16> -> vector<8x16xbf16>
    %b = xegpu.load_nd %j[%c0, %c0]
        : !xegpu.tensor_desc<16x16xbf16> -> vector<16x16xbf16>
    %zero = arith.constant dense<0.0> : vector<8x16xf32>
    %sum:2 = scf.for %k = %c0 to %steps step %c1 iter_args(%mine = %first, %p0 = %zero)
        -> (vector<8x16xbf16>, vector<8x16xf32>) {{
      xegpu.store_matrix %mine, %m[%row, 0]
          : vector<8x16xbf16>, !xegpu.mem_desc<32x16xbf16>, index
      gpu.barrier
      %a = xegpu.load_matrix %m[%other, 0]
          : !xegpu.mem_desc<32x16xbf16>, index -> vector<8x16xbf16>
      {chain}
      gpu.barrier
      {prefetch if prefetches else ""}
      scf.yield %a, %p{products} : vector<8x16xbf16>, vector<8x16xf32>
    }}
    xegpu.store_nd %sum#1, %o[%row, %c0]
        : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    """
    return kernel(body, "32x16xbf16", "16x16xbf16", "32x16xf32", subgroups=SUBGROUPS)


def arrays() -> tuple[Array, Array, Array]:
    """Small integers: sums are exact."""
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-3, 4, shape).astype(BF16) for shape in ((32, 16), (16, 16)))
    return a, b, np.zeros((32, 16), np.float32)


def expected(a: Array, b: Array, products: int) -> Array:
    parts = a.astype(np.float64).reshape(SUBGROUPS, 8, 16)
    turns = [np.roll(parts, -turn, axis=0) for turn in range(1, STEPS + 1)]
    whole = np.sum(turns, axis=0).reshape(32, 16)
    return products * whole @ b.astype(np.float64)


def split(text: str) -> tuple[simt.FuncOp, list[Any]]:
    made, types = to_lanes(text)
    module = made.parent_op()
    assert isinstance(module, ModuleOp)
    SplitBarriersPass().apply(Context(), module)
    module.verify()
    return made, types


def kinds(made: simt.FuncOp) -> list[type]:
    found = (simt.BarrierOp, simt.BarrierArriveOp, simt.BarrierWaitOp)
    return [type(op) for op in made.walk() if isinstance(op, found)]


HALVES = [simt.BarrierArriveOp, simt.BarrierWaitOp]


@pytest.mark.parametrize("half", [EARLY, LATE])
@pytest.mark.parametrize("prefetches", [False, True])
def test_products_beside_a_barrier(half: type, prefetches: bool):
    text = exchange(ENOUGH, prefetches=prefetches)
    made, types = split(text)
    assert kinds(made) == [simt.BarrierOp, *HALVES]
    a, b, c = arrays()
    run(made, types, a, b, c, half=half)
    np.testing.assert_array_equal(c, expected(a, b, ENOUGH))


@pytest.mark.parametrize("half", [EARLY, LATE])
def test_too_few_products_stay_in_front_of_a_whole_barrier(half: type):
    made, types = split(exchange(ENOUGH - 1))
    assert kinds(made) == [simt.BarrierOp] * 2
    a, b, c = arrays()
    run(made, types, a, b, c, half=half)
    np.testing.assert_array_equal(c, expected(a, b, ENOUGH - 1))


def test_whole_barriers_give_the_same():
    a, b, c = arrays()
    launch(exchange(ENOUGH), a, b, c)
    np.testing.assert_array_equal(c, expected(a, b, ENOUGH))


def test_a_load_between_the_halves_would_show():
    """Somebody late reads what the others have written again: the order tells."""
    made, types = split(exchange(ENOUGH))
    (arrive,) = [op for op in made.walk() if isinstance(op, simt.BarrierArriveOp)]
    block = arrive.parent_block()
    assert block is not None
    first_load = next(op for op in block.ops if isinstance(op, simt.LoadOp))
    arrive.detach()
    Rewriter.insert_op(arrive, InsertPoint.before(first_load))
    a, b, c = arrays()
    run(made, types, a, b, c, half=LATE)
    assert not np.array_equal(c, expected(a, b, ENOUGH))


def test_a_load_that_waits_for_nobody_would_show():
    """Somebody early reads what nobody has written yet."""
    made, types = split(exchange(ENOUGH))
    whole = next(op for op in made.walk() if isinstance(op, simt.BarrierOp))
    after = next(op for op in made.walk() if isinstance(op, simt.DpasOp))
    Rewriter.insert_op(simt.BarrierArriveOp(), InsertPoint.before(whole))
    Rewriter.insert_op(simt.BarrierWaitOp(), InsertPoint.before(after))
    whole.detach()
    whole.erase()
    a, b, c = arrays()
    run(made, types, a, b, c, half=EARLY)
    assert not np.array_equal(c, expected(a, b, ENOUGH))

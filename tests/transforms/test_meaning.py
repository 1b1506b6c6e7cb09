"""The harness itself: it sees a wrong pass, a race and memory without values."""

import numpy as np
import pytest
from meaning import same_meaning
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from xetl.dialects.upstream import arith, gpu
from xetl.errors import CheckError
from xetl.transforms.canonicalize import CanonicalizePass

TYPES = "vector<4x8xf32>, !xetile.tile<4x8xf32>"
DOUBLE = f"""
gpu.module @m {{ gpu.func @double(%x: memref<8x16xf32>, %y: memref<8x16xf32>) kernel {{
  %bx = gpu.block_id x
  %by = gpu.block_id y
  %four = arith.constant 4 : index
  %eight = arith.constant 8 : index
  %m = arith.muli %by, %four : index
  %n = arith.muli %bx, %eight : index
  %s = xetile.init_tile %x[%m, %n] : memref<8x16xf32> -> !xetile.tile<4x8xf32>
  %d = xetile.init_tile %y[%m, %n] : memref<8x16xf32> -> !xetile.tile<4x8xf32>
  %v = xetile.load_tile %s : !xetile.tile<4x8xf32> -> vector<4x8xf32>
  %w = arith.addf %v, %v : vector<4x8xf32>
  xetile.store_tile %w, %d : {TYPES}
  gpu.return
}} }}"""

THROUGH_SHARED = """
gpu.module @m { gpu.func @k(%x: memref<4x8xf32>) kernel
    attributes {xetile.level = "subgroup", xetile.subgroups = array<i64: 2, 1>} {
  %sg = gpu.subgroup_id : index
  %two = arith.constant 2 : index
  %one = arith.constant 1 : index
  %mine = arith.muli %sg, %two : index
  %other = arith.subi %two, %mine : index
  %slm = memref.alloc() : memref<4x8xf32, 3>
  %sx = xetile.init_tile %x[%mine, 0] : memref<4x8xf32> -> !xetile.tile<2x8xf32>
  %v = xetile.load_tile %sx : !xetile.tile<2x8xf32> -> vector<2x8xf32>
  %sm = xetile.init_tile %slm[%mine, 0] : memref<4x8xf32, 3>
      -> !xetile.tile<2x8xf32, #xetile.tile_attr<memory_space = 3>>
  xetile.store_tile %v, %sm : vector<2x8xf32>,
      !xetile.tile<2x8xf32, #xetile.tile_attr<memory_space = 3>>
  gpu.barrier
  %so = xetile.init_tile %slm[%other, 0] : memref<4x8xf32, 3>
      -> !xetile.tile<2x8xf32, #xetile.tile_attr<memory_space = 3>>
  %w = xetile.load_tile %so : !xetile.tile<2x8xf32,
      #xetile.tile_attr<memory_space = 3>> -> vector<2x8xf32>
  xetile.store_tile %w, %sx : vector<2x8xf32>, !xetile.tile<2x8xf32>
  gpu.return
} }"""


class AddBecomesSubPass(ModulePass):
    """Wrong on purpose."""

    name = "add-becomes-sub"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for add in [each for each in op.walk() if isinstance(each, arith.AddfOp)]:
            sub = arith.SubfOp(add.lhs, add.rhs)
            add.parent.insert_op_before(sub, add)
            add.result.replace_all_uses_with(sub.result)
            add.detach()
            add.erase()


class DropBarriersPass(ModulePass):
    """Wrong on purpose."""

    name = "drop-barriers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for barrier in [o for o in op.walk() if isinstance(o, gpu.BarrierOp)]:
            barrier.detach()
            barrier.erase()


def matrices():
    x = np.arange(128, dtype=np.float32).reshape(8, 16)
    return x, np.zeros_like(x)


def test_a_right_pass():
    x, y = matrices()
    left = same_meaning(DOUBLE, (2, 2), [x, y], [CanonicalizePass()])
    np.testing.assert_array_equal(left[1], 2 * x)
    assert not y.any()


def test_a_wrong_pass():
    passes = [CanonicalizePass(), AddBecomesSubPass()]
    with pytest.raises(AssertionError, match="argument 1") as caught:
        same_meaning(DOUBLE, (2, 2), matrices(), passes)
    assert caught.value.__notes__ == ["after add-becomes-sub"]


def test_the_truth_is_given():
    x, y = matrices()
    same_meaning(DOUBLE, (2, 2), [x, y], [], truth=[None, 2.0 * x], tolerance=1e-6)
    with pytest.raises(AssertionError):
        same_meaning(DOUBLE, (2, 2), [x, y], [], truth=[None, 2.1 * x], tolerance=1e-6)


def test_an_array_given_twice_is_one():
    x, _ = matrices()
    with pytest.raises(CheckError, match="is written by program") as caught:
        same_meaning(DOUBLE.replace("%d = xetile.init_tile %y[%m, %n]",
                                    "%d = xetile.init_tile %y[%m, 0]"),
                     (2, 2), [x, x], [])  # fmt: skip
    assert caught.value.code == "X0823"


def test_all_subgroups_run():
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    (left,) = same_meaning(THROUGH_SHARED, (1,), [x], [CanonicalizePass()])
    np.testing.assert_array_equal(left, x[[2, 3, 0, 1]])


def test_a_race_of_subgroups():
    x = np.zeros((4, 8), np.float32)
    with pytest.raises(CheckError) as caught:
        same_meaning(THROUGH_SHARED, (1,), [x], [DropBarriersPass()])
    assert caught.value.code in ("X0822", "X0823")
    assert caught.value.__notes__ == ["after drop-barriers"]

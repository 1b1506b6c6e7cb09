"""An operation that no pass names is mapped and distributed by its trait alone."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.rewriter import Rewriter
from xdsl.traits import Pure

from xetl.dialects.parser import parse_module
from xetl.dialects.traits import Elementwise, Reduces, Scans, element_trait
from xetl.dialects.upstream import math
from xetl.transforms.distribute_to_subgroups import DistributeToSubgroupsPass
from xetl.transforms.propagate_wg_maps import PropagateWgMapsPass
from xetl.transforms.stages import check_stage


class _OneOperand(IRDLOperation):
    source = operand_def(VectorType)
    result = result_def(VectorType)


@irdl_op_definition
class HalveOp(_OneOperand):
    """A stranger that works on each element."""

    name = "xetile.stranger_halve"
    traits = traits_def(Pure(), Elementwise())


@irdl_op_definition
class RunOp(_OneOperand):
    """A stranger that runs along columns."""

    name = "xetile.stranger_run"
    traits = traits_def(Pure(), Scans())

    @property
    def dim(self) -> int:
        """The dimension along which it runs."""
        return 1


@irdl_op_definition
class SumOp(_OneOperand):
    """A stranger that reduces."""

    name = "xetile.stranger_sum"
    traits = traits_def(Pure(), Reduces())


TEXT = """
#rows = #xetile.wg_map<sg_layout = [4, 1], sg_data = [8, 64]>
func.func @kernel(%a: memref<64x64xf32>) {
  %t = xetile.init_tile %a[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32, #rows>
  %v = xetile.load_tile %t : !xetile.tile<64x64xf32, #rows> -> vector<64x64xf32>
  %e = math.exp %v : vector<64x64xf32>
  xetile.store_tile %e, %t : vector<64x64xf32>, !xetile.tile<64x64xf32, #rows>
  func.return
}
"""


@pytest.mark.parametrize("stranger", [HalveOp, RunOp])
def test_a_stranger_is_split_as_its_trait_says(stranger: type[Operation]) -> None:
    module = parse_module(TEXT)
    (known,) = (op for op in module.walk() if isinstance(op, math.ExpOp))
    new = stranger.create(
        operands=known.operands, result_types=[known.result.type], attributes={}
    )
    Rewriter.replace_op(known, new)
    PropagateWgMapsPass().apply(Context(), module)
    check_stage(module, "xetile-mapped")
    DistributeToSubgroupsPass().apply(Context(), module)
    parts = [op for op in module.walk() if isinstance(op, stranger)]
    assert [str(op.results[0].type) for op in parts] == ["vector<8x64xf32>"] * 2


def test_an_operation_has_one_trait() -> None:
    assert element_trait(HalveOp) is Elementwise
    assert element_trait(RunOp) is Scans
    assert element_trait(SumOp) is Reduces

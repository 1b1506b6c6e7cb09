"""What a subgroup computes of itself is what the rule of distribution says."""

import numpy as np
import pytest
from layouts import is_first_owner
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    i1,
    i64,
)
from xdsl.ir import Block, Region

from tests.run_module import run_module
from xetl.dialects.kernel_attributes import LEVEL, SUBGROUP, SUBGROUPS
from xetl.dialects.upstream import arith, gpu, memref
from xetl.language.distribution import Layout, origins, rounds
from xetl.transforms.distribute_to_subgroups.context import Subgroups

SLM = IntegerAttr(3, i64)
SHAPE = 32, 16
LAYOUTS = [
    Layout((2, 4), (16, 4)),
    Layout((2, 4), (4, 2)),
    Layout((2, 4), (32, 2)),
    Layout((2, 4), (32, 16)),
    Layout((8, 1), (2, 4)),
    Layout((4, 2), (32, 4), order=(0, 1)),
    Layout((2, 4), (4, 8), order=(0, 1)),
    Layout((1, 1), (8, 8)),
]


def answers(layout: Layout) -> np.ndarray:
    """For each subgroup: is it a first owner, then rows and columns of its parts."""
    parts = int(np.prod(rounds(SHAPE, layout)))
    type_ = MemRefType(IndexType(), [layout.subgroups, 1 + 2 * parts])
    block = Block([gpu.ReturnOp()], arg_types=[type_])
    team = Subgroups(block, layout.subgroups, slm_limit=1024)
    team.move_before(block.last_op)
    first = team.first_owner(SHAPE, layout)
    if first is None:
        first = team.add(arith.ConstantOp(IntegerAttr(1, i1))).result
    found = [team.add(arith.IndexCastuiOp(first, IndexType())).result]
    for part in range(parts):
        found += map(team.index, team.origin(SHAPE, layout, part))
    for column, value in enumerate(found):
        at = [team.identity, team.head_constant(column)]
        team.add(memref.StoreOp(value, block.args[0], at))
    kernel = gpu.FuncOp("k", Region(block))
    kernel.attributes[LEVEL] = StringAttr(SUBGROUP)
    kernel.attributes[SUBGROUPS] = DenseArrayBase.from_list(i64, layout.sg_layout)
    module = ModuleOp([gpu.ModuleOp("m", Region(Block([kernel])))])
    module.verify()
    array = np.full(type_.get_shape(), -1)
    run_module(module, (1,), [array])
    return array


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_subgroup_knows_its_parts(layout):
    for sg, (first, *flat) in enumerate(answers(layout).tolist()):
        assert first == is_first_owner(SHAPE, layout, sg)
        pairs = list(zip(flat[::2], flat[1::2]))
        assert pairs == origins(SHAPE, layout, sg)


def test_all_share_the_largest_scratch():
    """Who has asked for less sees the larger one."""
    block = Block([gpu.ReturnOp()])
    team = Subgroups(block, 4, slm_limit=1024)
    team.move_before(block.last_op)
    small = team.scratch(100)
    view = team.add(
        memref.ViewOp(
            small, team.head_constant(0), [], MemRefType(i64, [4], memory_space=SLM)
        )
    )
    large = team.scratch(200)
    assert team.scratch(150) is large
    assert view.source is large
    allocations = [op for op in block.ops if isinstance(op, memref.AllocOp)]
    assert [op.result.type.get_shape() for op in allocations] == [(200,)]

"""Where in the grid a program of one subgroup is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from xetl.dialects.upstream import arith, gpu, xegpu
from xetl_cpu.lowering.text_forms.writing import replace

_SUBGROUP_SIZE = 16


def _global_id(op: gpu.GlobalIdOp) -> None:
    """``block_id * block_dim + thread_id``."""
    parts = [
        cls.create(result_types=[IndexType()], properties=dict(op.properties))
        for cls in (gpu.BlockIdOp, gpu.BlockDimOp, gpu.ThreadIdOp)
    ]
    block, size, thread = (part.results[0] for part in parts)
    before = arith.MuliOp(block, size)
    replace(op, [*parts, before, arith.AddiOp(before.result, thread)])


def number(value: int) -> Callable[[Operation], None]:
    """A rule: the operation gives ``value``."""
    return lambda op: replace(op, [arith.ConstantOp.index(value)])


def _unused(op: Operation) -> None:
    """Erase it once nobody is left who waits at it."""
    if op.results[0].first_use is None:
        Rewriter.erase_op(op)


RULES: dict[type[Operation], Callable[[Any], None]] = {
    gpu.GlobalIdOp: _global_id,
    gpu.SubgroupSizeOp: number(_SUBGROUP_SIZE),
    gpu.LaneIdOp: number(0),
    xegpu.InitNbarrierOp: _unused,
}
ALONE: dict[type[Operation], Callable[[Any], None]] = {
    gpu.ThreadIdOp: number(0),
    gpu.SubgroupIdOp: number(0),
    gpu.BlockDimOp: number(1),
    gpu.NumSubgroupsOp: number(1),
    xegpu.NbarrierArriveOp: Rewriter.erase_op,
    xegpu.NbarrierWaitOp: Rewriter.erase_op,
}
"""At workgroup level a program is one thread of control."""

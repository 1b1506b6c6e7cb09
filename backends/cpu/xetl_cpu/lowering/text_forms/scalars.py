"""`index` as `arith`, and where in the grid a program of one subgroup is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import IndexType, i1
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from xetl.dialects.upstream import arith, gpu, index
from xetl.dialects.upstream import xegpu_hints as xegpu
from xetl_cpu.lowering.text_forms.replacing import replace

_BINARY: dict[type[Operation], Any] = {
    index.AddOp: arith.AddiOp,
    index.SubOp: arith.SubiOp,
    index.MulOp: arith.MuliOp,
    index.DivsOp: arith.DivsiOp,
    index.DivuOp: arith.DivuiOp,
    index.CeildivsOp: arith.CeildivsiOp,
    index.FloordivsOp: arith.FloordivsiOp,
    index.RemsOp: arith.RemsiOp,
    index.RemuOp: arith.RemuiOp,
    index.MaxsOp: arith.MaxsiOp,
    index.MaxuOp: arith.MaxuiOp,
    index.MinsOp: arith.MinsiOp,
    index.MinuOp: arith.MinuiOp,
    index.ShlOp: arith.ShliOp,
    index.ShrsOp: arith.ShrsiOp,
    index.ShruOp: arith.ShruiOp,
    index.AndOp: arith.AndiOp,
    index.OrOp: arith.OriOp,
    index.XorOp: arith.XoriOp,
}
_SUBGROUP_SIZE = 16


def _binary(op: Operation) -> None:
    replace(op, [_BINARY[type(op)](op.operands[0], op.operands[1])])


def _constant(op: index.ConstantOp) -> None:
    replace(op, [arith.ConstantOp.index(op.value.value.data)])


def _bool(op: index.BoolConstantOp) -> None:
    replace(op, [arith.ConstantOp.integer(op.value.value.data, i1)])


def _casts(op: index.CastsOp) -> None:
    replace(op, [arith.IndexCastOp(op.operands[0], op.results[0].type)])


def _castu(op: index.CastuOp) -> None:
    replace(op, [arith.IndexCastuiOp(op.operands[0], op.results[0].type)])


def _compare(op: index.CmpOp) -> None:
    replace(op, [arith.CmpiOp(op.predicate_name, op.lhs, op.rhs)])


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
    **dict.fromkeys(_BINARY, _binary),
    index.ConstantOp: _constant,
    index.BoolConstantOp: _bool,
    index.CastsOp: _casts,
    index.CastuOp: _castu,
    index.CmpOp: _compare,
    index.SizeofOp: number(64),
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

"""Where in the grid a program of one subgroup is; shifts.

Shifts do what `reference` does where MLIR says nothing: too large a shift shifts
everything out.  Amounts that are constants need no care.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects.kinds_of_types import integer_width, is_integer_attr, is_vector
from xetl.dialects.literals import splat_value
from xetl.dialects.upstream import arith, gpu, xegpu
from xetl.ir.builder import Builder
from xetl_cpu.lowering.expand_text_forms.scratch import replace, replace_by

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


# Shifts -------------------------------------------------------------------------------


_SHIFTS = (arith.ShliOp, arith.ShrsiOp, arith.ShruiOp)


def make_total(block: Block) -> None:
    """Give every shift of a kernel a result; to be done last."""
    for op in list(block.walk()):
        if isinstance(op, _SHIFTS):
            known = _known(op.rhs)
            if known is None or not 0 <= known < _bits(op.rhs.type):
                _shift(op)


def _known(value: SSAValue) -> int | None:
    """The integer that a value, or each of its elements, is known to be."""
    op = value.owner
    if not isinstance(op, arith.ConstantOp):
        return None
    if is_integer_attr(op.value):
        return op.value.value.data
    number = splat_value(op.value)
    return None if number is None else int(number)


def _bits(type_: Attribute) -> int:
    element = type_.element_type if is_vector(type_) else type_
    return integer_width(element) or 64


def _shift(op: Any) -> None:
    w, type_ = Builder.before(op), op.result.type
    most = w.constant(_bits(type_) - 1, type_)
    amount = w.insert(arith.MinuiOp(op.rhs, most))
    result = w.insert(type(op)(op.lhs, amount))
    if not isinstance(op, arith.ShrsiOp):
        too_far = w.insert(arith.CmpiOp("ugt", op.rhs, most))
        result = w.insert(arith.SelectOp(too_far, w.constant(0, type_), result))
    replace_by(op, result)

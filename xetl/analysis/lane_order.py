"""Vectors whose lanes may be kept in another order than that of their elements.

A vector of bf16 that fills a register becomes two of f32. Elements at even places and
those at odd ones take a shift and a mask; the first and the second half take shuffles
as well, and so does the way back. Where values are computed element by element, and
then become bf16 again or are reduced, nobody sees which lane an element had.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from xdsl.dialects.builtin import BFloat16Type
from xdsl.ir import Operation, SSAValue

from xetl.analysis.control_flow import carried_together
from xetl.dialects.base import is_vector
from xetl.dialects.literals import splat_value
from xetl.dialects.traits import is_elementwise
from xetl.dialects.upstream import arith, scf, vector

_CARRIES = (scf.ForOp, scf.IfOp, scf.WhileOp)
_CONVERTS = (arith.ExtfOp, arith.TruncfOp)


def of_any_order(function: Operation, lanes: int) -> frozenset[SSAValue]:
    """Vectors that may have an order of lanes of their own, one for all of them.

    Args:
        function: what computes them.
        lanes: how many elements the vectors have.
    """
    if not any(isinstance(op, _CONVERTS) for op in function.walk()):
        return frozenset()
    links = defaultdict[SSAValue, set[SSAValue]](set)
    in_order = set[SSAValue]()

    def link(values: Iterable[SSAValue]) -> None:
        group = {each for each in values if _is_wide(each, lanes)}
        for each in group:
            links[each] |= group

    for op in function.walk():
        for group in carried_together(op):
            link(group)
        values = [*op.operands, *op.results]
        has_bf16 = any(map(_is_bf16, values))
        hands_on = isinstance(op, scf.YieldOp | scf.ConditionOp)
        who = op.parent_op() if hands_on else op
        if isinstance(op, _CONVERTS) or (is_elementwise(op) and not has_bf16):
            link(values)
        elif not isinstance(who, (*_CARRIES, vector.ReductionOp)):
            in_order.update(values)
    waiting = list(in_order)
    while waiting:
        found = links[waiting.pop()] - in_order
        in_order |= found
        waiting += found
    return frozenset(links) - in_order


def _is_wide(value: SSAValue, lanes: int) -> bool:
    """Whether the order of lanes matters to it: they differ, and are not bf16."""
    type_, op = value.type, value.owner
    if not is_vector(type_) or type_.get_shape() != (lanes,) or _is_bf16(value):
        return False
    if isinstance(op, vector.BroadcastOp):
        return is_vector(op.source.type)
    return not isinstance(op, arith.ConstantOp) or splat_value(op.value) is None


def _is_bf16(value: SSAValue) -> bool:
    return getattr(value.type, "element_type", value.type) == BFloat16Type()

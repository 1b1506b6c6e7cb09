"""Values that a loop only folds numbers into, as ``count = count + 1``."""

from __future__ import annotations

from xdsl.dialects.builtin import i1
from xdsl.ir import Operation, SSAValue

from xetl.analysis.control_flow import sources, targets, yielded
from xetl.dialects.reduction_kinds import ON_FLOATS, ON_INTEGERS, SUMS
from xetl.dialects.upstream import arith, scf

_KINDS = {
    **{row.operation: kind for kind, row in ON_INTEGERS.items()},
    **{row.operation: kind for kind, row in ON_FLOATS.items() if kind not in SUMS},
    arith.SubiOp: "add",
}
"""The kinds whose numbers may be combined in any order."""


def fold_kind(loop: scf.ForOp, index: int) -> str | None:
    """Return the kind of reduction that a loop computes in a carried value.

    The value goes through operations of this kind, which bring other numbers, and
    through conditionals and loops; nothing else reads it. So iterations may fold into
    values of their own, which start with the identity and are combined at the end.
    Sums of floats are no such reductions, for they depend on the order.

    Args:
        index: counts from 0, without the counter.
    """
    start: SSAValue = loop.body.block.args[index + 1]
    if start.type == i1:
        return None
    folded, waiting, kinds = set[SSAValue]([start]), [start], set[str]()
    while waiting:
        for use in waiting.pop().uses:
            op = use.operation
            found: list[SSAValue] = []
            if type(op) in _KINDS:
                kinds.add(_KINDS[type(op)])
                found = [*op.results]
            elif isinstance(op, arith.SelectOp):
                found = [op.result]
            elif op is not loop.body.block.last_op:
                found = [*targets(op, use.index)]
            elif use.index != index:
                return None
            if not found and op is not loop.body.block.last_op:
                return None
            waiting += [each for each in found if each not in folded]
            folded.update(found)
    is_one = yielded(loop.body.block)[index] in folded and all(
        _is_folded(each, folded) for each in folded if each is not start
    )
    return kinds.pop() if is_one and len(kinds) == 1 else None


def _is_folded(value: SSAValue, folded: set[SSAValue]) -> bool:
    """Whether a value is one folded value, or one with another number."""
    op = value.owner
    if isinstance(op, arith.SelectOp):
        return op.operands[0] not in folded and {*op.operands[1:]} <= folded
    if type(op) in _KINDS:
        assert isinstance(op, Operation)
        left, right = (each in folded for each in op.operands)
        return left and not right if isinstance(op, arith.SubiOp) else left != right
    return {*(sources(value) or [None])} <= folded

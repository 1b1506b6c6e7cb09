"""Vectors whose lanes may be kept in another order than that of their elements.

A vector of bf16 that fills a register becomes two vectors of f32. To convert the even
and the odd elements takes a shift and a mask. To convert the first and the second half
takes shuffles as well, and so does the way back. If values are computed element by
element, and then become bf16 again or are reduced, no result depends on the lanes of
the elements. The same holds for values in scratch memory if all loads and stores of
the memory have the same vectors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from xdsl.dialects.builtin import BFloat16Type
from xdsl.ir import Operation, SSAValue

from xetl.analysis.affine import is_multiple_of
from xetl.analysis.control_flow import carried_together
from xetl.dialects.base import is_vector, vector_type
from xetl.dialects.literals import splat_value
from xetl.dialects.traits import is_elementwise
from xetl.dialects.upstream import arith, memref, scf, vector
from xetl.worklist import Worklist

_CONVERTS = (arith.ExtfOp, arith.TruncfOp)
_COUNTS = (vector.StepOp, vector.CreateMaskOp)
"""Operations that make lane numbers, for whichever order of lanes is used."""
_HAVE_NO_ORDER = (scf.ForOp, scf.IfOp, scf.WhileOp, *_COUNTS, vector.ReductionOp)


def of_any_order(function: Operation, lanes: int) -> frozenset[SSAValue]:
    """Return the vectors whose lanes may be in another order, the same one for all.

    Args:
        function: the function that computes the vectors.
        lanes: the number of elements of the vectors.
    """
    if not any(isinstance(op, _CONVERTS) for op in function.walk()):
        return frozenset()
    links = defaultdict[SSAValue, set[SSAValue]](set)
    in_order = set[SSAValue]()

    def link(values: Iterable[SSAValue]) -> None:
        group = {each for each in values if _is_wide(each, lanes)}
        for each in group:
            links[each] |= group

    scratch = dict[Operation, SSAValue]()
    for op in function.walk():
        for group in carried_together(op):
            link(group)
        if isinstance(op, memref.AllocaOp):
            accesses = _whole_vectors(op, lanes)
            link(accesses.values())
            scratch |= accesses
        values = [*op.operands, *op.results]
        has_bf16 = any(map(_is_bf16, values))
        hands_on = isinstance(op, scf.YieldOp | scf.ConditionOp)
        who = op.parent_op() if hands_on else op
        if isinstance(op, _CONVERTS) or (is_elementwise(op) and not has_bf16):
            link(values)
        elif not (isinstance(who, _HAVE_NO_ORDER) or op in scratch):
            in_order.update(values)
    waiting = Worklist(in_order)
    for each in waiting:
        waiting += links[each]
    return frozenset(links) - waiting.seen


def _whole_vectors(buffer: memref.AllocaOp, lanes: int) -> dict[Operation, SSAValue]:
    """Return the vector of each load and store; {} if the vectors may overlap."""
    found = dict[Operation, SSAValue]()
    for use in buffer.results[0].uses:
        op = use.operation
        if not isinstance(op, vector.LoadOp | vector.StoreOp):
            return {}
        value = op.value if isinstance(op, vector.StoreOp) else op.result
        is_whole = vector_type(value).get_shape() == (lanes,)
        if not (is_whole and is_multiple_of(op.indices[-1], lanes)):
            return {}
        found[op] = value
    return found


def _is_wide(value: SSAValue, lanes: int) -> bool:
    """Whether a vector depends on the order of lanes: not bf16, and no splat."""
    type_, op = value.type, value.owner
    if not is_vector(type_) or type_.get_shape() != (lanes,) or _is_bf16(value):
        return False
    if isinstance(op, vector.BroadcastOp):
        return is_vector(op.source.type)
    return not isinstance(op, arith.ConstantOp) or splat_value(op.value) is None


def _is_bf16(value: SSAValue) -> bool:
    return getattr(value.type, "element_type", value.type) == BFloat16Type()

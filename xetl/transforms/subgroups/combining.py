"""Two values combined by the kind of a reduction."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, SSAValue

from xetl.dialects.base import vector_type
from xetl.dialects.reduction_kinds import operation_of, sums_run_in
from xetl.dialects.upstream import arith
from xetl.transforms.subgroups.team import Subgroups


def combine(team: Subgroups, kind: str, values: Sequence[SSAValue]) -> SSAValue:
    """All ``values``, which have one type, combined; there is at least one."""
    found, *rest = values
    operation = operation_of(kind, found.type)
    for each in rest:
        found = team.insert(operation(found, each))
    return found


def widened(team: Subgroups, kind: str, value: SSAValue) -> SSAValue:
    """A vector in the type its sums run in: those of f16 and bf16 run in f32."""
    type_ = vector_type(value)
    wide = sums_run_in(kind, type_.element_type)
    if wide == type_.element_type:
        return value
    return team.insert(arith.ExtfOp(value, VectorType(wide, type_.get_shape())))


def narrowed(team: Subgroups, value: SSAValue, element: Attribute) -> SSAValue:
    """Undo `widened`, once everything is combined."""
    type_ = vector_type(value)
    if type_.element_type == element:
        return value
    return team.insert(arith.TruncfOp(value, VectorType(element, type_.get_shape())))

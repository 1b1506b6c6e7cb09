"""Two values combined by the kind of a reduction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import BFloat16Type, Float16Type, VectorType, f32
from xdsl.ir import Attribute, SSAValue

from xetl.dialects.base import vector_type
from xetl.dialects.combining import normalize_kind
from xetl.dialects.upstream import arith
from xetl.dialects.upstream.elementwise import is_float
from xetl.transforms.subgroups.team import Team

_FLOAT: dict[str, Any] = {
    "add": arith.AddfOp,
    "mul": arith.MulfOp,
    "minnumf": arith.MinnumfOp,
    "maxnumf": arith.MaxnumfOp,
    "minimumf": arith.MinimumfOp,
    "maximumf": arith.MaximumfOp,
}
_INTEGER: dict[str, Any] = {
    "add": arith.AddiOp,
    "mul": arith.MuliOp,
    "minsi": arith.MinsiOp,
    "minui": arith.MinuiOp,
    "maxsi": arith.MaxsiOp,
    "maxui": arith.MaxuiOp,
    "and": arith.AndiOp,
    "or": arith.OriOp,
    "xor": arith.XoriOp,
}


def combine(team: Team, kind: str, values: Sequence[SSAValue]) -> SSAValue:
    """All ``values``, which have one type, combined; there is at least one."""
    found, *rest = values
    operations = _FLOAT if is_float(found.type) else _INTEGER
    operation = operations[normalize_kind(kind)]
    for each in rest:
        found = team.add(operation(found, each)).results[0]
    return found


def widened(team: Team, kind: str, value: SSAValue) -> SSAValue:
    """A vector in the type its sums run in: those of f16 and bf16 run in f32."""
    type_ = vector_type(value)
    is_narrow = isinstance(type_.element_type, Float16Type | BFloat16Type)
    if not is_narrow or normalize_kind(kind) not in ("add", "mul"):
        return value
    return team.add(arith.ExtfOp(value, VectorType(f32, type_.get_shape()))).result


def narrowed(team: Team, value: SSAValue, element: Attribute) -> SSAValue:
    """Undo `widened`, once everything is combined."""
    type_ = vector_type(value)
    if type_.element_type == element:
        return value
    return team.add(
        arith.TruncfOp(value, VectorType(element, type_.get_shape()))
    ).result

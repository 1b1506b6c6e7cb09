"""Shifts that do what `reference` does where MLIR says nothing.

Too large a shift shifts everything out. Amounts that are constants need no care.
"""

from __future__ import annotations

from typing import Any

from xdsl.ir import Attribute, Block, SSAValue

from xetl.dialects.kinds_of_types import integer_width, is_integer_attr, is_vector
from xetl.dialects.literals import splat_value
from xetl.dialects.upstream import arith
from xetl.ir.builder import Builder
from xetl_cpu.lowering.text_forms.writing import replace_by

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

"""Divisions and shifts that do what `reference` does where MLIR says nothing.

The processor stops a program that divides by zero; here it gives 0. Too large a shift
shifts everything out. Divisors and amounts that are constants need no care.
"""

from __future__ import annotations

from typing import Any

from xdsl.ir import Attribute, Block, SSAValue

from xetl.dialects.kinds_of_types import integer_width, is_integer_attr, is_vector
from xetl.dialects.literals import make_splat, splat_value
from xetl.dialects.upstream import arith
from xetl_cpu.lowering.text_forms.writing import Writer, in_place_of, replace_by

_UNSIGNED = (arith.DivuiOp, arith.RemuiOp, arith.CeildivuiOp)
_SIGNED = (
    arith.DivsiOp,
    arith.RemsiOp,
    arith.FloordivsiOp,
    arith.CeildivsiOp,
)
_REMAINDERS = (arith.RemuiOp, arith.RemsiOp)
_SHIFTS = (arith.ShliOp, arith.ShrsiOp, arith.ShruiOp)


def make_total(block: Block) -> None:
    """Give every division and shift of a kernel a result; to be done last."""
    for op in list(block.walk()):
        if isinstance(op, (*_UNSIGNED, *_SIGNED)):
            if _known(op.rhs) in (None, 0, -1):
                _divide(op)
        elif isinstance(op, _SHIFTS):
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


def _constant(w: Writer, number: int, type_: Attribute) -> SSAValue:
    if is_vector(type_):
        return w.insert(arith.ConstantOp.splat(number, type_))
    return w.insert(arith.ConstantOp(make_splat(number, type_), type_))


def _divide(op: Any) -> None:
    """Divide by 1 instead of 0 and -1; choose what belongs there afterwards."""
    w, type_ = in_place_of(op), op.result.type
    zero, one = _constant(w, 0, type_), _constant(w, 1, type_)
    is_zero = w.insert(arith.CmpiOp("eq", op.rhs, zero))
    divisor = w.insert(arith.SelectOp(is_zero, one, op.rhs))
    negative: SSAValue | None = None
    if isinstance(op, _SIGNED):
        minus = _constant(w, -1, type_)
        negative = w.insert(arith.CmpiOp("eq", op.rhs, minus))
        divisor = w.insert(arith.SelectOp(negative, one, divisor))
    result = w.insert(type(op)(op.lhs, divisor))
    if not isinstance(op, _REMAINDERS):
        if negative is not None:
            other = w.insert(arith.SubiOp(zero, op.lhs))
            result = w.insert(arith.SelectOp(negative, other, result))
        result = w.insert(arith.SelectOp(is_zero, zero, result))
    replace_by(op, result)


def _shift(op: Any) -> None:
    w, type_ = in_place_of(op), op.result.type
    most = _constant(w, _bits(type_) - 1, type_)
    amount = w.insert(arith.MinuiOp(op.rhs, most))
    result = w.insert(type(op)(op.lhs, amount))
    if not isinstance(op, arith.ShrsiOp):
        too_far = w.insert(arith.CmpiOp("ugt", op.rhs, most))
        result = w.insert(arith.SelectOp(too_far, _constant(w, 0, type_), result))
    replace_by(op, result)

"""Functions of numbers: tests, carries, long products."""

from __future__ import annotations

import math as m
from typing import Any

from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import element_type, with_element
from xetl.dialects.literals import make_splat
from xetl.dialects.upstream import arith, math, ub
from xetl.dialects.upstream.arith_extended import (
    AdduiExtendedOp,
    MulsiExtendedOp,
    MuluiExtendedOp,
)
from xetl.dialects.upstream.elementwise import bit_width
from xetl.dialects.upstream.math_more import (
    ClampfOp,
    FpowiOp,
    IsfiniteOp,
    IsinfOp,
    IsnanOp,
    SincosOp,
)
from xetl.transforms.forms.steps import Expansion, Rule, Steps


def _isnan(op: IsnanOp) -> Expansion:
    steps = Steps()
    return steps.done(steps.add(arith.CmpfOp("uno", op.operand, op.operand)))


def _against_infinity(predicate: str) -> Rule:
    def expand(op: Any) -> Expansion:
        steps = Steps()
        size = steps.add(math.AbsfOp(op.operand))
        infinity = steps.number(m.inf, op.operand.type)
        return steps.done(steps.add(arith.CmpfOp(predicate, size, infinity)))

    return expand


def _clampf(op: ClampfOp) -> Expansion:
    steps = Steps()
    low = steps.add(arith.MaximumfOp(op.value, op.min))
    return steps.done(steps.add(arith.MinimumfOp(low, op.max)))


def _fpowi(op: FpowiOp) -> Expansion:
    steps = Steps()
    power = steps.add(arith.SitofpOp(op.rhs, op.lhs.type))
    return steps.done(steps.add(math.PowfOp(op.lhs, power)))


def _sincos(op: SincosOp) -> Expansion:
    steps = Steps()
    sine = steps.add(math.SinOp(op.operand))
    return steps.done(sine, steps.add(math.CosOp(op.operand)))


def _addui_extended(op: AdduiExtendedOp) -> Expansion:
    steps = Steps()
    total = steps.add(arith.AddiOp(op.lhs, op.rhs))
    return steps.done(total, steps.add(arith.CmpiOp("ult", total, op.lhs)))


def _mul_extended(op: MulsiExtendedOp | MuluiExtendedOp) -> Expansion:
    signed = isinstance(op, MulsiExtendedOp)
    steps, type_ = Steps(), op.lhs.type
    low = steps.add(arith.MuliOp(op.lhs, op.rhs))
    element = element_type(type_)
    if isinstance(element, IndexType) or bit_width(element) == 64:
        return steps.done(low, _high_of_64(steps, op.lhs, op.rhs, signed))
    bits = bit_width(element)
    wide = with_element(type_, IntegerType(2 * bits))
    extend = arith.ExtsiOp if signed else arith.ExtuiOp
    left, right = (steps.add(extend(each, wide)) for each in (op.lhs, op.rhs))
    product = steps.add(arith.MuliOp(left, right))
    shifted = steps.add(arith.ShruiOp(product, steps.number(bits, wide)))
    return steps.done(low, steps.add(arith.TrunciOp(shifted, type_)))


def _high_of_64(
    steps: Steps, left: SSAValue, right: SSAValue, signed: bool
) -> SSAValue:
    """The upper half of a product of 64 bits each, by halves of 32 bits."""
    type_ = left.type
    half = steps.number(32, type_)
    ones = steps.number((1 << 32) - 1, type_)

    def split(value: SSAValue) -> tuple[SSAValue, SSAValue]:
        low = steps.add(arith.AndiOp(value, ones))
        return low, steps.add(arith.ShruiOp(value, half))

    def times(a: SSAValue, b: SSAValue) -> SSAValue:
        return steps.add(arith.MuliOp(a, b))

    def plus(a: SSAValue, b: SSAValue) -> SSAValue:
        return steps.add(arith.AddiOp(a, b))

    (l0, l1), (r0, r1) = split(left), split(right)
    carry = split(times(l0, r0))[1]
    middle, over = split(plus(times(l1, r0), carry))
    rest = split(plus(times(l0, r1), middle))[1]
    high = plus(plus(times(l1, r1), over), rest)
    if not signed:
        return high
    zero = steps.number(0, type_)
    for a, b in ((left, right), (right, left)):
        negative = steps.add(arith.CmpiOp("slt", a, zero))
        extra = steps.add(arith.SelectOp(negative, b, zero))
        high = steps.add(arith.SubiOp(high, extra))
    return high


def _poison(op: ub.PoisonOp) -> Expansion:
    steps, type_ = Steps(), op.result.type
    return steps.done(steps.add(arith.ConstantOp(make_splat(0, type_), type_)))


RULES: dict[type[Operation], Rule] = {
    IsnanOp: _isnan,
    IsinfOp: _against_infinity("oeq"),
    IsfiniteOp: _against_infinity("olt"),
    ClampfOp: _clampf,
    FpowiOp: _fpowi,
    SincosOp: _sincos,
    AdduiExtendedOp: _addui_extended,
    MulsiExtendedOp: _mul_extended,
    MuluiExtendedOp: _mul_extended,
    ub.PoisonOp: _poison,
}

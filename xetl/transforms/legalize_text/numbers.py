"""Functions of numbers: tests, carries, long products."""

from __future__ import annotations

import math as m
from typing import Any

from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import element_type, with_element
from xetl.dialects.upstream import arith, math, ub
from xetl.dialects.upstream.arith import (
    AdduiExtendedOp,
    MulsiExtendedOp,
    MuluiExtendedOp,
)
from xetl.dialects.upstream.elementwise import bit_width
from xetl.dialects.upstream.math import (
    ClampfOp,
    FpowiOp,
    IsfiniteOp,
    IsinfOp,
    IsnanOp,
    SincosOp,
)
from xetl.ir.builder import Builder
from xetl.transforms.rewriting import Rule, Values


def _isnan(b: Builder, op: IsnanOp) -> Values:
    return [b.insert(arith.CmpfOp("uno", op.operand, op.operand))]


def _against_infinity(predicate: str) -> Rule:
    def expand(b: Builder, op: Any) -> Values:
        size = b.insert(math.AbsfOp(op.operand))
        infinity = b.constant(m.inf, op.operand.type)
        return [b.insert(arith.CmpfOp(predicate, size, infinity))]

    return expand


def _clampf(b: Builder, op: ClampfOp) -> Values:
    low = b.insert(arith.MaximumfOp(op.value, op.min))
    return [b.insert(arith.MinimumfOp(low, op.max))]


def _fpowi(b: Builder, op: FpowiOp) -> Values:
    power = b.insert(arith.SitofpOp(op.rhs, op.lhs.type))
    return [b.insert(math.PowfOp(op.lhs, power))]


def _sincos(b: Builder, op: SincosOp) -> Values:
    sine = b.insert(math.SinOp(op.operand))
    return [sine, b.insert(math.CosOp(op.operand))]


def _addui_extended(b: Builder, op: AdduiExtendedOp) -> Values:
    total = b.insert(arith.AddiOp(op.lhs, op.rhs))
    return [total, b.insert(arith.CmpiOp("ult", total, op.lhs))]


def _mul_extended(b: Builder, op: MulsiExtendedOp | MuluiExtendedOp) -> Values:
    signed = isinstance(op, MulsiExtendedOp)
    type_ = op.lhs.type
    low = b.insert(arith.MuliOp(op.lhs, op.rhs))
    element = element_type(type_)
    if isinstance(element, IndexType) or bit_width(element) == 64:
        return [low, _high_of_64(b, op.lhs, op.rhs, signed)]
    bits = bit_width(element)
    wide = with_element(type_, IntegerType(2 * bits))
    extend = arith.ExtsiOp if signed else arith.ExtuiOp
    left, right = (b.insert(extend(each, wide)) for each in (op.lhs, op.rhs))
    product = b.insert(arith.MuliOp(left, right))
    shifted = b.insert(arith.ShruiOp(product, b.constant(bits, wide)))
    return [low, b.insert(arith.TrunciOp(shifted, type_))]


def _high_of_64(b: Builder, left: SSAValue, right: SSAValue, signed: bool) -> SSAValue:
    """The upper half of a product of 64 bits each, by halves of 32 bits."""
    type_ = left.type
    half = b.constant(32, type_)
    ones = b.constant((1 << 32) - 1, type_)

    def split(value: SSAValue) -> tuple[SSAValue, SSAValue]:
        low = b.insert(arith.AndiOp(value, ones))
        return low, b.insert(arith.ShruiOp(value, half))

    def times(x: SSAValue, y: SSAValue) -> SSAValue:
        return b.insert(arith.MuliOp(x, y))

    def plus(x: SSAValue, y: SSAValue) -> SSAValue:
        return b.insert(arith.AddiOp(x, y))

    (l0, l1), (r0, r1) = split(left), split(right)
    carry = split(times(l0, r0))[1]
    middle, over = split(plus(times(l1, r0), carry))
    rest = split(plus(times(l0, r1), middle))[1]
    high = plus(plus(times(l1, r1), over), rest)
    if not signed:
        return high
    zero = b.constant(0, type_)
    for one, other in ((left, right), (right, left)):
        negative = b.insert(arith.CmpiOp("slt", one, zero))
        extra = b.insert(arith.SelectOp(negative, other, zero))
        high = b.insert(arith.SubiOp(high, extra))
    return high


def _poison(b: Builder, op: ub.PoisonOp) -> Values:
    return [b.constant(0, op.result.type)]


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

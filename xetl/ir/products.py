"""Products of integers that are wider than their operands."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import SSAValue

from xetl.dialects.base import element_type, with_element
from xetl.dialects.upstream import arith
from xetl.dialects.upstream.elementwise import bit_width
from xetl.ir.builder import Builder


def upper_half(b: Builder, left: SSAValue, right: SSAValue, signed: bool) -> SSAValue:
    """The upper half of the product of two integers, or vectors of them."""
    type_ = left.type
    element = element_type(type_)
    if isinstance(element, IndexType) or bit_width(element) == 64:
        return _of_64_bits(b, left, right, signed)
    bits = bit_width(element)
    wide = with_element(type_, IntegerType(2 * bits))
    extend = arith.ExtsiOp if signed else arith.ExtuiOp
    one, other = (b.insert(extend(each, wide)) for each in (left, right))
    product = b.insert(arith.MuliOp(one, other))
    shifted = b.insert(arith.ShruiOp(product, b.constant(bits, wide)))
    return b.insert(arith.TrunciOp(shifted, type_))


def _of_64_bits(b: Builder, left: SSAValue, right: SSAValue, signed: bool) -> SSAValue:
    """The same of 64 bits each, by halves of 32 bits."""
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

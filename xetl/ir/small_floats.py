"""Floats of eight bits from and to wider ones, in integer arithmetic.

No target has to know the formats: a code is an i8, and what is built here is exact from
a code, and rounds to nearest even to one.  Overflow is not saturated: `f8E4M3FN` has no
infinity and gives NaN, `f8E5M2` gives infinity.
Source: Micikevicius et al., "FP8 formats for deep learning" (2022); ml_dtypes.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    bf16,
    f32,
)
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.base import element_type, with_element
from xetl.dialects.upstream import arith
from xetl.ir.builder import Builder
from xetl.records import record

CODE = IntegerType(8)
"""What holds a float of eight bits."""

_INT = IntegerType(32)


@record(frozen=True)
class Format:
    """A format of eight bits: sign, exponent, fraction.

    Attributes:
        fraction: bits of it.
        bias: of the exponent.
        special: the first code that is no finite number, without sign.
        last: the code of what is too large.
        nan: the code of NaN, without sign.
    """

    fraction: int
    bias: int
    special: int
    last: int
    nan: int


FORMATS: dict[type[Attribute], Format] = {
    Float8E4M3FNType: Format(3, 7, 0x7F, 0x7F, 0x7F),
    Float8E5M2Type: Format(2, 15, 0x7C, 0x7C, 0x7E),
}


def element_of(type_: Attribute) -> Attribute:
    """The element type of a vector, memref or tile, any other type itself."""
    return getattr(type_, "element_type", type_)


def is_small(type_: Attribute) -> bool:
    """Whether the type, or that of its elements, is a float of eight bits."""
    return type(element_of(type_)) in FORMATS


def format_of(type_: Attribute) -> Format:
    """The format of a float of eight bits, or of such elements."""
    return FORMATS[type(element_of(type_))]


class _Arithmetic:
    """Operations on values of one shape, with constants as Python numbers."""

    def __init__(self, build: Builder, like: SSAValue) -> None:
        self.build = build
        self._shape = like.type

    def cast(self, make: type[Operation], value: SSAValue, to: Attribute) -> SSAValue:
        return self.build.insert(make(value, with_element(self._shape, to)))  # pyright: ignore[reportCallIssue]

    def apply(
        self, make: type[Operation], value: SSAValue, other: SSAValue | float
    ) -> SSAValue:
        return self.build.insert(make(value, self._value(other, value.type)))  # pyright: ignore[reportCallIssue]

    def select(
        self,
        condition: SSAValue,
        yes: SSAValue | int,
        no: SSAValue | int,
        like: SSAValue,
    ) -> SSAValue:
        values = self._value(yes, like.type), self._value(no, like.type)
        return self.build.insert(arith.SelectOp(condition, *values))

    def compare(self, predicate: str, value: SSAValue, limit: int) -> SSAValue:
        other = self._value(limit, value.type)
        return self.build.insert(arith.CmpiOp(predicate, value, other))

    def _value(self, given: SSAValue | float, type_: Attribute) -> SSAValue:
        return (
            given if isinstance(given, SSAValue) else self.build.constant(given, type_)
        )


def extended(
    build: Builder, value: SSAValue, form: Format, type_: Attribute
) -> SSAValue:
    """A code, or a vector of them, as f16, bf16, f32 or f64: exact."""
    to = element_type(type_)
    on = _Arithmetic(build, value)
    code = on.cast(arith.ExtuiOp, value, _INT)
    magnitude = on.apply(arith.AndiOp, code, 0x7F)
    shifted = on.apply(arith.ShliOp, magnitude, 23 - form.fraction)
    # The exponent of what is not finite moves on to the highest.
    rebias = 127 - form.bias
    special = on.compare("uge", magnitude, form.special)
    exponent = on.select(special, 2 * rebias << 23, rebias << 23, shifted)
    normal = on.apply(arith.AddiOp, shifted, exponent)
    # 2**e * 1.f - 2**e: exact, without subnormals of f32, which may be flushed.
    above = on.apply(arith.AddiOp, shifted, (rebias + 1) << 23)
    least = math.ldexp(1.0, 1 - form.bias)
    below = on.apply(arith.SubfOp, on.cast(arith.BitcastOp, above, f32), least)
    subnormal = on.cast(arith.BitcastOp, below, _INT)
    is_subnormal = on.compare("ult", magnitude, 1 << form.fraction)
    bits = on.select(is_subnormal, subnormal, normal, shifted)
    sign = on.apply(arith.ShliOp, on.apply(arith.AndiOp, code, 0x80), 24)
    bits = on.apply(arith.OriOp, bits, sign)
    if isinstance(to, BFloat16Type):
        upper = on.apply(arith.ShruiOp, bits, 16)
        upper = on.cast(arith.TrunciOp, upper, IntegerType(16))
        return on.cast(arith.BitcastOp, upper, bf16)
    wide = on.cast(arith.BitcastOp, bits, f32)
    if isinstance(to, Float32Type):
        return wide
    narrow = isinstance(to, Float16Type)
    return on.cast(arith.TruncfOp if narrow else arith.ExtfOp, wide, to)


def truncated(build: Builder, value: SSAValue, form: Format) -> SSAValue:
    """f16, bf16, f32 or f64, or a vector, as codes, rounded to nearest even."""
    on = _Arithmetic(build, value)
    if isinstance(element_type(value.type), Float16Type | BFloat16Type):
        value = on.cast(arith.ExtfOp, value, f32)
    is_double = isinstance(element_type(value.type), Float64Type)
    width, fraction, bias = (64, 52, 1023) if is_double else (32, 23, 127)
    bits = on.cast(arith.BitcastOp, value, IntegerType(width))
    magnitude = on.apply(arith.AndiOp, bits, (1 << (width - 1)) - 1)
    # To nearest even: half a step less one, and one more where the last bit is odd.
    shift = fraction - form.fraction
    odd = on.apply(arith.AndiOp, on.apply(arith.ShruiOp, magnitude, shift), 1)
    rounded = on.apply(arith.AddiOp, magnitude, (1 << (shift - 1)) - 1)
    rounded = on.apply(arith.AddiOp, rounded, odd)
    normal = on.apply(arith.ShruiOp, rounded, shift)
    normal = on.apply(arith.SubiOp, normal, (bias - form.bias) << form.fraction)
    # Added to a number whose last bit is the step of the subnormal codes.
    step = 1 - form.bias - form.fraction
    large = math.ldexp(1.0, fraction + step)
    positive = on.cast(arith.BitcastOp, magnitude, element_type(value.type))
    sum_ = on.apply(arith.AddfOp, positive, large)
    steps = on.cast(arith.BitcastOp, sum_, IntegerType(width))
    steps = on.apply(arith.SubiOp, steps, (fraction + step + bias) << fraction)
    least = (bias + 1 - form.bias) << fraction
    is_subnormal = on.compare("ult", magnitude, least)
    code = on.select(is_subnormal, steps, normal, magnitude)
    code = on.apply(arith.MinsiOp, code, form.last)
    if form.nan != form.last:
        infinite = (2 * bias + 1) << fraction
        code = on.select(on.compare("ugt", magnitude, infinite), form.nan, code, code)
    sign = on.apply(arith.ShruiOp, bits, width - 8)
    sign = on.apply(arith.AndiOp, sign, 0x80)
    return on.cast(arith.TrunciOp, on.apply(arith.OriOp, code, sign), CODE)

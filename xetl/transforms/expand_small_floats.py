"""expand-small-floats: floats of eight bits become i8, and arithmetic on them f32.

*What*: `f8E4M3FN` and `f8E5M2` in memory, tiles and values become i8. A conversion
becomes integer arithmetic. A product gets factors of bf16 (on a device f16, half the
work); both hold every such number exactly. If the device multiplies the codes (C is
f32, K a multiple of its step), the factors stay codes. Any other computation is done
in f32, and its result is rounded once.
*Why*: backends do not have to know these types.
*Left alone*: operations that only move elements; modules without such types.
Raises: IRError for atomics on them.

before: %p = xetile.tile_mma %a, %b : vector<8x32xf8E5M2>, vector<32x16xf8E5M2> -> ...
after:  %w = ... : vector<8x32xi8> to vector<8x32xbf16>
        %p = xetile.tile_mma %w, %v : vector<8x32xbf16>, vector<32x16xbf16> -> ...

A code is the i8 that holds such a float. Conversion from a code is exact; conversion
to a code rounds to nearest even. Overflow is not saturated: `f8E4M3FN` has no infinity
and gives NaN, `f8E5M2` gives infinity.
Source: Micikevicius et al., "FP8 formats for deep learning" (2022); ml_dtypes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.analysis.axes import defined_by
from xetl.devices import CODES, find_device
from xetl.dialects import xetile
from xetl.dialects.base import element_type, vector_type, with_element
from xetl.dialects.literals import wrap
from xetl.dialects.upstream import arith, memref, vector
from xetl.ir.builder import Builder, Pass
from xetl.language.dtypes import DType
from xetl.records import record
from xetl.transforms.diagnostics import refusal
from xetl.transforms.rewriting import retype, retyping

CODE = builtin.IntegerType(8)
"""The integer type that holds a float of eight bits."""

_INT = builtin.IntegerType(32)


@record(frozen=True)
class Format:
    """A format of eight bits: sign, exponent, fraction.

    Attributes:
        fraction: bits of the fraction.
        bias: of the exponent.
        special: the first code that is not finite, without sign.
        last: the code for numbers that are too large.
        nan: the code of NaN, without sign.
    """

    fraction: int
    bias: int
    special: int
    last: int
    nan: int


FORMATS: dict[type[Attribute], Format] = {
    builtin.Float8E4M3FNType: Format(3, 7, 0x7F, 0x7F, 0x7F),
    builtin.Float8E5M2Type: Format(2, 15, 0x7C, 0x7C, 0x7E),
}


def element_of(type_: Attribute) -> Attribute:
    """Return the element type of a vector, memref or tile; any other type itself."""
    return getattr(type_, "element_type", type_)


def is_small(type_: Attribute) -> bool:
    """Whether the type or its element type is a float of eight bits."""
    return type(element_of(type_)) in FORMATS


def format_of(type_: Attribute) -> Format:
    """Return the format of a type that `is_small`."""
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
        constant = self.build.constant
        return given if isinstance(given, SSAValue) else constant(given, type_)


def extended(
    build: Builder, value: SSAValue, form: Format, type_: Attribute
) -> SSAValue:
    """Convert a code, or a vector of codes, to f16, bf16, f32 or f64: exact."""
    to = element_type(type_)
    on = _Arithmetic(build, value)
    if isinstance(to, builtin.Float16Type):
        return _as_half(on, value, form)
    code = on.cast(arith.ExtuiOp, value, _INT)
    magnitude = on.apply(arith.AndiOp, code, 0x7F)
    shifted = on.apply(arith.ShliOp, magnitude, 23 - form.fraction)
    # The exponent of NaN and infinity becomes the highest one.
    rebias = 127 - form.bias
    special = on.compare("uge", magnitude, form.special)
    exponent = on.select(special, 2 * rebias << 23, rebias << 23, shifted)
    normal = on.apply(arith.AddiOp, shifted, exponent)
    # 2**e * 1.f - 2**e: exact, without subnormals of f32, which may be flushed.
    above = on.apply(arith.AddiOp, shifted, (rebias + 1) << 23)
    least = math.ldexp(1.0, 1 - form.bias)
    below = on.apply(arith.SubfOp, on.cast(arith.BitcastOp, above, builtin.f32), least)
    subnormal = on.cast(arith.BitcastOp, below, _INT)
    is_subnormal = on.compare("ult", magnitude, 1 << form.fraction)
    bits = on.select(is_subnormal, subnormal, normal, shifted)
    sign = on.apply(arith.ShliOp, on.apply(arith.AndiOp, code, 0x80), 24)
    bits = on.apply(arith.OriOp, bits, sign)
    if isinstance(to, builtin.BFloat16Type):
        upper = on.apply(arith.ShruiOp, bits, 16)
        upper = on.cast(arith.TrunciOp, upper, builtin.IntegerType(16))
        return on.cast(arith.BitcastOp, upper, builtin.bf16)
    wide = on.cast(arith.BitcastOp, bits, builtin.f32)
    if isinstance(to, builtin.Float32Type):
        return wide
    return on.cast(arith.ExtfOp, wide, to)


def _as_half(on: _Arithmetic, value: SSAValue, form: Format) -> SSAValue:
    """Convert to f16: the exponent is that of f8E5M2, one bit wider than f8E4M3FN's."""
    to, half = builtin.IntegerType(16), builtin.Float16Type()
    if form.fraction == _HALF_FRACTION - 8:
        code = on.apply(arith.ShliOp, on.cast(arith.ExtuiOp, value, to), 8)
        return on.cast(arith.BitcastOp, code, half)
    # Sign extension sets the highest bit of the exponent, which is then cleared.
    code = on.cast(arith.ExtsiOp, value, to)
    shifted = on.apply(arith.ShliOp, code, _HALF_FRACTION - form.fraction)
    bits = on.apply(arith.AndiOp, shifted, ~_HIGHEST)
    # NaN is the last code: the addition carries into that bit, so it is NaN again.
    last = form.nan << _HALF_FRACTION - form.fraction
    carry = on.apply(arith.AddiOp, bits, _HIGHEST - last)
    bits = on.apply(arith.OriOp, bits, on.apply(arith.AndiOp, carry, _HIGHEST))
    number = on.cast(arith.BitcastOp, bits, half)
    return on.apply(arith.MulfOp, number, math.ldexp(1.0, _HALF_BIAS - form.bias))


_HALF_FRACTION, _HALF_BIAS, _HIGHEST = 10, 15, 0x4000
"""f16: bits of the fraction, bias of the exponent, highest bit of the exponent."""


def truncated(build: Builder, value: SSAValue, form: Format) -> SSAValue:
    """Convert f16, bf16, f32 or f64, or vectors, to codes, rounded to nearest even."""
    on = _Arithmetic(build, value)
    if isinstance(element_type(value.type), builtin.Float16Type | builtin.BFloat16Type):
        value = on.cast(arith.ExtfOp, value, builtin.f32)
    is_double = isinstance(element_type(value.type), builtin.Float64Type)
    width, fraction, bias = (64, 52, 1023) if is_double else (32, 23, 127)
    bits = on.cast(arith.BitcastOp, value, builtin.IntegerType(width))
    magnitude = on.apply(arith.AndiOp, bits, (1 << (width - 1)) - 1)
    # Nearest even: add half a step minus one, plus one if the last bit is odd.
    shift = fraction - form.fraction
    odd = on.apply(arith.AndiOp, on.apply(arith.ShruiOp, magnitude, shift), 1)
    rounded = on.apply(arith.AddiOp, magnitude, (1 << (shift - 1)) - 1)
    rounded = on.apply(arith.AddiOp, rounded, odd)
    normal = on.apply(arith.ShruiOp, rounded, shift)
    normal = on.apply(arith.SubiOp, normal, (bias - form.bias) << form.fraction)
    # Subnormals: add a number whose last bit is the step of the subnormal codes.
    step = 1 - form.bias - form.fraction
    large = math.ldexp(1.0, fraction + step)
    positive = on.cast(arith.BitcastOp, magnitude, element_type(value.type))
    sum_ = on.apply(arith.AddfOp, positive, large)
    steps = on.cast(arith.BitcastOp, sum_, builtin.IntegerType(width))
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


_MOVES = (arith.ConstantOp, arith.SelectOp, arith.BitcastOp)
_COMPUTES = (
    *(xetile.TileMmaOp, xetile.TileReduceOp, xetile.TileScanOp, xetile.PrintOp),
    *(vector.ReductionOp, vector.MultiReductionOp, vector.FmaOp),
    *(vector.ContractOp, vector.OuterproductOp),
)


@dataclass(frozen=True)
class ExpandSmallFloatsPass(Pass):
    """See the module docstring.

    Attributes:
        device: the device, whose matrix unit may multiply codes; see `xetl.devices`.
            An empty string is a CPU.
    """

    device: str = ""

    def rewrite(self, op: builtin.ModuleOp) -> None:
        """Rewrite ``op`` in place; an IRError if an atomic updates such elements."""
        values = (value for each in op.walk() for value in defined_by(each))
        if not any(is_small(value.type) for value in values):
            return
        for each in op.walk():
            if isinstance(each, xetile.TileMmaOp) and self._multiplies(each):
                elements = [element_of(side.type) for side in (each.a, each.b)]
                names = [CODES[DType.of(str(each)).name] for each in elements]
                each.properties["precision"] = builtin.StringAttr("x".join(names))
        wide: dict[tuple[SSAValue, Attribute], SSAValue] = {}
        for each in list(op.walk()):
            _widen(each, wide, builtin.f16 if self.device else builtin.bf16)
        conversions = [(each, _conversion(each)) for each in op.walk()]
        for each, make in conversions:
            if make is not None:
                Rewriter.replace_op(each, [], [make(Builder.before(each))])
        as_codes = retyping(_as_code)
        for each in op.walk():
            retype(each, as_codes)

    def _multiplies(self, op: xetile.TileMmaOp) -> bool:
        """Whether the device has an instruction for a product of codes."""
        if not self.device:
            return False
        unit = find_device(self.device).matrix
        depth, columns = vector_type(op.b).get_shape()[-2:]
        return (
            "f8" in unit.results
            and is_small(op.a.type)
            and element_of(op.result.type) == builtin.f32
            and vector_type(op.b).get_num_dims() == 2
            and depth % (unit.depth_bits // 8) == 0
            and columns % unit.columns == 0
        )


# What computes does so in a wider type ----------------------------------------------


def _widen(
    op: Operation, wide: dict[tuple[SSAValue, Attribute], SSAValue], factor: Attribute
) -> None:
    """Let an operation that computes read and return f32; factors of products differ.

    Args:
        wide: the extended values made so far.
        factor: the type of factors of products.
    """
    if isinstance(op, (xetile.AtomicRmwTileOp, memref.AtomicRmwOp)):
        _check_atomic(op)
    padding = op.properties.get("padding")
    if isinstance(padding, builtin.IntegerAttr | builtin.FloatAttr) and is_small(
        op.operands[0].type
    ):
        number = float(padding.value.data)
        op.properties["padding"] = _code_of(number, element_of(op.operands[0].type))
    if not _computes(op):
        return
    is_of_codes = isinstance(op, xetile.TileMmaOp) and op.precision is not None
    for index, value in enumerate(op.operands):
        if is_small(value.type) and not (is_of_codes and index < 2):
            is_factor = isinstance(op, xetile.TileMmaOp) and index < 2
            to = factor if is_factor else builtin.f32
            key = (value, to)
            if key not in wide:
                extend = arith.ExtfOp(value, with_element(value.type, to))
                wide[key] = Builder.after(value).insert(extend)
            op.operands[index] = wide[key]
    for result in op.results:
        if is_small(result.type):
            narrow = result.type
            new = Rewriter.replace_value_with_new_type(
                result, with_element(narrow, builtin.f32)
            )
            rounded = arith.TruncfOp(new, narrow)
            new.replace_all_uses_with(Builder.after(op).insert(rounded))
            rounded.operands[0] = new


def _computes(op: Operation) -> bool:
    if op.name.startswith(("arith.", "math.")):
        return not isinstance(op, (*_MOVES, arith.ExtfOp, arith.TruncfOp))
    return isinstance(op, _COMPUTES)


def _check_atomic(op: xetile.AtomicRmwTileOp | memref.AtomicRmwOp) -> None:
    for value in op.operands:
        if is_small(value.type):
            raise refusal(
                op,
                f"elements of {element_of(value.type)} cannot be updated",
                "atomics exist for i32, i64, f32 and f64, and `add` for f16 and bf16",
            )


# Conversions ------------------------------------------------------------------------


def _conversion(op: Operation) -> Callable[[Builder], SSAValue] | None:
    """Return a function that builds a conversion; None for other operations.

    The function keeps the formats, because operands may be codes when it runs.
    """
    if isinstance(op, arith.ExtfOp) and is_small(op.source.type):
        form = format_of(op.source.type)
        return lambda build: extended(build, op.source, form, op.result.type)
    if isinstance(op, arith.TruncfOp) and is_small(op.result.type):
        form = format_of(op.result.type)
        return lambda build: truncated(build, op.source, form)
    if isinstance(op, arith.BitcastOp) and (
        is_small(op.source.type) or is_small(op.result.type)
    ):
        return lambda build: op.source
    return None


# Types ------------------------------------------------------------------------------


def _as_code(attribute: Attribute) -> Attribute | None:
    """A format, or a number in it, as codes; None: nothing of it is one itself."""
    if isinstance(attribute, builtin.AnyFloat) and is_small(attribute):
        return CODE
    if isinstance(attribute, builtin.FloatAttr):
        number = cast("builtin.FloatAttr[builtin.AnyFloat]", attribute)
        is_code = is_small(number.type)
        return _code_of(number.value.data, number.type) if is_code else number
    return None


def _code_of(number: float, type_: Attribute) -> builtin.IntegerAttr:
    with np.errstate(over="ignore", invalid="ignore"):
        code = DType.of(str(type_)).numpy.type(number).view(np.uint8)
    return builtin.IntegerAttr(wrap(int(code), 8), CODE)

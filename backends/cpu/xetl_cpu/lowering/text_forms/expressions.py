"""Expressions that stand for several operations of `arith` and `math`."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from xdsl.dialects.builtin import AnyFloat, Float64Type, VectorType, f64, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

from xetl.dialects.base import element_type
from xetl.dialects.kinds_of_types import integer_width, is_vector
from xetl.dialects.literals import make_splat
from xetl.dialects.upstream import (
    affine,
    arith,
    arith_extended,
    math,
    math_more,
    ub,
)
from xetl_cpu.lowering.text_forms.writing import Writer, in_place_of, replace_by


def constant(w: Writer, number: float, type_: Attribute) -> SSAValue:
    """A number, in every lane of a vector."""
    if is_vector(type_):
        return w.insert(arith.ConstantOp.splat(number, type_))
    return w.insert(arith.ConstantOp(make_splat(number, type_), type_))


def with_element(type_: Attribute, element: Attribute) -> Attribute:
    """A scalar or vector type with another element type."""
    return VectorType(element, type_.get_shape()) if is_vector(type_) else element


# Affine maps ------------------------------------------------------------------------


def _values(w: Writer, op: Any) -> list[SSAValue]:
    """All results of an operation's map."""
    return [
        _value(w, expression, op.dimensions, op.symbols)
        for expression in op.map.data.results
    ]


def _value(w: Writer, expression: AffineExpr, dims: Any, symbols: Any) -> SSAValue:
    if isinstance(expression, AffineConstantExpr):
        return w.value(expression.value)
    if isinstance(expression, AffineBinaryOpExpr):
        left = _value(w, expression.lhs, dims, symbols)
        right = _value(w, expression.rhs, dims, symbols)
        return _BINARY[expression.kind](w, left, right)
    assert isinstance(expression, AffineDimExpr | AffineSymExpr)
    given = dims if isinstance(expression, AffineDimExpr) else symbols
    return given[expression.position]


def _modulo(w: Writer, left: SSAValue, right: SSAValue) -> SSAValue:
    """Never negative."""
    whole = w.insert(arith.FloordivsiOp(left, right))
    return w.insert(arith.SubiOp(left, w.insert(arith.MuliOp(whole, right))))


def _by(cls: Any) -> Callable[[Writer, SSAValue, SSAValue], SSAValue]:
    return lambda w, left, right: w.insert(cls(left, right))


_BINARY = {
    AffineBinaryOpKind.Add: _by(arith.AddiOp),
    AffineBinaryOpKind.Mul: _by(arith.MuliOp),
    AffineBinaryOpKind.Mod: _modulo,
    AffineBinaryOpKind.FloorDiv: _by(arith.FloordivsiOp),
    AffineBinaryOpKind.CeilDiv: _by(arith.CeildivsiOp),
}


def _apply(op: affine.ApplyOp) -> None:
    w = in_place_of(op)
    replace_by(op, *_values(w, op))


def _extreme(cls: Any) -> Callable[[Any], None]:
    def rule(op: Any) -> None:
        w = in_place_of(op)
        replace_by(op, reduce(lambda a, b: _by(cls)(w, a, b), _values(w, op)))

    return rule


# Integers of twice the width ---------------------------------------------------------


def _add_extended(op: arith_extended.AdduiExtendedOp) -> None:
    w = in_place_of(op)
    total = w.insert(arith.AddiOp(op.lhs, op.rhs))
    replace_by(op, total, w.insert(arith.CmpiOp("ult", total, op.lhs)))


def _multiply_extended(
    op: arith_extended.MulsiExtendedOp | arith_extended.MuluiExtendedOp,
) -> None:
    """The product, and what does not fit into it."""
    w, type_ = in_place_of(op), op.lhs.type
    signed = isinstance(op, arith_extended.MulsiExtendedOp)
    low = w.insert(arith.MuliOp(op.lhs, op.rhs))
    bits = integer_width(element_type(type_)) or 64
    if bits < 64:
        wide = with_element(type_, i64)
        extend = arith.ExtsiOp if signed else arith.ExtuiOp
        left, right = (w.insert(extend(v, wide)) for v in (op.lhs, op.rhs))
        whole = w.insert(arith.MuliOp(left, right))
        high = w.insert(arith.ShruiOp(whole, constant(w, bits, wide)))
        replace_by(op, low, w.insert(arith.TrunciOp(high, type_)))
        return
    high = _high_half(w, op.lhs, op.rhs)
    if signed:
        zero = constant(w, 0, type_)
        for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            negative = w.insert(arith.CmpiOp("slt", one, zero))
            less = w.insert(arith.SelectOp(negative, other, zero))
            high = w.insert(arith.SubiOp(high, less))
    replace_by(op, low, high)


def _high_half(w: Writer, left: SSAValue, right: SSAValue) -> SSAValue:
    """The upper 64 bits of a product without sign, from products of halves."""
    type_ = left.type
    mask, half = constant(w, 0xFFFFFFFF, type_), constant(w, 32, type_)

    def low(value: SSAValue) -> SSAValue:
        return w.insert(arith.AndiOp(value, mask))

    def high(value: SSAValue) -> SSAValue:
        return w.insert(arith.ShruiOp(value, half))

    def product(a: SSAValue, b: SSAValue) -> SSAValue:
        return w.insert(arith.MuliOp(a, b))

    def total(*values: SSAValue) -> SSAValue:
        return reduce(lambda a, b: w.insert(arith.AddiOp(a, b)), values)

    first = high(product(low(left), low(right)))
    middle = total(product(high(left), low(right)), first)
    other = total(product(low(left), high(right)), low(middle))
    return total(product(high(left), high(right)), high(middle), high(other))


# Floats -------------------------------------------------------------------------------


def _isnan(op: math_more.IsnanOp) -> None:
    w = in_place_of(op)
    replace_by(op, w.insert(arith.CmpfOp("uno", op.operand, op.operand)))


def _against_infinity(predicate: str) -> Callable[[Any], None]:
    def rule(op: Any) -> None:
        w = in_place_of(op)
        size = w.insert(math.AbsfOp(op.operand))
        limit = constant(w, float("inf"), op.operand.type)
        replace_by(op, w.insert(arith.CmpfOp(predicate, size, limit)))

    return rule


def _clampf(op: math_more.ClampfOp) -> None:
    w = in_place_of(op)
    above = w.insert(arith.MaximumfOp(op.value, op.min))
    replace_by(op, w.insert(arith.MinimumfOp(above, op.max)))


def _fpowi(op: math_more.FpowiOp) -> None:
    """In f64, which holds every i32."""
    w, type_ = in_place_of(op), op.result.type
    wide = with_element(type_, f64)
    is_wide = isinstance(element_type(type_), Float64Type)
    base = op.lhs if is_wide else w.insert(arith.ExtfOp(op.lhs, wide))
    exponent = w.insert(arith.SitofpOp(op.rhs, wide))
    power = w.insert(math.PowfOp(base, exponent))
    replace_by(op, power if is_wide else w.insert(arith.TruncfOp(power, type_)))


def _sincos(op: math_more.SincosOp) -> None:
    w = in_place_of(op)
    sine, cosine = (w.insert(cls(op.operand)) for cls in (math.SinOp, math.CosOp))
    replace_by(op, sine, cosine)


def _poison(op: ub.PoisonOp) -> None:
    """Nobody may look at it."""
    element = element_type(op.result.type)
    if isinstance(element, AnyFloat) or integer_width(element) is not None:
        replace_by(op, constant(in_place_of(op), 0, op.result.type))


RULES: dict[type[Operation], Callable[[Any], None]] = {
    affine.ApplyOp: _apply,
    affine.MinOp: _extreme(arith.MinsiOp),
    affine.MaxOp: _extreme(arith.MaxsiOp),
    arith_extended.AdduiExtendedOp: _add_extended,
    arith_extended.MulsiExtendedOp: _multiply_extended,
    arith_extended.MuluiExtendedOp: _multiply_extended,
    math_more.IsnanOp: _isnan,
    math_more.IsinfOp: _against_infinity("oeq"),
    math_more.IsfiniteOp: _against_infinity("olt"),
    math_more.ClampfOp: _clampf,
    math_more.FpowiOp: _fpowi,
    math_more.SincosOp: _sincos,
    ub.PoisonOp: _poison,
}

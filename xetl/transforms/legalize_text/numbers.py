"""Expand functions of numbers, affine functions and shuffles to simpler operations.

Float tests, carries and long products become arithmetic. Affine functions become
arithmetic on index values. Shuffles and outer products of vectors become shape casts,
slices and broadcasts.
Source: MLIR, affine expressions.
"""

from __future__ import annotations

import math as m
from itertools import product
from typing import Any, TypeAlias

from xdsl.dialects.builtin import IndexType, VectorType, i1
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.base import is_vector, vector_type
from xetl.dialects.reduction_kinds import CombiningKindAttr
from xetl.dialects.upstream import affine, arith, index, math, ub, vector
from xetl.dialects.upstream.elementwise import is_float
from xetl.ir.builder import Builder, upper_half
from xetl.transforms.canonicalize.folding import AS_ARITH
from xetl.transforms.rewriting import Rule, Values


def _against_infinity(predicate: str) -> Rule:
    def expand(b: Builder, op: Any) -> Values:
        size = b.insert(math.AbsfOp(op.operand))
        infinity = b.constant(m.inf, op.operand.type)
        return [b.insert(arith.CmpfOp(predicate, size, infinity))]

    return expand


def _clampf(b: Builder, op: math.ClampfOp) -> Values:
    low = b.insert(arith.MaximumfOp(op.value, op.min))
    return [b.insert(arith.MinimumfOp(low, op.max))]


def _fpowi(b: Builder, op: math.FpowiOp) -> Values:
    power = b.insert(arith.SitofpOp(op.rhs, op.lhs.type))
    return [b.insert(math.PowfOp(op.lhs, power))]


def _sincos(b: Builder, op: math.SincosOp) -> Values:
    sine = b.insert(math.SinOp(op.operand))
    return [sine, b.insert(math.CosOp(op.operand))]


def _addui_extended(b: Builder, op: arith.AdduiExtendedOp) -> Values:
    total = b.insert(arith.AddiOp(op.lhs, op.rhs))
    return [total, b.insert(arith.CmpiOp("ult", total, op.lhs))]


def _mul_extended(b: Builder, op: arith.ExtendedProductOp) -> Values:
    low = b.insert(arith.MuliOp(op.lhs, op.rhs))
    return [low, upper_half(b, op.lhs, op.rhs, type(op) is arith.MulsiExtendedOp)]


def _column(b: Builder, value: SSAValue) -> SSAValue:
    """``v[..., None]``."""
    type_ = vector_type(value)
    shape = [*type_.get_shape(), 1]
    return b.insert(vector.ShapeCastOp(value, VectorType(type_.element_type, shape)))


def _deinterleave(b: Builder, op: vector.DeinterleaveOp) -> Values:
    half = op.results[0].type
    assert is_vector(half)
    shape = half.get_shape()
    outer = len(shape) - 1
    strides, first = [1] * outer + [2], [0] * outer
    parts = [
        vector.ExtractStridedSliceOp(op.source, [*first, n], shape, strides)
        for n in (0, 1)
    ]
    return [b.insert(part) for part in parts]


def _outerproduct(b: Builder, op: vector.OuterproductOp) -> Values:
    kind = op.kind
    if isinstance(kind, CombiningKindAttr) and kind.kind != "add":
        raise VerifyException(f"an outer product is added, not `{kind.kind}`")
    type_ = op.result.type
    left = op.lhs if not is_vector(op.rhs.type) else _column(b, op.lhs)
    left = b.insert(vector.BroadcastOp(left, type_))
    right = b.insert(vector.BroadcastOp(op.rhs, type_))
    floats = is_float(type_)
    times = arith.MulfOp if floats else arith.MuliOp
    plus = arith.AddfOp if floats else arith.AddiOp
    found = b.insert(times(left, right))
    if op.acc is not None:
        found = b.insert(plus(found, op.acc))
    return [found]


def _position(b: Builder, given: SSAValue | None) -> list[SSAValue | int]:
    if given is None:
        return []
    if isinstance(given.type, IndexType):
        return [given]
    return [b.insert(arith.IndexCastOp(given, IndexType()))]


def _extractelement(b: Builder, op: vector.ExtractelementOp) -> Values:
    place = _position(b, op.position)
    return [b.insert(vector.ExtractOp(op.vector, place))]


def _insertelement(b: Builder, op: vector.InsertelementOp) -> Values:
    place = _position(b, op.position)
    return [b.insert(vector.InsertOp(op.source, op.dest, place))]


def _to_elements(b: Builder, op: vector.ToElementsOp) -> Values:
    places = product(*map(range, vector_type(op.source).get_shape()))
    return [b.insert(vector.ExtractOp(op.source, list(place))) for place in places]


AffineOp: TypeAlias = affine.ApplyOp | affine.MinOp | affine.MaxOp


def _evaluate(b: Builder, op: AffineOp, expression: AffineExpr) -> SSAValue:
    """Insert the operations of an expression of the map of ``op``; return its value."""
    if isinstance(expression, AffineDimExpr):
        return op.dimensions[expression.position]
    if isinstance(expression, AffineSymExpr):
        return op.symbols[expression.position]
    if isinstance(expression, AffineConstantExpr):
        return b.index(expression.value)
    if not isinstance(expression, AffineBinaryOpExpr):
        raise VerifyException(f"an affine expression of an unknown kind: {expression}")
    left = _evaluate(b, op, expression.lhs)
    right = _evaluate(b, op, expression.rhs)
    if expression.kind is not AffineBinaryOpKind.Mod:
        return b.insert(_AFFINE[expression.kind](left, right))
    # `mod` is never negative: it is the remainder of the floor division.
    quotient = b.insert(arith.FloordivsiOp(left, right))
    return b.insert(arith.SubiOp(left, b.insert(arith.MuliOp(quotient, right))))


_AFFINE = {
    AffineBinaryOpKind.Add: arith.AddiOp,
    AffineBinaryOpKind.Mul: arith.MuliOp,
    AffineBinaryOpKind.CeilDiv: arith.CeildivsiOp,
    AffineBinaryOpKind.FloorDiv: arith.FloordivsiOp,
}


def _extreme(b: Builder, op: affine.MinOp | affine.MaxOp) -> Values:
    choose = arith.MinsiOp if isinstance(op, affine.MinOp) else arith.MaxsiOp
    found, *others = [_evaluate(b, op, each) for each in op.map.data.results]
    for other in others:
        found = b.insert(choose(found, other))
    return [found]


_CASTS: dict[type[Operation], Any] = {
    index.CastsOp: arith.IndexCastOp,
    index.CastuOp: arith.IndexCastuiOp,
}
_INDEX_BITS = 64

INDEX_OPERATIONS: tuple[type[Operation], ...] = (
    *AS_ARITH,
    *_CASTS,
    index.ConstantOp,
    index.BoolConstantOp,
    index.CmpOp,
    index.SizeofOp,
)
"""The operations that `as_arith` takes: the whole dialect."""


def as_arith(op: Operation) -> Operation:
    """Return the operation of `arith` that does the same as one of `index`."""
    if isinstance(op, index.ConstantOp):
        return arith.ConstantOp.index(op.value.value.data)
    if isinstance(op, index.BoolConstantOp):
        return arith.ConstantOp.of(abs(op.value.value.data), i1)
    if isinstance(op, index.CmpOp):
        return arith.CmpiOp(op.predicate_name, op.lhs, op.rhs)
    if isinstance(op, index.SizeofOp):
        return arith.ConstantOp.index(_INDEX_BITS)
    if type(op) in _CASTS:
        return _CASTS[type(op)](op.operands[0], op.results[0].type)
    return AS_ARITH[type(op)](*op.operands)


RULES: dict[type[Operation], Rule] = {
    math.IsnanOp: lambda b, op: [b.insert(arith.CmpfOp("uno", op.operand, op.operand))],
    math.IsinfOp: _against_infinity("oeq"),
    math.IsfiniteOp: _against_infinity("olt"),
    math.ClampfOp: _clampf,
    math.FpowiOp: _fpowi,
    math.SincosOp: _sincos,
    arith.AdduiExtendedOp: _addui_extended,
    arith.MulsiExtendedOp: _mul_extended,
    arith.MuluiExtendedOp: _mul_extended,
    ub.PoisonOp: lambda b, op: [b.constant(0, op.result.type)],
    vector.DeinterleaveOp: _deinterleave,
    vector.OuterproductOp: _outerproduct,
    vector.SplatOp: lambda b, op: [
        b.insert(vector.BroadcastOp(op.input, op.result.type))
    ],
    vector.ExtractelementOp: _extractelement,
    vector.InsertelementOp: _insertelement,
    vector.ToElementsOp: _to_elements,
    **dict.fromkeys(INDEX_OPERATIONS, lambda b, op: [b.insert(as_arith(op))]),
    affine.ApplyOp: lambda b, op: [_evaluate(b, op, op.map.data.results[0])],
    affine.MinOp: _extreme,
    affine.MaxOp: _extreme,
}

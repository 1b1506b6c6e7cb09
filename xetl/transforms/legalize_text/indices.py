"""Affine functions as arithmetic on index values.  Source: MLIR, affine expressions."""

from __future__ import annotations

from typing import Any, TypeAlias

from xdsl.dialects.builtin import i1
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

from xetl.dialects.upstream import affine, arith, index
from xetl.ir.builder import Builder
from xetl.transforms.rewriting import Rule, Values

AffineOp: TypeAlias = affine.ApplyOp | affine.MinOp | affine.MaxOp


def _evaluate(b: Builder, op: AffineOp, expression: AffineExpr) -> SSAValue:
    """The value of an expression of the map of ``op``."""
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
    # `mod` is never negative: what flooring leaves over.
    quotient = b.insert(arith.FloordivsiOp(left, right))
    return b.insert(arith.SubiOp(left, b.insert(arith.MuliOp(quotient, right))))


_AFFINE = {
    AffineBinaryOpKind.Add: arith.AddiOp,
    AffineBinaryOpKind.Mul: arith.MuliOp,
    AffineBinaryOpKind.CeilDiv: arith.CeildivsiOp,
    AffineBinaryOpKind.FloorDiv: arith.FloordivsiOp,
}


def _apply(b: Builder, op: affine.ApplyOp) -> Values:
    return [_evaluate(b, op, op.map.data.results[0])]


def _extreme(b: Builder, op: affine.MinOp | affine.MaxOp) -> Values:
    choose = arith.MinsiOp if isinstance(op, affine.MinOp) else arith.MaxsiOp
    found, *others = [_evaluate(b, op, each) for each in op.map.data.results]
    for other in others:
        found = b.insert(choose(found, other))
    return [found]


_BINARY: dict[type[Operation], Any] = {
    index.AddOp: arith.AddiOp,
    index.SubOp: arith.SubiOp,
    index.MulOp: arith.MuliOp,
    index.DivsOp: arith.DivsiOp,
    index.DivuOp: arith.DivuiOp,
    index.CeildivsOp: arith.CeildivsiOp,
    index.CeildivuOp: arith.CeildivuiOp,
    index.FloordivsOp: arith.FloordivsiOp,
    index.RemsOp: arith.RemsiOp,
    index.RemuOp: arith.RemuiOp,
    index.MaxsOp: arith.MaxsiOp,
    index.MaxuOp: arith.MaxuiOp,
    index.MinsOp: arith.MinsiOp,
    index.MinuOp: arith.MinuiOp,
    index.ShlOp: arith.ShliOp,
    index.ShrsOp: arith.ShrsiOp,
    index.ShruOp: arith.ShruiOp,
    index.AndOp: arith.AndiOp,
    index.OrOp: arith.OriOp,
    index.XorOp: arith.XoriOp,
}
_CASTS: dict[type[Operation], Any] = {
    index.CastsOp: arith.IndexCastOp,
    index.CastuOp: arith.IndexCastuiOp,
}
_INDEX_BITS = 64

INDEX_OPERATIONS: tuple[type[Operation], ...] = (
    *_BINARY,
    *_CASTS,
    index.ConstantOp,
    index.BoolConstantOp,
    index.CmpOp,
    index.SizeofOp,
)
"""What `as_arith` takes: all of the dialect."""


def as_arith(op: Operation) -> Operation:
    """The operation of `arith` that is equal to one of `index`, on its operands."""
    if isinstance(op, index.ConstantOp):
        return arith.ConstantOp.index(op.value.value.data)
    if isinstance(op, index.BoolConstantOp):
        return arith.ConstantOp.integer(abs(op.value.value.data), i1)
    if isinstance(op, index.CmpOp):
        return arith.CmpiOp(op.predicate_name, op.lhs, op.rhs)
    if isinstance(op, index.SizeofOp):
        return arith.ConstantOp.index(_INDEX_BITS)
    if type(op) in _CASTS:
        return _CASTS[type(op)](op.operands[0], op.results[0].type)
    return _BINARY[type(op)](*op.operands)


def _index(b: Builder, op: Operation) -> Values:
    return [b.insert(as_arith(op))]


RULES: dict[type[Operation], Rule] = {
    **dict.fromkeys(INDEX_OPERATIONS, _index),
    affine.ApplyOp: _apply,
    affine.MinOp: _extreme,
    affine.MaxOp: _extreme,
}

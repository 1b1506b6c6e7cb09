"""Affine functions as arithmetic on index values.  Source: MLIR, affine expressions."""

from __future__ import annotations

from typing import TypeAlias

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

from xetl.dialects.upstream import affine, arith
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
        return b.insert(_BINARY[expression.kind](left, right))
    # `mod` is never negative: what flooring leaves over.
    quotient = b.insert(arith.FloordivsiOp(left, right))
    return b.insert(arith.SubiOp(left, b.insert(arith.MuliOp(quotient, right))))


_BINARY = {
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


RULES: dict[type[Operation], Rule] = {
    affine.ApplyOp: _apply,
    affine.MinOp: _extreme,
    affine.MaxOp: _extreme,
}

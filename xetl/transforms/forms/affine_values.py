"""Affine functions as arithmetic on index values.  Source: MLIR, affine expressions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType
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
from xetl.transforms.forms.steps import Expansion, Rule, Steps


class _Evaluation:
    """Writes down the value of an expression."""

    def __init__(
        self, dimensions: Sequence[SSAValue], symbols: Sequence[SSAValue]
    ) -> None:
        self.steps = Steps()
        self._dimensions = dimensions
        self._symbols = symbols

    def value(self, expression: AffineExpr) -> SSAValue:
        """The value of an expression."""
        if isinstance(expression, AffineDimExpr):
            return self._dimensions[expression.position]
        if isinstance(expression, AffineSymExpr):
            return self._symbols[expression.position]
        if isinstance(expression, AffineConstantExpr):
            return self.steps.number(expression.value, IndexType())
        if not isinstance(expression, AffineBinaryOpExpr):
            raise VerifyException(
                f"an affine expression of an unknown kind: {expression}"
            )
        left, right = self.value(expression.lhs), self.value(expression.rhs)
        return self._binary(expression.kind, left, right)

    def _binary(
        self, kind: AffineBinaryOpKind, left: SSAValue, right: SSAValue
    ) -> SSAValue:
        add = self.steps.add
        if kind is AffineBinaryOpKind.Add:
            return add(arith.AddiOp(left, right))
        if kind is AffineBinaryOpKind.Mul:
            return add(arith.MuliOp(left, right))
        if kind is AffineBinaryOpKind.CeilDiv:
            return add(arith.CeildivsiOp(left, right))
        quotient = add(arith.FloordivsiOp(left, right))
        if kind is AffineBinaryOpKind.FloorDiv:
            return quotient
        # `mod` is never negative: what flooring leaves over.
        return add(arith.SubiOp(left, add(arith.MuliOp(quotient, right))))


def _apply(op: affine.ApplyOp) -> Expansion:
    evaluation = _Evaluation(op.dimensions, op.symbols)
    found = evaluation.value(op.map.data.results[0])
    return evaluation.steps.done(found)


def _extreme(op: affine.MinOp | affine.MaxOp) -> Expansion:
    evaluation = _Evaluation(op.dimensions, op.symbols)
    choose = arith.MinsiOp if isinstance(op, affine.MinOp) else arith.MaxsiOp
    found, *others = [evaluation.value(each) for each in op.map.data.results]
    for other in others:
        found = evaluation.steps.add(choose(found, other))
    return evaluation.steps.done(found)


RULES: dict[type[Operation], Rule] = {
    affine.ApplyOp: _apply,
    affine.MinOp: _extreme,
    affine.MaxOp: _extreme,
}

"""Emission of ``math``.

LLVM's intrinsics where the hardware has the operation, else the functions of the
backend (`Emitter.math`).
"""

from __future__ import annotations

from typing import Any

from xetl.codegen.arith import in_f32, suffix
from xetl.codegen.emitter import Emit, Emitter
from xetl.codegen.llvm import ll
from xetl.dialects.upstream import math

_INTRINSICS = {
    math.SqrtOp: "sqrt",
    math.FloorOp: "floor",
    math.CeilOp: "ceil",
    math.RoundevenOp: "roundeven",
    math.TruncOp: "trunc",
    math.AbsfOp: "fabs",
    math.FmaOp: "fma",
}
_FUNCTIONS = {
    math.ExpOp: "exp",
    math.Exp2Op: "exp2",
    math.LogOp: "log",
    math.Log2Op: "log2",
    math.TanhOp: "tanh",
    math.ErfOp: "erf",
    math.SinOp: "sin",
    math.CosOp: "cos",
    math.PowfOp: "pow",
}


def _intrinsic(name: str) -> Emit:
    def emit(em: Emitter, op: Any) -> None:
        def compute(args: list[Any]) -> Any:
            type_ = args[0].type
            return em.intrinsic(f"llvm.{name}.{suffix(type_)}", type_, args)

        em.set(op.result, in_f32(em, op.result.type, compute, *em.all(op.operands)))

    return emit


def _function(name: str) -> Emit:
    def emit(em: Emitter, op: Any) -> None:
        def compute(args: list[Any]) -> Any:
            type_ = args[0].type
            element = getattr(type_, "element", type_)
            function = em.math(name, element, getattr(type_, "count", 1))
            return em.builder.call(function, args)

        em.set(op.result, in_f32(em, op.result.type, compute, *em.all(op.operands)))

    return emit


def _rsqrt(em: Emitter, op: math.RsqrtOp) -> None:
    def compute(args: list[Any]) -> Any:
        type_ = args[0].type
        root = em.intrinsic(f"llvm.sqrt.{suffix(type_)}", type_, args)
        count = getattr(type_, "count", None)
        one = ll.Constant(type_, [1.0] * count if count else 1.0)
        return em.builder.fdiv(one, root)

    em.set(op.result, in_f32(em, op.result.type, compute, *em.all(op.operands)))


def _absi(em: Emitter, op: math.AbsiOp) -> None:
    (value,) = em.all(op.operands)
    wraps = ll.Constant(ll.IntType(1), 0)
    name = f"llvm.abs.{suffix(value.type)}"
    em.set(op.result, em.intrinsic(name, value.type, [value, wraps]))


TABLE: dict[Any, Emit] = {
    **{cls: _intrinsic(name) for cls, name in _INTRINSICS.items()},
    **{cls: _function(name) for cls, name in _FUNCTIONS.items()},
    math.RsqrtOp: _rsqrt,
    math.AbsiOp: _absi,
}

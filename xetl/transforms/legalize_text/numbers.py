"""Functions of numbers: tests, carries, long products."""

from __future__ import annotations

import math as m
from typing import Any

from xdsl.ir import Operation

from xetl.dialects.upstream import arith, math, ub
from xetl.dialects.upstream.arith import (
    AdduiExtendedOp,
    ExtendedProductOp,
    MulsiExtendedOp,
    MuluiExtendedOp,
)
from xetl.dialects.upstream.math import (
    ClampfOp,
    FloatTestOp,
    FpowiOp,
    IsfiniteOp,
    IsinfOp,
    IsnanOp,
    SincosOp,
)
from xetl.ir.builder import Builder
from xetl.ir.products import upper_half
from xetl.transforms.rewriting import Rule, Values


def _isnan(b: Builder, op: FloatTestOp) -> Values:
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


def _mul_extended(b: Builder, op: ExtendedProductOp) -> Values:
    low = b.insert(arith.MuliOp(op.lhs, op.rhs))
    return [low, upper_half(b, op.lhs, op.rhs, type(op) is MulsiExtendedOp)]


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

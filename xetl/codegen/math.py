"""Emission of ``math``.

LLVM's intrinsics where the hardware has the operation, else the functions of the
backend (`Emitter.math`), else the C library's, element by element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xetl.codegen.arith import emits_in_f32, suffix
from xetl.codegen.emitter import Emit, EmitTable, Emitter, emits
from xetl.codegen.types import F32, I32, Value, declare, element_of, ll, repeated
from xetl.dialects.operation import XetlOp
from xetl.dialects.upstream import arith, math


def _by_name(*ops: type[XetlOp]) -> dict[type[XetlOp], str]:
    """Return the operations and their names, which MLIR, LLVM and C share."""
    return {op: op.name.partition(".")[2] for op in ops}


_INTRINSICS = {
    **_by_name(math.SqrtOp, math.FloorOp, math.CeilOp, math.RoundevenOp, math.TruncOp),
    **_by_name(math.CopysignOp, math.FmaOp, math.RoundOp, math.CtpopOp),
    math.AbsfOp: "fabs",
}
_DEFINED = {math.AbsiOp: "abs", **_by_name(math.CtlzOp, math.CttzOp)}
_FUNCTIONS = {
    **_by_name(math.AcosOp, math.AsinOp, math.AtanOp, math.Atan2Op, math.CosOp),
    **_by_name(math.CoshOp, math.SinOp, math.SinhOp, math.TanOp, math.TanhOp),
    **_by_name(math.ExpOp, math.Exp2Op, math.Expm1Op, math.LogOp, math.Log10Op),
    **_by_name(math.Log1pOp, math.Log2Op, math.CbrtOp, math.ErfOp),
    **{arith.RemfOp: "fmod", math.PowfOp: "pow"},
}
_LIBRARY = _by_name(math.AcoshOp, math.AsinhOp, math.AtanhOp, math.ErfcOp)
FUNCTIONS: dict[Any, str] = {**_FUNCTIONS, **_LIBRARY}
"""The C names of the elementary functions."""
LIBRARY = frozenset(name + end for name in _LIBRARY.values() for end in ("", "f"))
"""The C functions that emitted code may call."""


def intrinsic(name: str) -> Emit:
    """Emits a call of ``llvm.<name>``."""

    def compute(em: Emitter, *args: Value) -> Value:
        type_ = args[0].type
        return em.intrinsic(f"llvm.{name}.{suffix(type_)}", type_, args)

    return emits_in_f32(compute)


def function(name: str) -> Emit:
    """Emits a call of one of the backend's functions."""

    def compute(em: Emitter, *args: Value) -> Value:
        type_ = args[0].type
        found = em.math(name, element_of(type_), getattr(type_, "count", 1))
        return em.builder.call(found, args)

    return emits_in_f32(compute)


def _library(name: str) -> Emit:
    def compute(em: Emitter, *args: Value) -> Value:
        is_vector = isinstance(args[0].type, ll.VectorType)
        find = _lane_by_lane if is_vector else _c_function
        return em.builder.call(find(em, name, args), args)

    return emits_in_f32(compute)


def _c_function(em: Emitter, name: str, args: Sequence[Value]) -> Value:
    """The C function for scalars of a type."""
    type_ = args[0].type
    full = f"{name}f" if type_ == F32 else name
    return declare(em.module, full, type_, [type_] * len(args))


def _lane_by_lane(em: Emitter, name: str, args: Sequence[Value]) -> Value:
    """A function that calls the C function for each lane: many calls, but once."""
    type_ = args[0].type
    full = f"xetl_{name}_{suffix(type_)}"
    known = em.module.globals.get(full)
    if known is not None:
        return known
    signature = ll.FunctionType(type_, [type_] * len(args))
    made = ll.Function(em.module, signature, full)
    made.linkage = "internal"
    made.attributes.add("noinline")
    b = ll.IRBuilder(made.append_basic_block("entry"))
    result = repeated(type_, ll.Undefined)
    for lane in range(type_.count):
        each = [b.extract_element(arg, I32(lane)) for arg in made.args]
        value = b.call(_c_function(em, name, each), each)
        result = b.insert_element(result, value, I32(lane))
    b.ret(result)
    return made


def _rsqrt(em: Emitter, value: Value) -> Value:
    root = em.intrinsic(f"llvm.sqrt.{suffix(value.type)}", value.type, [value])
    return em.builder.fdiv(repeated(value.type, 1.0), root)


def _defined(name: str) -> Emit:
    """An intrinsic of integers that is asked to define all: zeros of 0, say."""

    def compute(em: Emitter, value: Value) -> Value:
        full = f"llvm.{name}.{suffix(value.type)}"
        return em.intrinsic(full, value.type, [value, ll.Constant(ll.IntType(1), 0)])

    return emits(compute)


def _ipowi(em: Emitter, base: Value, exponent: Value) -> Value:
    """By squaring, once for each bit; a negative exponent gives 1 / x, truncated."""
    b, type_ = em.builder, base.type
    zero, one, minus = (repeated(type_, number) for number in (0, 1, -1))
    is_negative = b.icmp_signed("<", exponent, zero)
    is_odd = b.icmp_signed("!=", b.and_(exponent, one), zero)
    sign = b.select(is_odd, minus, one)
    inverse = b.select(b.icmp_signed("==", base, minus), sign, zero)
    inverse = b.select(b.icmp_signed("==", base, one), one, inverse)
    result, left = one, exponent
    for _ in range(element_of(type_).width - 1):
        uses = b.icmp_signed("!=", b.and_(left, one), zero)
        result = b.select(uses, b.mul(result, base), result)
        base, left = b.mul(base, base), b.lshr(left, one)
    return b.select(is_negative, inverse, result)


TABLE: EmitTable = {
    **{cls: intrinsic(name) for cls, name in _INTRINSICS.items()},
    **{cls: function(name) for cls, name in _FUNCTIONS.items()},
    **{cls: _library(name) for cls, name in _LIBRARY.items()},
    **{cls: _defined(name) for cls, name in _DEFINED.items()},
    math.RsqrtOp: emits_in_f32(_rsqrt),
    math.IpowiOp: emits(_ipowi),
}

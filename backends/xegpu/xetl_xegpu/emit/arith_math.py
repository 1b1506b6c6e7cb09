"""Emission of `arith` and `math` where SPIR-V needs something else than a CPU.

* SPIR-V's booleans are no numbers.
* `fmin` and `fmax` prefer numbers to NaN.

`math` calls the functions of OpenCL C, whose accuracy is the language's. Full profile,
OpenCL C 3.0, table "Relative error as ULPs": at most 5 for what the language has, 16
for erf and pow; exp 3. Divisions and roots: see `quotient`. The error function of f32
is written out: that of Intel's compiler reads a table in memory for each element.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from xetl.codegen import arith as core
from xetl.codegen.arith import emits_in_f32, narrow
from xetl.codegen.emitter import Emit, splat
from xetl.codegen.math import FUNCTIONS
from xetl.codegen.types import (
    F32,
    I1,
    I8,
    I32,
    Type,
    Value,
    is_narrow_float,
    like,
    llvm_type,
    repeated,
)
from xetl.dialects.reduction_kinds import ON_FLOATS, ON_INTEGERS, SUMS
from xetl.dialects.upstream import arith, math
from xetl_xegpu.emit.builtins import function
from xetl_xegpu.emit.emitter import KernelEmitter, Table, combine
from xetl_xegpu.emit.opencl_types import opencl_type
from xetl_xegpu.emit.scalars import is_vector

_KINDS = {
    arith.SubiOp: "sub",
    **{on.operation: kind for kind, on in ON_INTEGERS.items() if on.on_bits != kind},
    **{on.operation: kind for kind, on in ON_FLOATS.items() if kind not in SUMS},
}


def is_bool(type_: Type) -> bool:
    """Whether it is of booleans, one or a vector."""
    return getattr(type_, "element", type_) == I1


def _combining(kind: str) -> Emit:
    def compute(em: KernelEmitter, left: Value, right: Value) -> Value:
        if kind != "sub":
            return combine(em, kind, left, right)
        same = em.builder.xor if is_bool(left.type) else em.builder.sub
        return same(left, right)

    return emits_in_f32(compute)


# Comparisons and choices ------------------------------------------------------------


def _cmpi(em: KernelEmitter, op: arith.CmpiOp) -> None:
    """Booleans are ordered as numbers of one bit."""
    b, predicate = em.builder, op.predicate_name
    left, right = em.all(op.operands)
    if is_bool(left.type) and predicate not in ("eq", "ne"):
        wide = like(left.type, I8)
        extend = b.sext if predicate.startswith("s") else b.zext
        left, right = extend(left, wide), extend(right, wide)
    is_signed = predicate.startswith("s") or predicate in ("eq", "ne")
    compare = b.icmp_signed if is_signed else b.icmp_unsigned
    em.set(op.result, compare(_SIGNS[predicate[-2:]], left, right))


_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _select(em: KernelEmitter, op: arith.SelectOp) -> None:
    """A single condition is spread: old SPIR-V has no other choice of vectors."""
    condition, one, other = em.all(op.operands)
    if is_vector(one) and condition.type == I1:
        condition = splat(em.builder, condition, one.type.count)
    em.set(op.result, em.builder.select(condition, one, other))


# Conversions ------------------------------------------------------------------------


def _int_to_float(name: str) -> Emit:
    """To the narrow floats without f64, which not every device has."""
    plain = core.TABLE[{"sitofp": arith.SitofpOp, "uitofp": arith.UitofpOp}[name]]

    def emit(em: KernelEmitter, op: Operation) -> None:
        (source,) = em.all(op.operands)
        width = getattr(source.type, "element", source.type).width
        if width == 1:
            _bool_to_float(em, op, -1.0 if name == "sitofp" else 1.0)
            return
        if not is_narrow_float(op.results[0].type) or width > I32.width:
            plain(em, op)
            return
        convert = getattr(em.builder, name)
        exact = source
        if width == I32.width:
            exact = core.shortened(em.builder, source, 8, 23, name == "uitofp")
        wide = convert(exact, like(source.type, F32))
        em.set(op.results[0], narrow(em, wide, op.results[0].type))

    return emit


def _bool_to_float(em: KernelEmitter, op: Operation, one: float) -> None:
    """By a choice: LLVM's backend stops at conversions of vectors of booleans."""
    type_ = op.results[0].type
    lowered = llvm_type(type_)
    is_narrow = is_narrow_float(type_)
    wide = core.with_f32_type(lowered) if is_narrow else lowered
    numbers = (repeated(wide, one), repeated(wide, 0.0))
    chosen = em.builder.select(em.get(op.operands[0]), *numbers)
    em.set(op.results[0], narrow(em, chosen, type_) if is_narrow else chosen)


def _trunci(em: KernelEmitter, op: arith.TrunciOp) -> None:
    """To booleans by a comparison: LLVM's backend stops at vectors of them."""
    (source,) = em.all(op.operands)
    b, lowered = em.builder, llvm_type(op.result.type)
    if not is_bool(lowered):
        em.set(op.result, b.trunc(source, lowered))
        return
    last = b.and_(source, repeated(source.type, 1))
    em.set(op.result, b.icmp_signed("!=", last, repeated(source.type, 0)))


def _function(name: str) -> Emit:
    def compute(em: KernelEmitter, *args: Value) -> Value:
        type_ = opencl_type(args[0].type)
        return em.call(function(name, type_, *[type_] * len(args)), args)

    return emits_in_f32(compute)


_ERF_NEAR = (
    *(-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1),
    *(-3.76125336e-1, 1.28379166e-1),
)
"""erf(x) / x - 1 by powers of x**2, from the highest, for sizes up to `_ERF_BORDER`."""
_ERF_FAR = (
    *(-1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2),
    *(-1.06777877e-1, -6.34846687e-1, -1.128717512),
)
"""log(1 - erf(x)) / x by powers of x, from the highest, for larger sizes."""
_ERF_BORDER = 475 / 512
_LOG2_E = 1.4426950408889634


def erf_of_f32(em: KernelEmitter, x: Value) -> Value:
    """Erf of f32, numbers or vectors; within 2 ulp where exp2 is.

    Source: N. Juffa, "Efficient and accurate implementation of erff()", a polynomial
    near 0 and one minus a power of e further out. 20 instructions on pvc.
    """
    b = em.builder

    def number(value: float) -> Value:
        return repeated(x.type, value)

    def call(name: str, *args: Value) -> Value:
        return em.intrinsic(f"llvm.{name}.{core.suffix(x.type)}", x.type, args)

    def polynomial(start: Value, coefficients: Sequence[float], at: Value) -> Value:
        for each in coefficients:
            start = call("fma", start, at, number(each))
        return start

    size, square = call("fabs", x), b.fmul(x, x)
    near = polynomial(number(_ERF_NEAR[0]), _ERF_NEAR[1:], square)
    near = call("fma", near, x, x)
    far = [each * _LOG2_E for each in _ERF_FAR]
    first, second = (
        call("fma", number(one), size, number(other))
        for one, other in (far[:2], far[2:4])
    )
    power = polynomial(call("fma", first, square, second), far[4:], size)
    type_ = opencl_type(x.type)
    exp2 = function("exp2", type_, type_)
    rest = b.fsub(number(1.0), em.call(exp2, [b.fmul(power, size)]))
    # Not `copysign`, which takes a sign away first that the rest has not.
    bits = like(x.type, I32)
    sign = b.and_(b.bitcast(x, bits), repeated(bits, -(1 << 31)))
    outer = b.bitcast(b.or_(b.bitcast(rest, bits), sign), x.type)
    is_far = b.fcmp_ordered(">", size, number(_ERF_BORDER))
    return b.select(is_far, outer, near)


def _erf(em: KernelEmitter, x: Value) -> Value:
    if getattr(x.type, "element", x.type) == F32:
        return erf_of_f32(em, x)
    type_ = opencl_type(x.type)
    return em.call(function("erf", type_, type_), [x])


TABLE: Table = {
    **{cls: _combining(kind) for cls, kind in _KINDS.items()},
    arith.CmpiOp: _cmpi,
    arith.SelectOp: _select,
    arith.TrunciOp: _trunci,
    arith.SitofpOp: _int_to_float("sitofp"),
    arith.UitofpOp: _int_to_float("uitofp"),
    **{cls: _function(name) for cls, name in FUNCTIONS.items()},
    math.ErfOp: emits_in_f32(_erf),
}

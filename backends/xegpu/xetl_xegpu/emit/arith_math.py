"""Emission of those `arith` and `math` operations that SPIR-V needs in another form.

* SPIR-V's booleans are not numbers.
* `fmin` and `fmax` return the number if the other operand is NaN.

`math` calls the functions of OpenCL C, and the language promises their accuracy. Full
profile, OpenCL C 3.0, table "Relative error as ULPs": at most 5 for the functions of
the language, but 16 for erf and pow, and 3 for exp. For divisions and roots see
`quotient`. The error function of f32 is written out here, because the function of
Intel's compiler reads a table in memory for each element.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from xetl.codegen import arith as core
from xetl.codegen import types
from xetl.codegen.arith import emits_in_f32, narrow
from xetl.codegen.emitter import Emit, EmitTable, splat
from xetl.codegen.math import FUNCTIONS
from xetl.dialects.reduction_kinds import ON_FLOATS, ON_INTEGERS, SUMS
from xetl.dialects.upstream import arith, math
from xetl_xegpu.emit.emitter import KernelEmitter, combine, elementary
from xetl_xegpu.emit.scalars import is_vector

_KINDS = {
    arith.SubiOp: "sub",
    **{on.operation: kind for kind, on in ON_INTEGERS.items() if on.on_bits != kind},
    **{on.operation: kind for kind, on in ON_FLOATS.items() if kind not in SUMS},
}


def is_bool(type_: types.Type) -> bool:
    """Whether a type is a boolean or a vector of booleans."""
    return types.element_of(type_) == types.I1


def _combining(kind: str) -> Emit:
    def compute(
        em: KernelEmitter, left: types.Value, right: types.Value
    ) -> types.Value:
        if kind != "sub":
            return combine(em, kind, left, right)
        same = em.builder.xor if is_bool(left.type) else em.builder.sub
        return same(left, right)

    return emits_in_f32(compute)


# Comparisons and choices ------------------------------------------------------------


def _cmpi(em: KernelEmitter, op: arith.CmpiOp) -> None:
    """Compare integers; booleans are ordered as numbers of one bit."""
    b, predicate = em.builder, op.predicate_name
    left, right = em.all(op.operands)
    if is_bool(left.type) and predicate not in ("eq", "ne"):
        wide = types.like(left.type, types.I8)
        extend = b.sext if predicate.startswith("s") else b.zext
        left, right = extend(left, wide), extend(right, wide)
    em.set(op.result, core.compare_integers(em, predicate, left, right))


def _select(em: KernelEmitter, op: arith.SelectOp) -> None:
    """Broadcast a scalar condition: old SPIR-V selects vectors only by a vector."""
    condition, one, other = em.all(op.operands)
    if is_vector(one) and condition.type == types.I1:
        condition = splat(em.builder, condition, one.type.count)
    em.set(op.result, em.builder.select(condition, one, other))


# Conversions ------------------------------------------------------------------------


def _int_to_float(name: str) -> Emit:
    """Convert to narrow floats without f64, because not every device has f64."""
    plain = core.TABLE[{"sitofp": arith.SitofpOp, "uitofp": arith.UitofpOp}[name]]

    def emit(em: KernelEmitter, op: Operation) -> object:
        (source,) = em.all(op.operands)
        width = types.element_of(source.type).width
        if width == 1:
            return _bool_to_float(em, op, -1.0 if name == "sitofp" else 1.0)
        if not types.is_narrow_float(op.results[0].type) or width > types.I32.width:
            return plain(em, op)
        if width == types.I32.width:
            source = core.shortened(em.builder, source, 8, 23, name == "uitofp")
        convert = getattr(em.builder, name)
        wide = convert(source, types.like(source.type, types.F32))
        return narrow(em, wide, op.results[0].type)

    return emit


def _bool_to_float(em: KernelEmitter, op: Operation, one: float) -> types.Value:
    """Convert by a select: LLVM's backend aborts on conversions of boolean vectors."""
    type_ = op.results[0].type
    lowered = types.llvm_type(type_)
    is_narrow = types.is_narrow_float(type_)
    wide = types.like(lowered, types.F32) if is_narrow else lowered
    numbers = (types.repeated(wide, one), types.repeated(wide, 0.0))
    chosen = em.builder.select(em.get(op.operands[0]), *numbers)
    return narrow(em, chosen, type_) if is_narrow else chosen


def _trunci(em: KernelEmitter, op: arith.TrunciOp) -> None:
    """Truncate to booleans by a comparison: LLVM's backend aborts on their vectors."""
    (source,) = em.all(op.operands)
    b, lowered = em.builder, types.llvm_type(op.result.type)
    if not is_bool(lowered):
        em.set(op.result, b.trunc(source, lowered))
        return
    last = b.and_(source, types.repeated(source.type, 1))
    em.set(op.result, b.icmp_signed("!=", last, types.repeated(source.type, 0)))


def _function(name: str) -> Emit:
    def compute(em: KernelEmitter, *args: types.Value) -> types.Value:
        return elementary(em, name, *args)

    return emits_in_f32(compute)


_ERF_NEAR = (
    *(-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1),
    *(-3.76125336e-1, 1.28379166e-1),
)
"""erf(x) / x - 1 as a polynomial in x**2, highest power first, for |x| up to
`_ERF_BORDER`."""
_ERF_FAR = (
    *(-1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2),
    *(-1.06777877e-1, -6.34846687e-1, -1.128717512),
)
"""log(1 - erf(x)) / x as a polynomial in x, highest power first, for larger |x|."""
_ERF_BORDER = 475 / 512
_LOG2_E = 1.4426950408889634


def erf_of_f32(em: KernelEmitter, x: types.Value) -> types.Value:
    """Compute erf of an f32 or a vector of f32, within 2 ulp if exp2 is that exact.

    Source: N. Juffa, "Efficient and accurate implementation of erff()": a polynomial
    near 0, and one minus a power of e for larger |x|. 20 instructions on pvc.
    """
    b = em.builder

    def number(value: float) -> types.Value:
        return types.repeated(x.type, value)

    def call(name: str, *args: types.Value) -> types.Value:
        return em.intrinsic(f"llvm.{name}.{core.suffix(x.type)}", x.type, args)

    def polynomial(
        start: types.Value, coefficients: Sequence[float], at: types.Value
    ) -> types.Value:
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
    rest = b.fsub(number(1.0), elementary(em, "exp2", b.fmul(power, size)))
    # `copysign` would first clear the sign of `rest`, which is never negative.
    bits = types.like(x.type, types.I32)
    sign = b.and_(b.bitcast(x, bits), types.repeated(bits, -(1 << 31)))
    outer = b.bitcast(b.or_(b.bitcast(rest, bits), sign), x.type)
    is_far = b.fcmp_ordered(">", size, number(_ERF_BORDER))
    return b.select(is_far, outer, near)


def _erf(em: KernelEmitter, x: types.Value) -> types.Value:
    if types.element_of(x.type) == types.F32:
        return erf_of_f32(em, x)
    return elementary(em, "erf", x)


TABLE: EmitTable = {
    **{cls: _combining(kind) for cls, kind in _KINDS.items()},
    arith.CmpiOp: _cmpi,
    arith.SelectOp: _select,
    arith.TrunciOp: _trunci,
    arith.SitofpOp: _int_to_float("sitofp"),
    arith.UitofpOp: _int_to_float("uitofp"),
    **{cls: _function(name) for cls, name in FUNCTIONS.items()},
    math.ErfOp: emits_in_f32(_erf),
}

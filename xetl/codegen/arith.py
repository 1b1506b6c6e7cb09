"""Emission of ``arith``: scalars and rank-1 vectors.

f16 and bf16 are computed in f32 and rounded once for each operation, as the language
says; f32 and f64 may contract a multiplication and an addition into one fma.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation

from xetl.codegen import division, types
from xetl.codegen.emitter import Emit, EmitTable, Emitter, emits
from xetl.dialects.base import is_dense, is_vector
from xetl.dialects.literals import splat_value
from xetl.dialects.upstream import arith

_INT = {
    arith.AddiOp: "add",
    arith.SubiOp: "sub",
    arith.MuliOp: "mul",
    arith.AndiOp: "and_",
    arith.OriOp: "or_",
    arith.XoriOp: "xor",
    arith.ShliOp: "shl",
    arith.ShrsiOp: "ashr",
    arith.ShruiOp: "lshr",
}
_FLOAT = {
    arith.AddfOp: "fadd",
    arith.SubfOp: "fsub",
    arith.MulfOp: "fmul",
    arith.DivfOp: "fdiv",
}
_MINMAX = {
    arith.MaximumfOp: "maximum",
    arith.MinimumfOp: "minimum",
    arith.MaxnumfOp: "maxnum",
    arith.MinnumfOp: "minnum",
    arith.MaxsiOp: "smax",
    arith.MinsiOp: "smin",
    arith.MaxuiOp: "umax",
    arith.MinuiOp: "umin",
}
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def suffix(type_: types.Type) -> str:
    """How an intrinsic's name spells a type: ``v16f32``."""
    if isinstance(type_, types.ll.VectorType):
        return f"v{type_.count}{suffix(type_.element)}"
    return type_.intrinsic_name


def _method(name: str) -> Emit:
    def compute(em: Emitter, *values: types.Value) -> types.Value:
        return getattr(em.builder, name)(*values)

    return emits(compute)


def in_f32(
    em: Emitter, type_: Attribute, compute: Callable[..., types.Value], *args: Any
) -> types.Value:
    """Compute on f32 copies of f16/bf16 values and round once; others as they are."""
    if not types.is_narrow_float(type_):
        return compute(*args)
    split = em.splits(args[0])
    result = compute(*[widen(em, arg, split=split) for arg in args])
    return narrow(em, result, type_, split=split)


def emits_in_f32(compute: Callable[..., types.Value]) -> Emit:
    """As `emits`; f16 and bf16 are computed in f32."""

    def emit(em: Emitter, op: Operation) -> types.Value:
        values = em.all(op.operands)
        return in_f32(em, op.results[0].type, partial(compute, em), *values)

    return emit


def widen(em: Emitter, value: types.Value, *, split: bool = False) -> types.Value:
    """f16 or bf16 (as bits) as f32: exact.

    ``split``: elements at even places come first, those at odd ones behind them.
    """
    b, wide = em.builder, types.like(value.type, types.F32)
    if types.element_of(value.type) != types.I16:
        return b.fpext(value, wide)
    bits = types.like(value.type, types.I32)
    if split:
        pairs = types.ll.VectorType(types.I32, bits.count // 2)
        both = b.bitcast(value, pairs)
        even = b.shl(both, types.repeated(pairs, 16))
        odd = b.and_(both, types.repeated(pairs, -1 << 16))
        order = types.ll.Constant(bits, list(range(bits.count)))
        return b.bitcast(b.shuffle_vector(even, odd, order), wide)
    return b.bitcast(b.shl(b.zext(value, bits), types.repeated(bits, 16)), wide)


def narrow(
    em: Emitter, value: types.Value, type_: Attribute, *, split: bool = False
) -> types.Value:
    """f32 rounded to nearest even as f16 or bf16; ``split``: undoes that of `widen`."""
    to = types.llvm_type(type_)
    if not types.is_bfloat(type_):
        return em.builder.fptrunc(value, to)
    if em.lower_bf16:
        bfloat = em.builder.fptrunc(value, types.like(to, types.BF16))
        return em.builder.bitcast(bfloat, to)
    own = em.round_to_bf16(value)
    if own is not None:
        return own
    return _round_split(em, value) if split else round_to_bf16(em.builder, value)


def round_to_bf16(b: types.Builder, value: types.Value) -> types.Value:
    """RNE on the bits, for targets where LLVM would call a library function.

    A NaN becomes the one with all bits set: one instruction where a choice takes two.
    """
    _, rounded = _rounded_bits(b, value, 16)
    is_nan = b.sext(b.fcmp_unordered("uno", value, value), rounded.type)
    upper = b.lshr(b.or_(rounded, is_nan), types.repeated(rounded.type, 16))
    return b.trunc(upper, types.like(value.type, types.I16))


def _rounded_bits(
    b: types.Builder, value: types.Value, dropped: int
) -> tuple[types.Value, types.Value]:
    """The bits of an f32, and with half of what is dropped added: to nearest even."""
    bits32 = types.like(value.type, types.I32)

    def const(number: int) -> types.Value:
        return types.repeated(bits32, number)

    bits = b.bitcast(value, bits32)
    odd = b.and_(b.lshr(bits, const(dropped)), const(1))
    return bits, b.add(bits, b.add(odd, const((1 << dropped - 1) - 1)))


def _round_split(em: Emitter, value: types.Value) -> types.Value:
    """The same of elements at even places and behind them those at odd ones.

    Blended, their upper halves are one register of the results rounded towards 0, their
    lower halves one of what was cut off: 12 operations for both, not 14. A result goes
    up if that is above 0x8000, or 0x8000 and the result is odd.
    """
    b, to = em.builder, types.like(value.type, types.I16)
    wide = types.like(value.type, types.I32)
    pairs = types.ll.VectorType(types.I32, to.count // 2)
    bits = b.bitcast(value, wide)
    is_nan = b.sext(b.fcmp_unordered("uno", value, value), wide)

    def const(number: int, type_: types.Type = to) -> types.Value:
        return types.repeated(type_, number)

    def half(source: types.Value, which: int) -> types.Value:
        lanes = [which * pairs.count + n for n in range(pairs.count)]
        return b.shuffle_vector(source, source, types.ll.Constant(pairs, lanes))

    def blended(low: types.Value, high: types.Value) -> types.Value:
        """16 bits of each lane: the lower ones of one, the upper ones of the other."""
        lanes = [n + n % 2 * to.count for n in range(to.count)]
        order = types.ll.Constant(types.like(to, types.I32), lanes)
        return b.shuffle_vector(b.bitcast(low, to), b.bitcast(high, to), order)

    even, odd = half(bits, 0), half(bits, 1)
    by = const(16, pairs)
    upper, lower = blended(b.lshr(even, by), odd), blended(even, b.shl(odd, by))
    is_even = b.and_(b.xor(upper, const(-1)), const(1))
    name = f"llvm.usub.sat.{suffix(to)}"
    over = em.intrinsic(name, to, [lower, is_even])
    rounded = b.add(upper, b.lshr(over, const(15)))
    return b.or_(rounded, blended(half(is_nan, 0), half(is_nan, 1)))


def round_to_tf32(b: types.Builder, value: types.Value) -> types.Value:
    """RNE on the bits to 10 bits of fraction; the result is an f32."""
    bits, rounded = _rounded_bits(b, value, 13)
    quiet = b.or_(bits, types.repeated(bits.type, 1 << 22))
    chosen = b.select(b.fcmp_unordered("uno", value, value), quiet, rounded)
    kept = b.and_(chosen, types.repeated(bits.type, -1 << 13))
    return b.bitcast(kept, value.type)


def _round_to_odd(em: Emitter, value: types.Value) -> types.Value:
    """f64 as f32 so that a further rounding gives what one rounding would give.

    An inexact result gets an odd last bit: it then lies on no boundary of a narrower
    type (Boldo and Melquiond, "When double rounding is odd").
    """
    b, bits = em.builder, types.like(value.type, types.I32)
    near = b.fptrunc(value, types.like(value.type, types.F32))
    back = b.fpext(near, value.type)
    name = f"llvm.fabs.{suffix(value.type)}"
    sizes = [em.intrinsic(name, value.type, [v]) for v in (back, value)]
    too_large = b.zext(b.fcmp_ordered(">", *sizes), bits)
    inexact = b.zext(b.fcmp_ordered("!=", back, value), bits)
    odd = b.or_(b.sub(b.bitcast(near, bits), too_large), inexact)
    return b.bitcast(odd, near.type)


ROUNDED = "xetl.rounded"
"""Marks an operation whose result is rounded, also if it could be part of an fma."""


def _float(name: str) -> Emit:
    def emit(em: Emitter, op: Operation) -> types.Value:
        type_ = op.results[0].type
        # A rounded f16 operation must not melt into its neighbour.
        is_rounded = types.is_narrow_float(type_) or ROUNDED in op.attributes
        flags = () if is_rounded else ("contract",)

        def compute(*args: types.Value) -> types.Value:
            return getattr(em.builder, name)(*args, flags=flags)

        return in_f32(em, type_, compute, *em.all(op.operands))

    return emit


_LARGEST_F32 = 3.4028235677973366e38
"""The least value that rounds to infinity in f32: the largest and half a step."""

UNSIGNED_ZERO = ("nsz",)
"""Fast-math flag for min and max: they may give either zero (3 instructions less)."""


def _minmax(name: str) -> Emit:
    def emit(em: Emitter, op: Operation) -> types.Value:
        type_ = op.results[0].type
        left, right = em.all(op.operands)
        if isinstance(op.operands[0].owner, type(op)):
            # Whether the left one is NaN is tested, on x86: a chain would wait for it.
            left, right = right, left
        return in_f32(em, type_, partial(extreme, em, name, type_), left, right)

    return emit


def extreme(em: Emitter, name: str, to: Attribute, *args: types.Value) -> types.Value:
    """The intrinsic of a minimum or maximum, whose result becomes a ``to``."""
    type_ = args[0].type
    if name in CHOICES and types.is_narrow_float(to):
        return chosen(em, CHOICES[name], *args)
    is_float = not isinstance(types.element_of(type_), types.ll.IntType)
    flags = UNSIGNED_ZERO if is_float else ()
    return em.intrinsic(f"llvm.{name}.{suffix(type_)}", type_, args, flags)


CHOICES = {"maxnum": ">", "minnum": "<"}
"""The comparison that `chosen` makes, by intrinsic."""


def chosen(
    em: Emitter, sign: str, left: types.Value, right: types.Value
) -> types.Value:
    """``maxnum`` of widened values: LLVM would narrow it, and f16 has no such code."""
    b = em.builder
    takes_left = b.fcmp_ordered(sign, left, right)
    no_right = b.fcmp_unordered("uno", right, right)
    return b.select(b.or_(takes_left, no_right), left, right)


def _negf(em: Emitter, value: types.Value) -> types.Value:
    return em.builder.fneg(value)


def compare_integers(
    em: Emitter, predicate: str, left: types.Value, right: types.Value
) -> types.Value:
    """By a predicate of ``arith.cmpi``."""
    b = em.builder
    compare = b.icmp_unsigned if predicate.startswith("u") else b.icmp_signed
    return compare(_SIGNS[predicate[-2:]], left, right)


def _cmpf(em: Emitter, op: arith.CmpfOp) -> types.Value:
    predicate = op.predicate_name
    operands = em.all(op.operands)
    if types.is_narrow_float(op.lhs.type):
        operands = [widen(em, operand) for operand in operands]
    if predicate in ("true", "false"):
        type_ = types.llvm_type(op.result.type)
        return types.repeated(type_, int(predicate == "true"))
    if predicate in ("ord", "uno"):
        ordered = predicate == "ord"
    else:
        ordered, predicate = predicate[0] == "o", _SIGNS[predicate[1:]]
    compare = em.builder.fcmp_ordered if ordered else em.builder.fcmp_unordered
    return compare(predicate, *operands)


def _cast(name: str, *, is_of_floats: bool = False) -> Emit:
    def emit(em: Emitter, op: Operation) -> types.Value:
        (source,) = em.all(op.operands)
        if is_of_floats and types.is_narrow_float(op.operands[0].type):
            source = widen(em, source)
        return getattr(em.builder, name)(source, types.llvm_type(op.results[0].type))

    return emit


def _extf(em: Emitter, op: arith.ExtfOp) -> types.Value:
    (source,) = em.all(op.operands)
    split = em.splits(source) and op.result in em.any_order
    is_narrow = types.is_narrow_float(op.operands[0].type)
    value = widen(em, source, split=split) if is_narrow else source
    to = types.llvm_type(op.result.type)
    return value if value.type == to else em.builder.fpext(value, to)


def _truncf(em: Emitter, op: arith.TruncfOp) -> types.Value:
    (source,) = em.all(op.operands)
    type_ = op.result.type
    if not types.is_narrow_float(type_):
        return em.builder.fptrunc(source, types.llvm_type(type_))
    if types.element_of(source.type) == types.F64:
        source = _round_to_odd(em, source)
    split = em.splits(source) and op.operands[0] in em.any_order
    return narrow(em, source, type_, split=split)


def _int_to_float(name: str) -> Emit:
    def emit(em: Emitter, op: Operation) -> types.Value:
        (source,) = em.all(op.operands)
        type_ = op.results[0].type
        convert = getattr(em.builder, name)
        if not types.is_narrow_float(type_):
            return convert(source, types.llvm_type(type_))
        # Through f64, which holds every i32: one rounding in all.
        exact = source
        if types.element_of(source.type) == types.I64:
            exact = shortened(em.builder, source, 12, 52, name == "uitofp")
        wide = _round_to_odd(em, convert(exact, types.like(source.type, types.F64)))
        return narrow(em, wide, type_)

    return emit


def shortened(
    b: types.Builder, value: types.Value, bits: int, exact: int, is_unsigned: bool
) -> types.Value:
    """An integer that a float holds, and that rounds to 16 bits as ``value`` does.

    Where it has more than ``exact`` bits, the last ``bits`` of them say only that it
    lies between two numbers.
    """
    type_, last = value.type, (1 << bits) - 1
    low = b.and_(value, types.repeated(type_, last))
    some = b.icmp_signed("!=", low, types.repeated(type_, 0))
    sticky = b.select(
        some, types.repeated(type_, 1 << (bits - 1)), types.repeated(type_, 0)
    )
    cut = b.or_(b.and_(value, types.repeated(type_, ~last)), sticky)
    shift = b.lshr if is_unsigned else b.ashr
    high = shift(value, types.repeated(type_, exact))
    small = b.icmp_signed("==", high, types.repeated(type_, 0))
    if not is_unsigned:
        minus = b.icmp_signed("==", high, types.repeated(type_, -1))
        small = b.or_(small, minus)
    return b.select(small, value, cut)


def _index_cast(extend: str) -> Emit:
    def emit(em: Emitter, op: Operation) -> types.Value:
        (source,) = em.all(op.operands)
        to = types.llvm_type(op.results[0].type)
        have, want = (types.element_of(each).width for each in (source.type, to))
        if have == want:
            return source
        return getattr(em.builder, extend if have < want else "trunc")(source, to)

    return emit


def _constant(em: Emitter, op: arith.ConstantOp) -> types.Value:
    type_, value = op.result.type, op.value
    if isinstance(value, IntegerAttr | FloatAttr):
        return scalar_constant(type_, value.value.data)
    assert is_dense(value)
    assert is_vector(type_)
    same = splat_value(value)
    if same is not None:
        scalar = scalar_constant(type_.element_type, same)
        return types.repeated(types.llvm_type(type_), scalar)
    scalars = [scalar_constant(type_.element_type, v) for v in value.get_values()]
    return types.ll.Constant(types.llvm_type(type_), scalars)


def scalar_constant(type_: Attribute, value: Any) -> types.ll.Constant:
    """A scalar constant; an i1 as LLVM wants it (0 or 1)."""
    lowered = types.scalar_type(type_)
    if types.is_bfloat(type_):
        value = _bfloat_bits(value)
    if isinstance(lowered, types.ll.IntType) and lowered.width == 1:
        value = int(bool(value))
    return types.ll.Constant(lowered, value)


def as_word(em: Emitter, value: types.Value, type_: Attribute) -> types.Value:
    """A number as an i64: an integer of that value, or the bits of an f64."""
    b = em.builder
    if isinstance(value.type, types.ll.IntType) and not types.is_narrow_float(type_):
        if value.type.width == types.I64.width:
            return value
        extend = b.zext if value.type.width == 1 else b.sext
        return extend(value, types.I64)
    if types.is_narrow_float(type_):
        value = widen(em, value)
    return b.bitcast(
        value if value.type == types.F64 else b.fpext(value, types.F64), types.I64
    )


def _bfloat_bits(value: float) -> int:
    """The 16 bits of a constant; f32 overflows and NaN come out as they should."""
    if value != value:
        return 0x7FC0
    if abs(value) >= _LARGEST_F32:
        value = math.copysign(math.inf, value)
    bits = int.from_bytes(struct.pack("<f", value), "little")
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


TABLE: EmitTable = {
    **division.TABLE,
    **{cls: _method(name) for cls, name in _INT.items()},
    **{cls: _float(name) for cls, name in _FLOAT.items()},
    **{cls: _minmax(name) for cls, name in _MINMAX.items()},
    arith.NegfOp: emits_in_f32(_negf),
    arith.CmpiOp: lambda em, op: compare_integers(
        em, op.predicate_name, *em.all(op.operands)
    ),
    arith.CmpfOp: _cmpf,
    arith.SelectOp: _method("select"),
    arith.ExtfOp: _extf,
    arith.TruncfOp: _truncf,
    arith.ExtsiOp: _cast("sext"),
    arith.ExtuiOp: _cast("zext"),
    arith.TrunciOp: _cast("trunc"),
    arith.SitofpOp: _int_to_float("sitofp"),
    arith.UitofpOp: _int_to_float("uitofp"),
    arith.FptosiOp: _cast("fptosi", is_of_floats=True),
    arith.FptouiOp: _cast("fptoui", is_of_floats=True),
    arith.IndexCastOp: _index_cast("sext"),
    arith.IndexCastuiOp: _index_cast("zext"),
    arith.BitcastOp: _cast("bitcast"),
    arith.ConstantOp: _constant,
}

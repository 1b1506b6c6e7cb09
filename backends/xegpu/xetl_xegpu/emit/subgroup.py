"""Emission of what lanes tell one another.

Values travel as integers of 32 or 64 bits: those every driver shuffles. Vectors go
element by element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import Attribute

from xetl.codegen.arith import narrow, widen
from xetl.codegen.emitter import Emit
from xetl.codegen.llvm import ll
from xetl.codegen.types import I1, I16, I32, I64, is_narrow_float
from xetl.dialects.base import element_type
from xetl_xegpu import simt
from xetl_xegpu.emit.builtins import function
from xetl_xegpu.emit.combining import combine
from xetl_xegpu.emit.emitter import KernelEmitter, Table
from xetl_xegpu.simt import SUBGROUP_SIZE

_STEPS = (1, 2, 4, 8)


def shuffle(em: KernelEmitter, value: Any, lane: Any) -> Any:
    """The number ``value`` as lane ``lane`` (i32, below 16) has it."""
    return _exchange(em, "intel_sub_group_shuffle", value, lane)


def _exchange(em: KernelEmitter, name: str, value: Any, which: Any) -> Any:
    """Call a shuffle of integers."""
    b, type_ = em.builder, value.type
    bits = _BITS.get(type(type_))
    if bits is not None:
        moved = _exchange(em, name, b.bitcast(value, bits), which)
        return b.bitcast(moved, type_)
    if type_.width < I32.width:
        wide = _exchange(em, name, b.zext(value, I32), which)
        if type_ == I1:
            return b.icmp_signed("!=", wide, I32(0))
        return b.trunc(wide, type_)
    scalar = "uint" if type_ == I32 else "ulong"
    return em.call(function(name, scalar, scalar, "uint"), [value, which])


_BITS: dict[Any, Any] = {ll.HalfType: I16, ll.FloatType: I32, ll.DoubleType: I64}


def each_element(em: KernelEmitter, value: Any, change: Callable[[Any], Any]) -> Any:
    """A vector of what becomes of each element; a number becomes one."""
    if not isinstance(value.type, ll.VectorType):
        return change(value)
    b, result = em.builder, None
    for index in range(value.type.count):
        changed = change(b.extract_element(value, I32(index)))
        if result is None:
            type_ = ll.VectorType(changed.type, value.type.count)
            result = ll.Constant(type_, ll.Undefined)
        result = b.insert_element(result, changed, I32(index))
    return result


def _shuffle(em: KernelEmitter, op: simt.ShuffleOp) -> None:
    value, lane = em.all([op.value, op.lane])
    lane = _existing_lane(em, lane)
    result = each_element(em, value, lambda part: shuffle(em, part, lane))
    em.set(op.result, result)


def _existing_lane(em: KernelEmitter, lane: Any) -> Any:
    """The lane as the language counts them: round and round.

    Of a constant it must be a constant: where LLVM's backend folds the operation itself
    it ends the process if the kernel has a loop of compare and exchange as well.
    """
    if isinstance(lane, ll.Constant):
        return I32(lane.constant % SUBGROUP_SIZE)
    return em.builder.and_(lane, I32(SUBGROUP_SIZE - 1))


def _over_lanes(fold: Callable[[KernelEmitter, str, Any], Any]) -> Emit:
    """Fold over lanes, in f32 for the narrow floats."""

    def emit(em: Any, op: Any) -> None:
        type_: Attribute = element_type(op.value.type)
        kind = op.kind.data

        def of_number(part: Any) -> Any:
            if not is_narrow_float(type_):
                return fold(em, kind, part)
            return narrow(em, fold(em, kind, widen(em, part)), type_)

        em.set(op.result, each_element(em, em.get(op.value), of_number))

    return emit


def _reduce(em: KernelEmitter, kind: str, value: Any) -> Any:
    """Each lane with the one whose number differs in a bit, for all bits."""
    for step in _STEPS:
        other = _exchange(em, "sub_group_shuffle_xor", value, I32(step))
        value = combine(em, kind, value, other)
    return value


def _scan(em: KernelEmitter, kind: str, value: Any) -> Any:
    """Each lane with those 1, 2, 4 and 8 before it (Hillis and Steele)."""
    b, lane = em.builder, em.lane()
    for step in _STEPS:
        before = b.and_(b.sub(lane, I32(step)), I32(SUBGROUP_SIZE - 1))
        combined = combine(em, kind, shuffle(em, value, before), value)
        value = b.select(b.icmp_unsigned(">=", lane, I32(step)), combined, value)
    return value


TABLE: Table = {
    simt.ShuffleOp: _shuffle,
    simt.ReduceOp: _over_lanes(_reduce),
    simt.ScanOp: _over_lanes(_scan),
}

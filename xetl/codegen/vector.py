"""Emission of ``vector`` on rank-1 vectors, memory accesses included.

Booleans: an i1 vector is LLVM's mask; in memory an i1 is one byte (NumPy's bool).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute

from xetl.codegen.arith import UNSIGNED_ZERO, narrow, suffix, widen
from xetl.codegen.emitter import (
    EmitTable,
    Emitter,
    Strided,
    constant,
    is_constant,
    splat,
)
from xetl.codegen.math import intrinsic
from xetl.codegen.types import (
    I32,
    I64,
    VOID,
    Type,
    Value,
    byte_width,
    is_narrow_float,
    ll,
    llvm_type,
    memory_type,
    repeated,
)
from xetl.dialects.base import constant_index, ints_of
from xetl.dialects.reduction_kinds import ON_FLOATS, ON_INTEGERS, SUMS
from xetl.dialects.upstream import arith, vector

_MOST_LANES = 1 << 12
"""More than a row of chunks that share a mask's number has."""


def _broadcast(em: Emitter, op: vector.BroadcastOp) -> Value:
    (source,) = em.all(op.operands)
    if isinstance(source.type, ll.VectorType):
        source = em.builder.extract_element(source, I32(0))
    return splat(em.builder, source, llvm_type(op.result.type).count)


def _step(em: Emitter, op: vector.StepOp) -> Value:
    return ll.Constant(llvm_type(op.result.type), em.lane_numbers(op.result))


def _position(em: Emitter, op: vector.ExtractOp | vector.InsertOp) -> Value:
    (position,) = op.position
    return I32(position) if isinstance(position, int) else em.get(position)


def _extract(em: Emitter, op: vector.ExtractOp) -> Value:
    return em.builder.extract_element(em.get(op.source), _position(em, op))


def _insert(em: Emitter, op: vector.InsertOp) -> Value:
    value, target = em.get(op.value), em.get(op.dest)
    return em.builder.insert_element(target, value, _position(em, op))


def _from_elements(em: Emitter, op: vector.FromElementsOp) -> Value:
    result = repeated(llvm_type(op.result.type), ll.Undefined)
    for index, element in enumerate(em.all(op.operands)):
        result = em.builder.insert_element(result, element, I32(index))
    return result


def _shuffle(em: Emitter, op: vector.ShuffleOp) -> Value:
    """Both vectors are of one length here: LLVM has no other shuffles."""
    left, right = em.all(op.operands)
    picked = [max(row, 0) for row in ints_of(op.mask)]  # -1 is any element
    mask = ll.Constant(ll.VectorType(I32, len(picked)), picked)
    return em.builder.shuffle_vector(left, right, mask)


def _bitcast(em: Emitter, op: vector.BitcastOp) -> Value:
    value, to = em.get(op.operands[0]), llvm_type(op.result.type)
    return value if value.type == to else em.builder.bitcast(value, to)


def _reduction(em: Emitter, op: vector.ReductionOp) -> Value:
    """A horizontal reduction; the order of a float sum is LLVM's (reassoc)."""
    value, kind, type_ = em.get(op.source), op.kind.kind, op.result.type
    is_narrow = is_narrow_float(type_)
    if not is_narrow and isinstance(value.type.element, ll.IntType):
        return _reduce(em, ON_INTEGERS[kind].llvm, value, ())
    value = widen(em, value) if is_narrow else value
    if kind in SUMS:
        result = _tree(em, ON_FLOATS[kind].llvm, value)
    else:
        result = _reduce(em, ON_FLOATS[kind].llvm, value, UNSIGNED_ZERO)
    return narrow(em, result, type_) if is_narrow else result


def _reduce(em: Emitter, name: str, value: Value, flags: Sequence[str]) -> Value:
    full = f"llvm.vector.reduce.{name}.{suffix(value.type)}"
    return em.intrinsic(full, value.type.element, [value], flags)


def _tree(em: Emitter, method: str, value: Value) -> Value:
    """Halve the vector until one lane is left; works for any power of two."""
    b = em.builder
    count = value.type.count
    while count > 1:
        count //= 2
        low = _half(em, value, range(count))
        high = _half(em, value, range(count, 2 * count))
        value = getattr(b, method)(low, high)
    return b.extract_element(value, I32(0))


def _half(em: Emitter, value: Value, lanes: range) -> Value:
    mask = ll.Constant(ll.VectorType(I32, len(lanes)), list(lanes))
    return em.builder.shuffle_vector(value, repeated(value.type, ll.Undefined), mask)


def _create_mask(em: Emitter, op: vector.CreateMaskOp) -> Value:
    """Lane i is set when i < bound; masks of one number less constants share that."""
    (bound,) = op.operands
    lanes, start = llvm_type(op.result.type).count, 0
    if isinstance(bound.owner, arith.SubiOp):
        less = constant_index(bound.owner.rhs)
        if less is not None and 0 <= less < _MOST_LANES:
            bound, start = bound.owner.lhs, less
    limit = splat(em.builder, clamp_to_i32(em, em.get(bound), 2 * _MOST_LANES), lanes)
    places = [start + number for number in em.lane_numbers(op.result)]
    numbers = ll.Constant(ll.VectorType(I32, lanes), places)
    return em.builder.icmp_signed("<", numbers, limit)


def clamp_to_i32(em: Emitter, value: Value, lanes: int) -> Value:
    """An index clamped to [0, lanes], as i32: cheaper to compare lane by lane."""
    low = em.intrinsic("llvm.smax.i64", I64, [value, constant(0)])
    return em.builder.trunc(
        em.intrinsic("llvm.smin.i64", I64, [low, constant(lanes)]), I32
    )


def _to_memory(em: Emitter, value: Value, element: Attribute) -> Value:
    """A vector as it is stored: masks become bytes."""
    stored = ll.VectorType(memory_type(element), value.type.count)
    return value if value.type == stored else em.builder.zext(value, stored)


def _from_memory(em: Emitter, value: Value, type_: VectorType[Attribute]) -> Value:
    """A loaded vector as a value: bytes become masks."""
    wanted = llvm_type(type_)
    if value.type == wanted:
        return value
    return em.builder.icmp_signed("!=", value, repeated(value.type, 0))


def _memory_vector(type_: VectorType[Attribute]) -> Type:
    return ll.VectorType(memory_type(type_.element_type), llvm_type(type_).count)


def _place(em: Emitter, op: Any) -> tuple[Strided, Value]:
    """The memref of an access of neighbours, and the address of the first one."""
    base = em.strided(op.base)
    assert is_constant(base.strides[-1], 1), "contiguous access to a strided memref"
    return base, em.element_address(base, em.all(op.indices))


def _load(em: Emitter, op: vector.LoadOp) -> Value:
    _, address = _place(em, op)
    type_ = op.result.type
    align = byte_width(type_.element_type)
    loaded = em.builder.load(address, typ=_memory_vector(type_), align=align)
    return _from_memory(em, loaded, type_)


def _store(em: Emitter, op: vector.StoreOp) -> None:
    value, (base, address) = em.get(op.operands[0]), _place(em, op)
    stored = _to_memory(em, value, base.element)
    if isinstance(op.operands[0].owner, arith.SelectOp):
        stored = em.chosen(stored)
    given, past = op.alignment, op.nontemporal
    if given is None or past is None or not past.value.data:
        em.builder.store(stored, address, align=byte_width(base.element))
        return
    # Of unknown alignment LLVM would store element by element.
    done = em.builder.store(stored, address, align=given.value.data)
    done.set_metadata("nontemporal", em.builder.module.add_metadata([I32(1)]))


def _maskedload(em: Emitter, op: vector.MaskedloadOp) -> Value:
    base, address = _place(em, op)
    type_ = op.result.type
    passed = _to_memory(em, em.get(op.pass_thru), type_.element_type)
    operands = [address, em.get(op.mask), passed]
    loaded = _masked_call(em, "load", _memory_vector(type_), operands, base)
    return _from_memory(em, loaded, type_)


def _maskedstore(em: Emitter, op: vector.MaskedstoreOp) -> None:
    base, address = _place(em, op)
    value = _to_memory(em, em.get(op.value), base.element)
    _masked_call(em, "store", VOID, [value, address, em.get(op.mask)], base)


def _masked_call(
    em: Emitter, what: str, result: Type, operands: list[Value], base: Strided
) -> Value:
    """Call a masked intrinsic; LLVM 22 takes the alignment as an attribute."""
    pointer = int(result is VOID)  # a store has the value in front of the address
    moved = operands[0].type if pointer else result
    name = f"llvm.masked.{what}.{suffix(moved)}.{suffix(operands[pointer].type)}"
    call: Any = em.intrinsic(name, result, operands)
    attributes = ll.values.ArgumentAttributes()
    attributes.align = byte_width(base.element)
    call.arg_attributes[pointer] = attributes
    return call


def _addresses(
    em: Emitter, base: Strided, op: vector.GatherOp | vector.ScatterOp, indices: Value
) -> Value:
    start = em.element_address(base, em.all(op.indices))
    lanes = indices.type.count
    wide = ll.VectorType(I64, lanes)
    if indices.type != wide:
        indices = em.builder.sext(indices, wide)
    stride = splat(em.builder, base.strides[-1], lanes)
    offsets = em.builder.mul(indices, stride)
    addresses = em.builder.gep(start, [offsets], source_etype=memory_type(base.element))
    # llvmlite types a gep by its base alone; a vector of offsets makes a vector.
    addresses.type = ll.VectorType(start.type, lanes)
    return addresses


def _gather(em: Emitter, op: vector.GatherOp) -> Value:
    base = em.strided(op.base)
    type_ = op.result.type
    addresses = _addresses(em, base, op, em.get(op.index_vec))
    memory = _memory_vector(type_)
    mask = given = em.get(op.mask)
    passed = _to_memory(em, em.get(op.pass_thru), type_.element_type)
    spare = em.spare_memory()
    if spare is not None:  # all lanes load, so that none needs a branch
        b, lanes = em.builder, memory.count
        addresses = b.select(given, addresses, splat(b, spare, lanes))
        mask = repeated(given.type, 1)
    loaded = _masked_call(em, "gather", memory, [addresses, mask, passed], base)
    if spare is not None:
        loaded = em.builder.select(given, loaded, passed)
    return _from_memory(em, loaded, type_)


def _scatter(em: Emitter, op: vector.ScatterOp) -> None:
    base = em.strided(op.base)
    addresses = _addresses(em, base, op, em.get(op.index_vec))
    value = _to_memory(em, em.get(op.value), base.element)
    _masked_call(em, "scatter", VOID, [value, addresses, em.get(op.mask)], base)


TABLE: EmitTable = {
    vector.BroadcastOp: _broadcast,
    vector.StepOp: _step,
    vector.ShapeCastOp: lambda em, op: em.get(op.source),
    vector.ExtractOp: _extract,
    vector.InsertOp: _insert,
    vector.FromElementsOp: _from_elements,
    vector.ShuffleOp: _shuffle,
    vector.BitcastOp: _bitcast,
    vector.FmaOp: intrinsic("fma"),
    vector.ReductionOp: _reduction,
    vector.CreateMaskOp: _create_mask,
    vector.LoadOp: _load,
    vector.StoreOp: _store,
    vector.MaskedloadOp: _maskedload,
    vector.MaskedstoreOp: _maskedstore,
    vector.GatherOp: _gather,
    vector.ScatterOp: _scatter,
}

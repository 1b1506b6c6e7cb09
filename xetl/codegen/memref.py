"""Emission of ``memref``: a memref is an address, sizes and strides in registers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.codegen.arith import extreme, in_f32
from xetl.codegen.emitter import EmitTable, Emitter, Strided, constant, multiply
from xetl.codegen.types import (
    I1,
    I8,
    I32,
    I64,
    VOID,
    Value,
    byte_width,
    ll,
    memory_type,
)
from xetl.dialects.base import operations_in
from xetl.dialects.memref_layout import strides_of
from xetl.dialects.reduction_kinds import ON_INTEGERS, normalize_kind
from xetl.dialects.upstream import memref, vector
from xetl.errors import InternalError


def static_strides(type_: MemRefType[Attribute]) -> list[int | None]:
    """Strides in elements as the type tells them; None where they are dynamic."""
    strides = strides_of(type_)
    if strides is None:
        raise InternalError(
            f"a memref with the layout {type_.layout} reached code generation"
        )
    return strides


def refine(base: Strided, type_: MemRefType[Attribute]) -> Strided:
    """Put in the constants that the type knows: they shorten every address."""
    sizes = [
        constant(size) if size >= 0 else have
        for size, have in zip(type_.get_shape(), base.sizes)
    ]
    strides = [
        have if step is None else constant(step)
        for step, have in zip(static_strides(type_), base.strides)
    ]
    return Strided(base.address, tuple(sizes), tuple(strides), base.element)


def _mixed(em: Emitter, static: Sequence[int | SSAValue]) -> list[Value]:
    return [constant(v) if isinstance(v, int) else em.get(v) for v in static]


def _metadata(em: Emitter, op: memref.ExtractStridedMetadataOp) -> None:
    base = em.strided(op.operands[0])
    scalar = Strided(base.address, (), (), base.element)
    rank = len(base.sizes)
    em.set(op.results[0], scalar)
    em.set(op.results[1], constant(0))
    for index in range(rank):
        em.set(op.results[2 + index], base.sizes[index])
        em.set(op.results[2 + rank + index], base.strides[index])


def _reinterpret_cast(em: Emitter, op: memref.ReinterpretCastOp) -> Strided:
    base = em.strided(op.operands[0])
    offsets, sizes, strides = (_mixed(em, part) for part in op.mixed_lists)
    address = em.element_address(
        Strided(base.address, (), (constant(1),), base.element), offsets
    )
    view = Strided(address, tuple(sizes), tuple(strides), base.element)
    return refine(view, op.result.type)


def _subview(em: Emitter, op: memref.SubviewOp) -> Strided:
    """A part of a view; dimensions of one element may be dropped."""
    base = em.strided(op.source)
    offsets, sizes, steps = (_mixed(em, part) for part in op.mixed_lists)
    address = em.element_address(base, offsets)
    strides = [multiply(em.builder, *pair) for pair in zip(steps, base.strides)]
    kept = op.kept_dims
    view = Strided(
        address,
        tuple(sizes[dim] for dim in kept),
        tuple(strides[dim] for dim in kept),
        base.element,
    )
    return refine(view, op.result.type)


def _view(em: Emitter, op: memref.ViewOp) -> Strided:
    """Bytes as rows one behind the other."""
    base = em.strided(op.source)
    address = em.builder.gep(base.address, [em.get(op.byte_shift)], source_etype=I8)
    type_ = op.result.type
    given = iter(em.all(op.sizes))
    sizes = [constant(n) if n >= 0 else next(given) for n in type_.get_shape()]
    strides = [constant(1)]
    for size in reversed(sizes[1:]):
        strides.insert(0, multiply(em.builder, size, strides[0]))
    view = Strided(
        address, tuple(sizes), tuple(strides[: len(sizes)]), type_.element_type
    )
    return refine(view, type_)


def _transpose(em: Emitter, op: memref.TransposeOp) -> Strided:
    base = em.strided(op.source)
    sizes = tuple(base.sizes[dim] for dim in op.dims)
    strides = tuple(base.strides[dim] for dim in op.dims)
    view = Strided(base.address, sizes, strides, base.element)
    return refine(view, op.result.type)


def _dim(em: Emitter, op: memref.DimOp) -> Value:
    base, index = em.strided(op.operands[0]), em.get(op.operands[1])
    assert isinstance(index, ll.Constant)
    return base.sizes[int(index.constant)]


ACCESSES = (
    *(memref.LoadOp, memref.StoreOp, vector.LoadOp, vector.StoreOp),
    *(vector.MaskedloadOp, vector.MaskedstoreOp),
)


def accessed(op: Any) -> SSAValue:
    """The memref of one of `ACCESSES`."""
    is_scalar = isinstance(op, memref.LoadOp | memref.StoreOp)
    return op.memref if is_scalar else op.base


def compute_rows(em: Emitter, loop: Operation) -> None:
    """Compute in front of a loop where rows start whose elements it reads or writes.

    LLVM would move this out of the loop, but takes long to find that it may: each of
    a loop's four or more accesses would have products of its own.
    """
    for op in operations_in(loop, *ACCESSES):
        base = em.values.get(accessed(op))
        row = op.indices[:-1]
        if row and base is not None and all(index in em.values for index in row):
            em.compute_row(base, em.all(row))


def _load(em: Emitter, op: memref.LoadOp) -> Value:
    base = em.strided(op.operands[0])
    address = em.element_address(base, em.all(op.operands[1:]))
    loaded = em.builder.load(
        address, typ=memory_type(base.element), align=byte_width(base.element)
    )
    if loaded.type == I8 and str(base.element) == "i1":
        loaded = em.builder.icmp_signed("!=", loaded, I8(0))
    return loaded


def _store(em: Emitter, op: memref.StoreOp) -> None:
    value, base = em.get(op.operands[0]), em.strided(op.operands[1])
    address = em.element_address(base, em.all(op.operands[2:]))
    if value.type == I1:
        value = em.builder.zext(value, I8)
    em.builder.store(value, address, align=byte_width(base.element))


def _prefetch(em: Emitter, op: memref.PrefetchOp) -> None:
    address = em.element_address(em.strided(op.memref), em.all(op.indices))
    hints = op.isWrite, op.localityHint, op.isDataCache
    # A flag that is set reads as -1.
    codes = [ll.Constant(I32, abs(each.value.data)) for each in hints]
    em.intrinsic("llvm.prefetch.p0", VOID, [address, *codes])


def static_bytes(type_: MemRefType[Attribute]) -> int:
    """Bytes of a memref of static shape and identity layout."""
    return prod(type_.get_shape()) * byte_width(type_.element_type)


def strided_at(address: Value, type_: MemRefType[Attribute]) -> Strided:
    """A static memref at an address."""
    sizes = tuple(constant(size) for size in type_.get_shape())
    strides = tuple(constant(step or 0) for step in static_strides(type_))
    return Strided(address, sizes, strides, type_.element_type)


def _atomic_rmw(em: Emitter, op: memref.AtomicRmwOp) -> Value:
    """One instruction where there is one, else compare and swap until it holds."""
    value, base = em.get(op.value), em.strided(op.memref)
    address = em.element_address(base, em.all(op.indices))
    kind = normalize_kind(op.kind_name)
    if value.type == I1:
        name = instruction_of(kind if kind == "assign" else ON_INTEGERS[kind].on_bits)
        byte = em.builder.zext(value, I8)
        old = em.builder.atomic_rmw(name, address, byte, "monotonic")
        return em.builder.icmp_signed("!=", old, I8(0))
    # Not by the LLVM type: bf16 travels as i16.
    is_integer = isinstance(op.value.type, IntegerType | IndexType)
    if is_integer and kind != "mul":
        return em.builder.atomic_rmw(instruction_of(kind), address, value, "monotonic")
    return _swap_until(em, op, address, value)


def instruction_of(kind: str) -> str:
    """Return LLVM's name of an atomic of integers."""
    return "xchg" if kind == "assign" else ON_INTEGERS[kind].instruction


def _swap_until(
    em: Emitter, op: memref.AtomicRmwOp, address: Value, value: Value
) -> Value:
    """Read, combine, swap if nobody came in between; floats travel as their bits."""
    b = em.builder
    bits = ll.IntType(8 * byte_width(op.value.type))
    head, after = b.append_basic_block("swap"), b.append_basic_block("swapped")
    b.branch(head)
    b.position_at_end(head)
    found = b.load_atomic(address, "monotonic", byte_width(op.value.type), typ=bits)
    old = b.bitcast(found, value.type)
    new = b.bitcast(_combined(em, op, old, value), bits)
    swap = b.cmpxchg(address, found, new, "monotonic", "monotonic")
    b.cbranch(b.extract_value(swap, 1), after, head)
    b.position_at_end(after)
    return old


def _combined(em: Emitter, op: memref.AtomicRmwOp, old: Value, value: Value) -> Value:
    type_ = op.value.type
    if op.kind_name == "assign":
        return value
    if isinstance(type_, IntegerType | IndexType):
        return em.builder.mul(old, value)

    def compute(*args: Value) -> Value:
        if op.kind_name in ("addf", "mulf"):
            return getattr(em.builder, f"f{op.kind_name[:3]}")(*args)
        return extreme(em, op.kind_name.removesuffix("f"), type_, *args)

    return in_f32(em, type_, compute, old, value)


TABLE: EmitTable = {
    memref.ExtractStridedMetadataOp: _metadata,
    memref.ReinterpretCastOp: _reinterpret_cast,
    memref.SubviewOp: _subview,
    memref.ViewOp: _view,
    memref.TransposeOp: _transpose,
    memref.DimOp: _dim,
    memref.ExtractAlignedPointerAsIndexOp: lambda em, op: em.builder.ptrtoint(
        em.strided(op.operands[0]).address, I64
    ),
    memref.CastOp: lambda em, op: refine(em.strided(op.operands[0]), op.result.type),
    memref.LoadOp: _load,
    memref.StoreOp: _store,
    memref.PrefetchOp: _prefetch,
    memref.AtomicRmwOp: _atomic_rmw,
}

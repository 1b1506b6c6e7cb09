"""Lowering of memrefs to addresses, sizes and strides."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.base import Index, constant_index, is_memref, memref_type
from xetl.dialects.memref_layout import memory_space_of, strides_of
from xetl.dialects.upstream import arith, memref
from xetl.dialects.xetile.types import SHARED
from xetl.transforms.diagnostics import refusal
from xetl_xegpu import simt
from xetl_xegpu.lowering.convert_xetile_to_xegpu.views import stored_bytes

from .state import Lanes, Memory

_ALIGNMENT = 64
"""The alignment of allocations in the workgroup's memory, in bytes."""


# Index arithmetic: what is known stays a number -------------------------------------


def value_of(lanes: Lanes, index: Index) -> Index:
    """Return the index of the new kernel for one of the old kernel."""
    if isinstance(index, int):
        return index
    known = constant_index(index)
    return lanes.one(index) if known is None else known


def _cast(lanes: Lanes, index: SSAValue, type_: Attribute) -> SSAValue:
    return lanes.beside(
        index, str(type_), lambda: lanes.insert(arith.IndexCastOp(index, type_))
    )


def as_i64(lanes: Lanes, index: Index) -> SSAValue:
    """Return an index as an i64, for coordinates and sizes of blocks."""
    if isinstance(index, int):
        return lanes.constant(index, i64)
    return _cast(lanes, index, i64)


def as_i32(lanes: Lanes, index: SSAValue) -> SSAValue:
    """Return an index as an i32, for the id of a lane."""
    return _cast(lanes, index, i32)


def moved(lanes: Lanes, address: SSAValue, count: Index, width: int) -> SSAValue:
    """Return ``address`` plus ``count`` elements of ``width`` bytes."""
    distance = lanes.times(count, width)
    if distance == 0:
        return address
    if isinstance(distance, int):
        far = lanes.constant(distance, i64)
    else:
        far = lanes.insert(arith.IndexCastOp(distance, i64))
    return lanes.insert(arith.AddiOp(address, far))


def address_of(lanes: Lanes, memory: Memory, indices: Sequence[Index]) -> SSAValue:
    """Return the address of an element."""
    offset: Index = 0
    for index, stride in zip(indices, memory.strides):
        offset = lanes.plus(offset, lanes.times(index, stride))
    return moved(lanes, memory.address, offset, stored_bytes(memory.element))


def space_of(memory: Memory) -> str:
    """Return the space of `simt` for a memory."""
    return "local" if memory.shared else "global"


def memory_of(lanes: Lanes, op: Operation, base: SSAValue) -> Memory:
    """Return the memory of ``base``, a memref or an address."""
    if base in lanes.memories:
        return lanes.memories[base]
    if is_memref(base.type):
        help_ = "use an argument, or an allocation, in the loop and the branch itself"
        raise refusal(op, "this memory is not known before the kernel runs", help_)
    return Memory(lanes.one(base), (), (1,), i64)


# Operations of `memref` -------------------------------------------------------------


def static_layout(
    op: Operation, type_: MemRefType[Attribute]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the static sizes and strides of a type; refuse dynamic ones."""
    strides = strides_of(type_)
    if strides is None or None in strides or DYNAMIC_INDEX in type_.get_shape():
        problem = f"the sizes and strides of {type_} are not known"
        raise refusal(op, problem, "give it a static shape")
    return type_.get_shape(), tuple(stride for stride in strides if stride is not None)


def allocate(lanes: Lanes, op: memref.AllocOp) -> None:
    """Allocate in the workgroup's memory."""
    type_ = memref_type(op.result)
    if memory_space_of(type_) != SHARED:
        problem = "a kernel cannot allocate global memory"
        raise refusal(op, problem, "allocate in memory space 3, the workgroup's")
    sizes, strides = static_layout(op, type_)
    start = -(-lanes.local_bytes // _ALIGNMENT) * _ALIGNMENT
    lanes.local_bytes = start + prod(sizes) * stored_bytes(type_.element_type)
    base = lanes.insert(simt.LocalBaseOp(offset=start))
    element = type_.element_type
    lanes.memories[op.result] = Memory(base, sizes, strides, element, shared=True)


def metadata(lanes: Lanes, op: memref.ExtractStridedMetadataOp) -> None:
    """Return sizes and strides as values, and 0 as the offset."""
    memory = memory_of(lanes, op, op.source)
    lanes.hold(op.offset, lanes.index(0))
    for results, known in ((op.sizes, memory.sizes), (op.strides, memory.strides)):
        for result, value in zip(results, known):
            lanes.hold(result, lanes.index(value))


def view(lanes: Lanes, op: memref.ViewOp) -> None:
    """View bytes as elements of another type."""
    memory, type_ = memory_of(lanes, op, op.source), memref_type(op.result)
    sizes, strides = static_layout(op, type_)
    address = moved(lanes, memory.address, value_of(lanes, op.byte_shift), 1)
    element = type_.element_type
    lanes.memories[op.result] = Memory(address, sizes, strides, element, memory.shared)


def pointer(lanes: Lanes, op: memref.ExtractAlignedPointerAsIndexOp) -> None:
    """Return the address as an index."""
    memory = memory_of(lanes, op, op.source)
    lanes.hold(op.result, lanes.insert(arith.IndexCastOp(memory.address, IndexType())))

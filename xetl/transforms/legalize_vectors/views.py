"""Memrefs that are reshaped, as strided views.

To MLIR an offset counts from the memory's origin, whatever view it is said of.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, StridedLayoutAttr
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import Index, memref_type
from xetl.dialects.memref_layout import constant_index, strides_of
from xetl.dialects.upstream import memref
from xetl.ir.builder import Builder
from xetl.records import record
from xetl.transforms.rewriting import Rule, Values


@record(frozen=True)
class Layout:
    """Where the elements of a memref are.

    Attributes:
        memory: a memref without dimensions: what ``offset`` counts from.
        offset: of the first element, in elements.
        sizes: of each dimension.
        strides: in elements.
    """

    memory: SSAValue
    offset: Index
    sizes: tuple[Index, ...]
    strides: tuple[Index, ...]


def layout_of(b: Builder, value: SSAValue) -> Layout:
    """Where the elements of a memref are; constants where its type knows them."""
    type_ = memref_type(value)
    shape = type_.get_shape()
    rank = len(shape)
    memory, offset, *others = b.add(memref.ExtractStridedMetadataOp(value)).results
    known = strides_of(type_) or [None] * rank
    sizes = tuple(n if n >= 0 else v for n, v in zip(shape, others))
    strides = tuple(v if n is None else n for n, v in zip(known, others[rank:]))
    return Layout(memory, offset, sizes, strides)


def offset_of(b: Builder, layout: Layout, indices: Sequence[Index]) -> Index:
    """How far an element is from the origin of its memory."""
    offset = layout.offset
    for place, stride in zip(indices, layout.strides):
        offset = b.plus(offset, b.times(place, stride))
    return offset


def _same(b: Builder, op: Operation) -> Values:
    return [op.operands[0]]


def _collapse_shape(b: Builder, op: memref.CollapseShapeOp) -> Values:
    """A group of dimensions is as long as all of them, in steps of its last one."""
    layout = layout_of(b, op.operands[0])
    sizes: list[Index] = []
    strides: list[Index] = []
    for group in op.groups:
        size: Index = 1
        for dim in group:
            size = b.times(size, layout.sizes[dim])
        sizes.append(size)
        long = [dim for dim in group if layout.sizes[dim] != 1]
        strides.append(layout.strides[(long or list(group))[-1]])
    return _view(b, op, layout, sizes, strides)


def _expand_shape(b: Builder, op: memref.ExpandShapeOp) -> Values:
    """The last dimension of a group goes in steps of the whole, others further."""
    layout = layout_of(b, op.operands[0])
    sizes: list[Index] = list(op.sizes)
    strides: list[Index] = [1] * len(sizes)
    for stride, group in zip(layout.strides, op.groups):
        step = stride
        for dim in reversed(group):
            strides[dim] = step
            step = b.times(step, sizes[dim])
    return _view(b, op, layout, sizes, strides)


def _view(
    b: Builder,
    op: Operation,
    layout: Layout,
    sizes: Sequence[Index],
    strides: Sequence[Index],
) -> Values:
    """A view of the same first element, with the type of the result of ``op``."""
    type_ = memref_type(op.results[0])
    known = strides_of(type_) or [None] * len(sizes)
    sizes = [n if n >= 0 else size for n, size in zip(type_.get_shape(), sizes)]
    strides = [b.index(v) if n is None else n for n, v in zip(known, strides)]
    offset = layout.offset
    made = MemRefType(
        type_.element_type,
        [n if isinstance(n, int) else DYNAMIC_INDEX for n in sizes],
        StridedLayoutAttr([n if isinstance(n, int) else None for n in strides], None),
        type_.memory_space,
    )
    view = memref.ReinterpretCastOp(layout.memory, [offset], sizes, strides, made)
    return [b.insert(memref.CastOp(b.insert(view), type_))]


def _dim(b: Builder, op: memref.DimOp) -> Values | None:
    """The size of a dimension whose number is computed: one of all sizes."""
    if constant_index(op.index) is not None:
        return None
    found, *others = layout_of(b, op.source).sizes
    for number, size in enumerate(others, 1):
        found = b.select(b.compare("eq", op.index, number), size, found)
    return [b.index(found)]


def _alloc(b: Builder, op: memref.AllocOp | memref.AllocaOp) -> Values | None:
    """Sizes that are constants belong into the type."""
    sizes = [constant_index(size) for size in op.dynamic_sizes]
    if not sizes or None in sizes:
        return None
    type_ = memref_type(op.result)
    given = iter(sizes)
    shape = [n if n >= 0 else next(given) or 0 for n in type_.get_shape()]
    static = MemRefType(type_.element_type, shape, type_.layout, type_.memory_space)
    return [b.insert(memref.CastOp(b.insert(type(op)(static)), type_))]


def _dealloc(b: Builder, op: memref.DeallocOp) -> Values:
    """Memory lives as long as the kernel."""
    return []


RULES: dict[type[Operation], Rule] = {
    memref.MemorySpaceCastOp: _same,
    memref.AssumeAlignmentOp: _same,
    memref.CollapseShapeOp: _collapse_shape,
    memref.ExpandShapeOp: _expand_shape,
    memref.DimOp: _dim,
    memref.AllocOp: _alloc,
    memref.AllocaOp: _alloc,
    memref.DeallocOp: _dealloc,
}

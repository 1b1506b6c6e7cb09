"""Views of memory as code generation has them, and whole memrefs copied.

To MLIR an offset counts from the memory's origin, whatever view it is said of; here a
view is the address of its first element. So what goes back to the origin takes the
memref that the view was made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, StridedLayoutAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.codegen.memref import static_strides
from xetl.dialects.base import Index, memref_type
from xetl.dialects.memref_layout import constant_index
from xetl.dialects.upstream import arith, memref, scf
from xetl.ir.builder import Builder
from xetl_cpu.lowering.text_forms.writing import replace_by

_SAME_ORIGIN = (
    memref.SubviewOp,
    memref.TransposeOp,
    memref.ReinterpretCastOp,
    memref.CastOp,
    memref.MemorySpaceCastOp,
    memref.CollapseShapeOp,
    memref.ExpandShapeOp,
    memref.AssumeAlignmentOp,
)
_FROM_ORIGIN = (memref.ReinterpretCastOp, memref.ExtractAlignedPointerAsIndexOp)


def back_to_origins(block: Block) -> None:
    """Let what counts from the origin of a memory start there; to be done first."""
    for op in list(block.walk()):
        if isinstance(op, _FROM_ORIGIN):
            op.operands[0] = _origin(op.source)
    for op in list(block.walk()):
        if isinstance(op, memref.ExtractStridedMetadataOp):
            _metadata(op)


def _origin(value: SSAValue) -> SSAValue:
    """The memref that the memory of a view is known by."""
    while isinstance(value.owner, _SAME_ORIGIN):
        value = value.owner.operands[0]
    return value


def _metadata(op: memref.ExtractStridedMetadataOp) -> None:
    """The origin, and how far from it the view starts."""
    source = op.operands[0]
    origin = _origin(source)
    if origin is source:
        return
    w = Builder.before(op)
    rank = len(memref_type(source).get_shape())
    dims = [w.index(dim) for dim in range(rank)]
    sizes = [w.insert(memref.DimOp(source, dim)) for dim in dims]
    again = memref.ExtractStridedMetadataOp(source)
    base = memref.ExtractStridedMetadataOp(origin)
    w.add(again)
    w.add(base)
    start = w.index(_start(w, source))
    strides = again.results[2 + rank :]
    replace_by(op, base.results[0], start, *sizes, *strides)


def _start(w: Builder, value: SSAValue) -> Index:
    """How many elements the first one of a view is from the origin."""
    op = value.owner
    if isinstance(op, memref.ReinterpretCastOp):
        (offset,) = op.mixed_offsets
        return offset
    if not isinstance(op, _SAME_ORIGIN):
        return 0
    start = _start(w, op.operands[0])
    if isinstance(op, memref.SubviewOp):
        rank = len(memref_type(op.source).get_shape())
        meta = memref.ExtractStridedMetadataOp(op.source)
        w.add(meta)
        for offset, stride in zip(op.mixed_offsets, meta.results[2 + rank :]):
            start = w.plus(start, w.times(offset, stride))
    return start


def _same(op: Operation) -> None:
    replace_by(op, op.operands[0])


def _collapse_shape(op: memref.CollapseShapeOp) -> None:
    """A group of dimensions is as long as all of them, in steps of its last one."""
    w, meta = Builder.before(op), memref.ExtractStridedMetadataOp(op.operands[0])
    w.add(meta)
    have, known = _lists(meta, op.operands[0])
    sizes: list[Index] = []
    strides: list[Index] = []
    for group in op.groups:
        size: Index = 1
        for dim in group:
            size = w.times(size, have[dim])
        sizes.append(size)
        long = [dim for dim in group if have[dim] != 1]
        strides.append(known[(long or group)[-1]])
    _view(w, op, meta, sizes, strides)


def _expand_shape(op: memref.ExpandShapeOp) -> None:
    """The last dimension of a group goes in steps of the whole, others further."""
    w, meta = Builder.before(op), memref.ExtractStridedMetadataOp(op.operands[0])
    w.add(meta)
    _, known = _lists(meta, op.operands[0])
    sizes: list[Index] = list(op.sizes)
    strides: list[Index] = [1] * len(sizes)
    for stride, group in zip(known, op.groups):
        step = stride
        for dim in reversed(group):
            strides[dim] = step
            step = w.times(step, sizes[dim])
    _view(w, op, meta, sizes, strides)


def _lists(
    meta: memref.ExtractStridedMetadataOp, source: SSAValue
) -> tuple[list[Index], list[Index]]:
    """Sizes and strides of a memref, as constants where its type knows them."""
    type_ = memref_type(source)
    rank = len(type_.get_shape())
    given = meta.results[2 : 2 + rank]
    sizes: list[Index] = [n if n >= 0 else v for n, v in zip(type_.get_shape(), given)]
    steps = zip(static_strides(type_), meta.results[2 + rank :])
    return sizes, [given if known is None else known for known, given in steps]


def _view(
    w: Builder,
    op: Operation,
    meta: memref.ExtractStridedMetadataOp,
    sizes: list[Index],
    strides: list[Index],
) -> None:
    """Replace ``op`` by a view of the same first element."""
    type_ = memref_type(op.results[0])
    fixed = [s if s >= 0 else None for s in type_.get_shape()]
    for number, (size, stride) in enumerate(zip(fixed, static_strides(type_))):
        sizes[number] = sizes[number] if size is None else size
        strides[number] = w.index(strides[number]) if stride is None else stride
    layout = StridedLayoutAttr([s if isinstance(s, int) else None for s in strides], 0)
    shape = [s if isinstance(s, int) else DYNAMIC_INDEX for s in sizes]
    made = MemRefType(type_.element_type, shape, layout, type_.memory_space)
    cast = memref.ReinterpretCastOp(meta.results[0], [0], sizes, strides, made)
    replace_by(op, w.insert(memref.CastOp(w.insert(cast), type_)))


def _dim(op: memref.DimOp) -> None:
    """The size of a dimension whose number is computed: one of all sizes."""
    if constant_index(op.index) is not None:
        return
    w = Builder.before(op)
    rank = len(memref_type(op.source).get_shape())
    sizes = [w.insert(memref.DimOp(op.source, w.index(d))) for d in range(rank)]
    found = sizes[0]
    for number, size in enumerate(sizes[1:], 1):
        chosen = w.compare("eq", op.index, number)
        found = w.insert(arith.SelectOp(chosen, size, found))
    replace_by(op, found)


def _alloc(op: memref.AllocOp | memref.AllocaOp) -> None:
    """Sizes that are constants belong into the type."""
    sizes = [constant_index(size) for size in op.dynamic_sizes]
    if not sizes or None in sizes:
        return
    type_ = memref_type(op.result)
    given = iter(sizes)
    shape = [n if n >= 0 else next(given) or 0 for n in type_.get_shape()]
    static = MemRefType(type_.element_type, shape, type_.layout, type_.memory_space)
    w = Builder.before(op)
    made = w.insert(type(op)(static))
    replace_by(op, w.insert(memref.CastOp(made, type_)))


def _copy(op: memref.CopyOp) -> None:
    """Element by element."""
    w = Builder.before(op)
    rank = len(memref_type(op.source).get_shape())
    sizes = [w.insert(memref.DimOp(op.source, w.index(d))) for d in range(rank)]
    zero, one = w.index(0), w.index(1)
    counters: list[SSAValue] = []
    writers = [w]
    for size in sizes:
        loop = writers[-1].for_loop(zero, size, one)
        counters.append(loop.body.block.args[0])
        writers.append(Builder.at_end(loop.body.block, op.location))
    element = writers[-1].insert(memref.LoadOp(op.source, counters))
    writers[-1].add(memref.StoreOp(element, op.target, counters))
    for writer in writers[1:]:
        writer.add(scf.YieldOp())
    replace_by(op)


def _dealloc(op: Operation) -> None:
    Rewriter.erase_op(op)


RULES: dict[type[Operation], Callable[[Any], None]] = {
    memref.MemorySpaceCastOp: _same,
    memref.AssumeAlignmentOp: _same,
    memref.CollapseShapeOp: _collapse_shape,
    memref.ExpandShapeOp: _expand_shape,
    memref.DimOp: _dim,
    memref.AllocOp: _alloc,
    memref.AllocaOp: _alloc,
    memref.CopyOp: _copy,
    memref.DeallocOp: _dealloc,
}

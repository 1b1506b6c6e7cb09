"""Views as code generation needs them; copies of whole memrefs; shared memory.

In MLIR the offset of a view counts from the origin of its memory, but here a view is
the address of its first element.  So operations that count from the origin get the
memref that the view was made of.  Tiles of arrays of higher rank become tiles of one
matrix.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.dialects.base import Index, is_memref, memref_type, operations_in
from xetl.dialects.kernel_attributes import SHARED
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.upstream import memref
from xetl.dialects.xetile import InitTileOp
from xetl.ir.builder import Builder
from xetl.transforms.rewriting import Rule, Values
from xetl_cpu.lowering.expand_text_forms.scratch import loop_nest, replace_by

_SAME_ORIGIN = (
    memref.SubviewOp,
    memref.TransposeOp,
    memref.ReinterpretCastOp,
    memref.CastOp,
)
_FROM_ORIGIN = (memref.ReinterpretCastOp, memref.ExtractAlignedPointerAsIndexOp)


def back_to_origins(block: Block) -> None:
    """Give operations that count from the origin the original memref; runs first."""
    for op in operations_in(block, *_FROM_ORIGIN):
        op.operands[0] = _origin(op.source)
    for op in operations_in(block, memref.ExtractStridedMetadataOp):
        _metadata(op)


def _origin(value: SSAValue) -> SSAValue:
    """Return the memref that a view was made of."""
    while isinstance(value.owner, _SAME_ORIGIN):
        value = value.owner.operands[0]
    return value


def _metadata(op: memref.ExtractStridedMetadataOp) -> None:
    """Replace metadata of a view by its origin, and its offset from that."""
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
    """Return the offset of a view from its origin, in elements."""
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


def _copy(w: Builder, op: memref.CopyOp) -> Values:
    """Copy element by element."""
    rank = len(memref_type(op.source).get_shape())
    sizes = [w.insert(memref.DimOp(op.source, w.index(d))) for d in range(rank)]
    inner, places = loop_nest(w, sizes)
    element = inner.insert(memref.LoadOp(op.source, places))
    inner.add(memref.StoreOp(element, op.target, places))
    return []


def _init_tile(w: Builder, op: InitTileOp) -> Values | None:
    """Let leading offsets select a matrix; if they are outside, it has no rows."""
    offsets, source = op.mixed_offsets, op.source
    if op.indices is not None or len(offsets) <= 2 or not is_memref(source.type):
        return None
    rank = len(offsets)
    known = w.add(memref.ExtractStridedMetadataOp(source)).results[2:]
    sizes: list[Index] = list(op.mixed_sizes) or list(known[:rank])
    strides: list[Index] = list(op.mixed_strides) or list(known[rank:])
    start: Index = 0
    rows, columns = sizes[-2:]
    for place, size, stride in zip(offsets[:-2], sizes, strides):
        rows = w.select(w.compare("ult", place, size), rows, 0)
        start = w.plus(start, w.times(place, stride))
    pitch, shape = strides[-2:], [w.index(rows), w.index(columns)]
    pitch[op.result.type.order[0] - len(op.result.type.order)] = 1
    matrix = memref.ReinterpretCastOp.of(source, w.index(start), shape, pitch)
    tile = InitTileOp(w.insert(matrix), offsets[-2:], op.result.type, shape, pitch)
    return [w.insert(tile)]


def shared_memory(block: Block) -> None:
    """Move allocations of the workgroup's memory to the start of the block.

    ``alloca`` in this memory space is treated like ``alloc``: in a loop, later passes
    would take it for memory of one subgroup.
    """
    for op in operations_in(block, memref.AllocOp, memref.AllocaOp):
        type_ = memref_type(op.results[0])
        if memory_space_of(type_) != SHARED or op.operands:
            continue
        new = memref.AllocOp(type_, location=op.location)
        Rewriter.replace_op(op, [], new.results)
        Rewriter.insert_op(new, InsertPoint.at_start(block))


RULES: dict[type[Operation], Rule] = {
    memref.CopyOp: _copy,
    InitTileOp: _init_tile,
}

"""Views of memory as code generation has them, and whole memrefs copied.

To MLIR an offset counts from the memory's origin, whatever view it is said of; here a
view is the address of its first element. So what goes back to the origin takes the
memref that the view was made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from xetl.dialects.base import Index, memref_type
from xetl.dialects.upstream import memref, scf
from xetl.ir.builder import Builder
from xetl_cpu.lowering.expand_text_forms.writing import replace_by

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


RULES: dict[type[Operation], Callable[[Any], None]] = {memref.CopyOp: _copy}

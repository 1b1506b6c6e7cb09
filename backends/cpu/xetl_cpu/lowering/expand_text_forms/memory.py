"""Tiles of matrices of higher rank; memory of the workgroup."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, StridedLayoutAttr
from xdsl.ir import Block, Operation
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.dialects.base import Index, memref_type
from xetl.dialects.kernel_attributes import SHARED
from xetl.dialects.kinds_of_types import is_memref
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.upstream import memref
from xetl.dialects.xetile import (
    InitTileOp,
)
from xetl.ir.builder import Builder
from xetl_cpu.lowering.expand_text_forms.writing import replace_by


def _init_tile(op: InitTileOp) -> None:
    """Leading offsets select a matrix: of no rows if they are outside."""
    offsets, source = op.mixed_offsets, op.source
    if op.indices is not None or len(offsets) <= 2 or not is_memref(source.type):
        return
    w, rank = Builder.before(op), len(offsets)
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
    layout = StridedLayoutAttr([s if isinstance(s, int) else None for s in pitch], None)
    space, dynamic = source.type.memory_space, [DYNAMIC_INDEX, DYNAMIC_INDEX]
    type_ = MemRefType(source.type.element_type, dynamic, layout, space)
    matrix = memref.ReinterpretCastOp(source, [w.index(start)], shape, pitch, type_)
    tile = InitTileOp(w.insert(matrix), offsets[-2:], op.result.type, shape, pitch)
    replace_by(op, w.insert(tile))


def shared_memory(block: Block) -> None:
    """Memory of the workgroup stands once, before everything that uses it.

    ``alloca`` with its memory space is the same; in a loop it would be one of each
    subgroup for the passes behind this one.
    """
    for op in list(block.walk()):
        if not isinstance(op, memref.AllocOp | memref.AllocaOp):
            continue
        type_ = memref_type(op.results[0])
        if memory_space_of(type_) != SHARED or op.operands:
            continue
        new = memref.AllocOp(type_, location=op.location)
        op.results[0].replace_all_uses_with(new.results[0])
        op.detach()
        op.erase()
        Rewriter.insert_op(new, InsertPoint.at_start(block))


RULES: dict[type[Operation], Callable[[Any], None]] = {
    InitTileOp: _init_tile,
}

"""Stores that go past the caches, where the matrix they fill is larger than these.

A line that is stored to is read first; a non-temporal store of all of it is not, which
saves a third of what an elementwise kernel moves.  It must be aligned, and what fits
into a cache is better left there.  Which it is, is known at run time only.

Before: ``for column { store %v, %out }``
After:  ``if %large_and_aligned { for column { store nontemporal } } else { for ... }``

Source: Intel 64 and IA-32 Optimization Reference Manual, 9.4.1.2, "Streaming Stores".
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i1, i64
from xdsl.ir import Block, Region, SSAValue

from xetl.codegen.types import byte_width
from xetl.dialects.base import memref_type, vector_type
from xetl.dialects.upstream import arith, memref, scf, vector
from xetl.ir.builder import Builder
from xetl_cpu.lowering.loops.state import State, TileAt, view_of

_LEAST_BYTES = 16
"""Of a vector: what the narrowest non-temporal store moves."""

_MOST_OPERATIONS = 32
"""In a loop that waits for memory; with more of them it computes."""


def stores_past_caches(state: State, build: Builder, to: TileAt) -> SSAValue | None:
    """Whether whole vectors of a tile are to be stored so; None: they are not."""
    base = to.matrix.memref
    width = byte_width(memref_type(base).element_type)
    vector_bytes = state.lanes * width
    if vector_bytes < _LEAST_BYTES or not to.matrix.is_contiguous():
        return None
    _, (row_step, _) = view_of(base, build)
    extent = build.times(build.times(to.matrix.rows, row_step), width)
    if isinstance(extent, int) and extent < state.target.machine.l3.size:
        return None
    is_large = build.compare("sge", extent, state.target.machine.l3.size)
    start = build.insert(memref.ExtractAlignedPointerAsIndexOp(base))
    first = build.plus(start, build.times(to.col, width))
    step = build.index(build.times(row_step, width))
    low = build.insert(arith.OriOp(build.index(first), step))
    odd = build.insert(arith.AndiOp(low, build.index(vector_bytes - 1)))
    is_aligned = build.compare("eq", odd, 0)
    return build.insert(arith.AndiOp(is_large, is_aligned))


def stream_in(loop: scf.ForOp, streams: SSAValue) -> None:
    """Where ``streams`` is true, run a twin of the loop that stores past the caches."""
    following = loop.next_op
    if following is None or len(loop.body.block.ops) > _MOST_OPERATIONS:
        return
    twin = loop.clone()
    build = Builder.before(following)
    for op in twin.body.block.ops:
        if isinstance(op, vector.StoreOp):
            type_ = vector_type(op.value)
            whole = type_.get_shape()[0] * byte_width(type_.element_type)
            op.properties["nontemporal"] = IntegerAttr(1, i1)
            op.properties["alignment"] = IntegerAttr(whole, i64)
    loop.detach()
    regions = [Region(Block([each, scf.YieldOp()])) for each in (twin, loop)]
    build.add(scf.IfOp(streams, [], *regions))

"""How long the vectors of a program's loops are: f32 lanes of the target, or fewer.

A processor that computes its registers in halves has the same speed with vectors half
as long, but what comes from memory it then gets faster.  [measured] Zen 4, one core,
256 MB of f32 in pages of 4 KB: sums by loads of 64 bytes run at 0.83 to 0.92 of the
speed of those by loads of 32, which are as fast as the best of plain loops (one or two
streams, 1 to 8 sums, software prefetches at 0.5 to 8 KB; several streams gain 4 % if
they are megabytes apart).  In the caches both are equal.

So programs that only add up rows that they load use halves.  What computes more, or
stores as much as it loads (partial sums of columns do), keeps whole registers: of them
it needs fewer instructions.  So does a loop that carries more than halves can hold.
"""

from __future__ import annotations

from math import prod

from xdsl.ir import Block, Operation, SSAValue

from xetl.codegen.types import byte_width
from xetl.dialects import xetile
from xetl.dialects.base import vector_type
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.upstream import arith, scf, vector
from xetl_cpu.targets import Target

MOST_CARRIED = 16
"""Registers that a loop carries: half of those of AVX-512. AVX2 spills some, which is
one load and one store of a trip; a buffer is that and a loop."""

_LEAST_LOADED = 4
"""Elements loaded for each that is stored, at least."""

_CHEAP = (
    arith.ConstantOp,
    arith.AddfOp,
    arith.AddiOp,
    arith.MulfOp,
    vector.BroadcastOp,
    xetile.TileBroadcastOp,
    vector.ShapeCastOp,
    scf.ForOp,
    scf.YieldOp,
)


def lanes_of(body: Block, target: Target) -> int:
    """Elements of a vector in the loops of a program, whatever their type."""
    lanes = target.lanes("f32")
    if not target.halves_vectors:
        return lanes
    ops = [op for each in body.ops for op in each.walk()]
    loads = [op.results[0] for op in ops if isinstance(op, xetile.LoadTileOp)]
    stores = [op.value for op in ops if isinstance(op, xetile.StoreTileOp)]
    sums = [op for op in ops if isinstance(op, xetile.TileReduceOp)]
    if not (loads and sums and all(map(_is_cheap, ops))):
        return lanes
    if _LEAST_LOADED * max(map(_size, stores), default=0) > min(map(_size, loads)):
        return lanes
    widths = [byte_width(vector_type(each).element_type) for each in loads]
    halves = min(lanes, target.vector_bytes // 2 // min(widths))
    carried = [each for op in ops if isinstance(op, scf.ForOp) for each in op.results]
    rows = [vector_type(each).get_shape() for each in carried if is_vector(each.type)]
    is_much = sum(row[-1] for row in rows) > MOST_CARRIED * halves
    return lanes if is_much else halves


def _is_cheap(op: Operation) -> bool:
    """Whether it moves or adds up, or has nothing to do with vectors."""
    if isinstance(op, xetile.TileReduceOp):
        return op.kind.data == "add" and 1 in op.dims
    if isinstance(op, (*_CHEAP, xetile.LoadTileOp, xetile.StoreTileOp)):
        return True
    return not any(is_vector(each.type) for each in (*op.operands, *op.results))


def _size(value: SSAValue) -> int:
    return prod(vector_type(value).get_shape())

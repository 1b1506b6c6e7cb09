"""fold-tile-offsets: a tile's offset that all programs share moves into its base.

Before: ``xetile.init_tile %W[%k, %n + %d], [%rows, %cols]``, all programs share ``%d``
After:  ``%V = memref.reinterpret_cast %W`` from column ``%d`` on, and
        ``xetile.init_tile %V[%k, %n], [%rows, max(%cols - %d, 0)]``

Why: several matrices often are side by side in one (the gates of an LSTM, queries, keys
and values, both halves of a SwiGLU). With folded offsets, tiles of all of them start at
a number times their extent, so they are packed once, and programs become larger tasks.

Left alone: sums with terms that may be negative, because a tile may then start before
the view and still be inside the matrix; tiles that move backwards; the kernel's own
memory.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects.base import Index, constant_index, is_memref, operations_in
from xetl.dialects.upstream import arith, scf
from xetl.dialects.xetile import InitTileOp
from xetl.ir.builder import Builder, Pass
from xetl_cpu.lowering import tiles
from xetl_cpu.lowering.loops.state import reinterpret, view_of


class FoldTileOffsetsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for loop in operations_in(op, scf.ParallelOp):
            for init in operations_in(loop, InitTileOp):
                _fold(init, loop)


def _fold(init: InitTileOp, loop: scf.ParallelOp) -> None:
    source, sizes = init.source, init.mixed_sizes
    if len(sizes) != 2 or init.indices is not None or not is_memref(source.type):
        return
    backwards = tiles.dims_moved(
        init.result, lambda step: not tiles.is_non_negative(step)
    )
    if backwards is None or not isinstance(tiles.root(source), BlockArgument):
        return
    parts = dict(enumerate(init.mixed_offsets))
    found = {dim: _parted(parts[dim], loop) for dim in {0, 1} - backwards}
    if not any(common for _, common in found.values()):
        return
    build = Builder.before(init)
    start, _ = view_of(source, build)
    extents, strides = list(sizes), init.mixed_strides
    for dim, (parts[dim], common) in found.items():
        for each in common:
            start = build.plus(start, build.times(each, strides[dim]))
            extents[dim] = build.maximum(build.minus(extents[dim], each), 0)
    (rows, cols), (row_step, col_step) = extents, strides
    view = reinterpret(build, source, start, (rows, cols), (row_step, col_step))
    offsets = [parts[0], parts[1]]
    new = tiles.tile_like(init, source=view, offsets=offsets, sizes=extents)
    Rewriter.replace_op(init, new)


def _parted(offset: Index, loop: scf.ParallelOp) -> tuple[Index, list[SSAValue]]:
    """Return the part of an offset that differs, and the terms that programs share.

    No part and no term is negative.
    """
    common: list[SSAValue] = []
    while isinstance(offset, SSAValue) and isinstance(offset.owner, arith.AddiOp):
        terms = offset.owner.operands
        same = [v for v in terms if tiles.counters_of([v], loop) == set()]
        if len(same) != 1 or not all(map(tiles.is_non_negative, terms)):
            break
        common += same
        (offset,) = (v for v in terms if v is not same[0])
    return offset, [each for each in common if constant_index(each) != 0]

"""clamp-tile-offsets: tiles at possibly negative offsets move behind their matrix.

Before: ``xetile.init_tile %A[%q * 64, %k], [%rows, %cols]``, ``%q`` may be negative
After:  the same at ``min(%q, ceil(%rows / 64)) * 64``, with the unsigned minimum

Why: only tiles with offsets that are proven to be non-negative are raised to GEMMs,
packed once and stored from registers, and numbers computed from a program's number
(``pid % n``, grouped orders) are not proven. A tile at a negative multiple of its
extent has no element in the matrix, and has none at the clamped offset either: in both
cases loads return padding and stores have no effect.

Left alone: offsets that are proven already, offsets that are no multiple of the extent,
and dimensions along which the tile moves.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.analysis.affine import dominates, multiple_of
from xetl.dialects.base import Index, constant_index, operations_in
from xetl.dialects.upstream import arith
from xetl.dialects.xetile import InitTileOp
from xetl.ir.builder import Builder, Pass
from xetl_cpu.lowering.tiles import dims_moved, is_non_negative, tile_like, tile_sizes


class ClampTileOffsetsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for init in operations_in(op, InitTileOp):
            _clamp(init)


def _clamp(init: InitTileOp) -> None:
    sizes, shape = tile_sizes(init), init.result.type.shape
    offsets = list(init.mixed_offsets)
    if init.indices is not None or sizes is None or len(sizes) != len(offsets):
        return
    unknown = [dim for dim, each in enumerate(offsets) if not is_non_negative(each)]
    unknown = [dim for dim in unknown if multiple_of(offsets[dim], shape[dim])]
    unknown = [dim for dim in unknown if is_non_negative(sizes[dim])]
    if not unknown:
        return
    moved = dims_moved(init.result, lambda step: constant_index(step) != 0)
    if moved is None:
        return
    for dim in set(unknown) - moved:
        offsets[dim] = _clamped(offsets[dim], sizes[dim], shape[dim], init)
    Rewriter.replace_op(init, tile_like(init, offsets=offsets))


def _clamped(offset: Index, size: Index, extent: int, init: InitTileOp) -> Index:
    number = multiple_of(offset, extent)
    assert number is not None
    build = _behind(number, size, init)
    last = build.index(build.ceil_divided(size, extent))
    return build.times(build.insert(arith.MinuiOp(number, last)), extent)


def _behind(number: SSAValue, size: Index, init: InitTileOp) -> Builder:
    """Return a builder at the earliest place: products ask early for store offsets."""
    values = [number] if isinstance(size, int) else [number, size]
    for last in values:
        owner = last.owner
        others = [each for each in values if each is not last]
        if isinstance(owner, Operation) and all(dominates(v, owner) for v in others):
            return Builder.after(last)
    return Builder.before(init)

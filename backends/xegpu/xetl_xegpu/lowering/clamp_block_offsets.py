"""clamp-block-offsets: offsets of blocks fit the 32 bits that messages have for them.

Why: offsets have 64 bits in the language. Truncated to 32 bits, an offset far outside
of the matrix may point inside again: the kernel would load or overwrite wrong elements.
A matrix has fewer than 2^24 rows and columns, so an offset outside of it that is
clamped to [-2^25, 2^25] stays outside, also if up to 2^24 is added afterwards. So a
constant summand is added behind the clamp: blocks at constant distances share it, and
the payloads of their messages (`emit/payloads.py`).

Before: ``simt.block_load %base, %width, %height, %pitch, (arith.addi %x, 16), %y``
After:  the same of ``arith.addi(arith.minsi(arith.maxsi(%x, -2^25), 2^25), 16)``

Left alone: offsets that are known to fit, such as counters of loops over a matrix, and
blocks that lanes move, whose offsets have 64 bits.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, ModuleOp, i64
from xdsl.ir import SSAValue

from xetl.dialects.base import operations_in
from xetl.dialects.upstream import arith
from xetl.ir.builder import Builder, Pass
from xetl_xegpu import simt
from xetl_xegpu.limits import LIMIT
from xetl_xegpu.lowering.record_arguments import kernel_ranges
from xetl_xegpu.simt.block_ops import BlockOp, root_and_distance

_FITS = 1 << 30
"""Offsets up to here are left alone: with the extent of a block they fit 32 bits."""


class ClampBlockOffsetsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for kernel in operations_in(op, simt.FuncOp):
            ranges = kernel_ranges(op, kernel)
            clamped: dict[SSAValue, SSAValue] = {}
            blocks = operations_in(kernel, BlockOp)
            for block in [each for each in blocks if each.by_lanes is None]:
                for name, place in (("x", block.x), ("y", block.y)):
                    found = ranges.of(place)
                    if found is None or found.low < -_FITS or found.high > _FITS:
                        block.move(**{name: _clamped(place, clamped)})


def _clamped(place: SSAValue, clamped: dict[SSAValue, SSAValue]) -> SSAValue:
    """Return ``place`` with its value, without a constant summand, clamped.

    Args:
        clamped: the values that are clamped already, each right behind its definition,
            and the places made of them.
    """
    root, distance = root_and_distance(place)
    if root is None or root.type not in (i64, IndexType()) or abs(distance) > LIMIT:
        root, distance = place, 0
    if root not in clamped:
        b = Builder.after(root)
        number = root if root.type == i64 else b.insert(arith.IndexCastOp(root, i64))
        least, most = (b.constant(bound, i64) for bound in (-2 * LIMIT, 2 * LIMIT))
        low = b.insert(arith.MaxsiOp(number, least))
        clamped[root] = b.insert(arith.MinsiOp(low, most))
    if place not in clamped:
        clamped[place] = clamped[root]
        if distance:
            b = Builder.after(place)
            summand = b.constant(distance, i64)
            clamped[place] = b.insert(arith.AddiOp(clamped[root], summand))
    return clamped[place]

"""clamp-block-offsets: offsets of blocks fit the 32 bits that messages have for them.

Why: offsets have 64 bits in the language. Truncated to 32 bits, an offset far outside
of the matrix may point inside again: the kernel would load or overwrite wrong elements.
A matrix has fewer than 2^24 rows and columns, so an offset outside of it that is
clamped to [-2^24, 2^24] stays outside.

Before: ``simt.block_load %base, %width, %height, %pitch, %x, %y``
After:  the same of ``arith.minsi(arith.maxsi(%x, -2^24), 2^24)``

Left alone: offsets that are known to fit, such as counters of loops over a matrix, and
blocks that lanes move, whose offsets have 64 bits.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import SSAValue

from xetl.dialects.base import operations_in
from xetl.dialects.upstream import arith
from xetl.ir.builder import Builder, Pass
from xetl_xegpu import simt
from xetl_xegpu.limits import LIMIT
from xetl_xegpu.lowering.kernel_ranges import kernel_ranges
from xetl_xegpu.simt.block_ops import BlockOp

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
                        if place not in clamped:
                            clamped[place] = _clamped(place)
                        block.move(**{name: clamped[place]})


def _clamped(place: SSAValue) -> SSAValue:
    """Return ``place`` clamped to [-2^24, 2^24], computed right after ``place``."""
    b = Builder.after(place)
    least, most = (b.constant(number, i64) for number in (-LIMIT, LIMIT))
    return b.insert(arith.MinsiOp(b.insert(arith.MaxsiOp(place, least)), most))

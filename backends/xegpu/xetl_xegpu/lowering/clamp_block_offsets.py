"""clamp-block-offsets: places of blocks fit the 32 bits that messages have for them.

Why: offsets have 64 bits in the language. Cut to 32, one far outside of the matrix may
lie inside again: wrong numbers would be loaded, others overwritten. A matrix has fewer
than 2^24 rows and columns, so what is limited to 2^24 on both sides stays outside.

Before: ``simt.block_load %base, %width, %height, %pitch, %x, %y``
After:  the same of ``arith.minsi(arith.maxsi(%x, -2^24), 2^24)``

Left alone: numbers that are known to fit, such as counters of loops over a matrix, and
blocks that lanes move, whose places have 64 bits.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import SSAValue

from xetl.analysis.ranges import Ranges
from xetl.dialects.base import operations_in
from xetl.dialects.upstream import arith
from xetl.ir.builder import Builder, Pass
from xetl_xegpu import simt
from xetl_xegpu.limits import LIMIT
from xetl_xegpu.lowering.kernel_ranges import kernel_ranges
from xetl_xegpu.simt.block_ops import BlockOp

_FITS = 1 << 30
"""Numbers up to here are left alone: what a block adds to them fits 32 bits, too."""


class ClampBlockOffsetsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for kernel in operations_in(op, simt.FuncOp):
            ranges = kernel_ranges(op, kernel)
            clamped: dict[SSAValue, SSAValue] = {}
            blocks = operations_in(kernel, BlockOp)
            for block in [each for each in blocks if each.by_lanes is None]:
                for place in (block.x, block.y):
                    if not _fits(ranges, place):
                        at = clamped.setdefault(place, place)
                        if at is place:
                            at = clamped[place] = _clamped(place)
                        block.operands = [
                            at if each is place else each for each in block.operands
                        ]


def _fits(ranges: Ranges, place: SSAValue) -> bool:
    found = ranges.of(place)
    return found is not None and found.low >= -_FITS and found.high <= _FITS


def _clamped(place: SSAValue) -> SSAValue:
    """A place within 2^24 on both sides, computed where the place is."""
    b = Builder.after(place)
    least, most = (b.constant(number, i64) for number in (-LIMIT, LIMIT))
    return b.insert(arith.MinsiOp(b.insert(arith.MaxsiOp(place, least)), most))

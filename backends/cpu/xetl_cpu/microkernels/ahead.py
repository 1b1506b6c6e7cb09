"""What a strip asks for while it computes: memory that is needed next, into L2.

Where caches do not fetch ahead far enough, the first strip of a panel of B waits for
the third cache, and the first panel of a block waits for rows of A.  So each strip asks
for its share of the next panel, and for one row of the next block of rows.  Measured on
prepacked f32 with a busy third cache: 3 % at 1000, 2 % at 2048, nothing at 1024.

Asking costs one load slot of six that are idle in a step of k.  Where a step has
fewer lines than strips to share them, a line is asked for several times.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from xetl_cpu.llvm import (
    I64,
    Builder,
    Value,
    const,
    ir,
    minimum,
    offset,
    prefetch_to_l2,
)
from xetl_cpu.microkernels.blocking import Blocking

__all__ = ["Ahead", "next_panel", "next_rows"]

_BYTE = ir.IntType(8)


@dataclass(frozen=True)
class Ahead:
    """Memory to ask for, ``stride`` bytes with each step of k."""

    place: Value
    stride: int

    def ask(self, builder: Builder, step: Value) -> None:
        """For what belongs to a step."""
        at = builder.mul(step, const(I64, self.stride))
        prefetch_to_l2(builder, offset(builder, self.place, _BYTE, at))


def next_panel(
    builder: Builder, blocking: Blocking, panel: Value, strip: Value, steps: Value
) -> Ahead:
    """The share of a strip of a panel; ``strip``: its first row in the block."""
    size = blocking.nr * blocking.k_pack * blocking.compute_bytes
    share = ceil(size * blocking.mr / blocking.mc)
    number = builder.sdiv(strip, const(I64, blocking.mr))
    skip = builder.mul(builder.mul(number, steps), const(I64, share))
    return Ahead(offset(builder, panel, _BYTE, skip), share)


def next_rows(
    builder: Builder,
    blocking: Blocking,
    rows: tuple[Value, Value, Value],
    strip: Value,
    panel: Value,
) -> Ahead:
    """A row of the next block, by the number of the panel.

    ``rows``: of A, where they start, their distance in elements, the last of them.
    """
    a, lda, last = rows
    row = builder.urem(panel, const(I64, blocking.mr))
    row = builder.add(row, builder.add(strip, const(I64, blocking.mc)))
    at = builder.mul(minimum(builder, row, last), lda)
    element = ir.IntType(8 * blocking.compute_bytes)
    place = offset(builder, a, element, at)
    return Ahead(place, blocking.k_pack * blocking.compute_bytes)

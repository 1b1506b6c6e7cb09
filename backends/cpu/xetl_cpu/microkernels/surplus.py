"""Subtract what the micro-kernel sums up too much, if B's bytes are shifted."""

from __future__ import annotations

from collections.abc import Sequence

from xetl.records import record
from xetl_cpu.llvm import I8, I32, Builder, Value, const, vector
from xetl_cpu.microkernels.arithmetic import SHIFT
from xetl_cpu.microkernels.blocking import Blocking


@record()
class Surplus:
    """The surplus of a strip if B is shifted: products of A with shifted zeros.

    The first panel leaves it for all, a number for each row, in memory at ``place``. It
    computes it last: then its rows are in caches. ``a_rows``: the first bytes of A's.
    """

    builder: Builder
    blocking: Blocking
    a_rows: Sequence[Value]
    place: Value

    @staticmethod
    def room(builder: Builder, blocking: Blocking) -> Value:
        """Return memory for a block's rows; a vector may end behind the last one."""
        return builder.stack_array(I32, blocking.mc + 2 * blocking.lanes)

    def compute(self, k: Value) -> None:
        """Store the sums of these products, of a vector of each row at a time."""
        builder, blocking = self.builder, self.blocking
        many = vector(I32, blocking.lanes)
        size, zeros = blocking.lanes * blocking.k_pack, const(many, SHIFT)
        sums = [const(many, 0) for _ in self.a_rows]
        with builder.counted_loop(
            k, step=size, carried=sums, name="surplus", is_hidden=True
        ) as step:
            mask = builder.lane_mask(builder.sub(k, step.index), size)
            for row, total in zip(self.a_rows, step.values, strict=True):
                at = builder.offset(row, I8, step.index)
                words = builder.masked_load(at, vector(I8, size), mask)
                words = builder.bitcast(words, many)
                total = blocking.arithmetic.multiply_add(builder, words, zeros, total)
                step.next.append(total)
        totals = blocking.arithmetic.totals(builder, step.results)
        for number, total in enumerate(totals):
            builder.store(total, builder.offset(self.place, many, number), 4)

    def subtracted_from(self, sums: list[Value]) -> list[Value]:
        """Return the sums of the strip without it."""
        builder, blocking = self.builder, self.blocking
        found: list[Value] = []
        for number, total in enumerate(sums):
            at = builder.offset(self.place, I32, number // blocking.vectors)
            one = builder.load(at, typ=I32, align=4)
            found.append(builder.sub(total, builder.splat(one, blocking.lanes)))
        return found

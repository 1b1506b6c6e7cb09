"""Writing operations in the place of one that a rule takes away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import LocationAttr, UnknownLoc
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.dialects.upstream import scf
from xetl_cpu.lowering.loops.build import Build, Index


@dataclass
class Writer(Build):
    """A builder whose operations stand at a line of the text."""

    location: LocationAttr = field(default_factory=UnknownLoc)

    def emit(self, op: Operation) -> None:
        """Insert an operation at the place and the line."""
        op.location = self.location
        super().emit(op)

    def nest(
        self, sizes: Sequence[int], body: Callable[[Writer, list[Index]], None]
    ) -> None:
        """Loops over ``sizes`` around what ``body`` writes for their counters."""
        self._nest(list(sizes), [], body)

    def _nest(
        self,
        sizes: list[int],
        counters: list[Index],
        body: Callable[[Writer, list[Index]], None],
    ) -> None:
        if not sizes:
            body(self, counters)
            return
        loop = self.loop(sizes[0], 1)
        block = loop.body.block
        inner = Writer(InsertPoint.at_end(block), self.location)
        inner._nest(sizes[1:], [*counters, block.args[0]], body)
        inner.emit(scf.YieldOp())


def in_place_of(op: Operation) -> Writer:
    """A builder in front of an operation, for what replaces it."""
    return Writer(InsertPoint.before(op), op.location)


def replace_by(op: Operation, *values: SSAValue) -> None:
    """The results of ``op`` are ``values`` now; it is gone."""
    Rewriter.replace_op(op, [], list(values))

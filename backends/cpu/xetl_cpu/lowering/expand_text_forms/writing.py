"""Writing operations in the place of one that a rule takes away."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects.base import Index
from xetl.dialects.upstream import scf
from xetl.ir.builder import Builder


def loop_nest(
    build: Builder, sizes: Sequence[int], body: Callable[[Builder, list[Index]], None]
) -> None:
    """Loops over ``sizes`` around what ``body`` writes for their counters."""
    inner, counters, ends = build, list[Index](), list[Builder]()
    for size in sizes:
        block = inner.for_loop(0, size, 1).body.block
        counters.append(block.args[0])
        inner = Builder.at_end(block, build.location)
        ends.append(inner)
    body(inner, counters)
    for end in reversed(ends):
        end.add(scf.YieldOp())


def replace_by(op: Operation, *values: SSAValue) -> None:
    """The results of ``op`` are ``values`` now; it is gone."""
    Rewriter.replace_op(op, [], list(values))


def replace(
    op: Operation, new: Sequence[Operation], results: Sequence[SSAValue] | None = None
) -> None:
    """Put ``new`` in the place of ``op``; by default the last one gives its results."""
    for each in new:
        each.location = op.location
    Rewriter.replace_op(op, list(new), results)

"""Replacing an operation by others that keep its place in the text."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter


def replace(
    op: Operation, new: Sequence[Operation], results: Sequence[SSAValue] | None = None
) -> None:
    """Put ``new`` in the place of ``op``; by default the last one gives its results."""
    for each in new:
        each.location = op.location
    Rewriter.replace_op(op, list(new), results)

"""Vectors of one number fit blocks of any size, so each reader gets its own.

Otherwise two parts of a kernel that start from the same zeros would be cut alike.
"""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.transforms.blocks.forms import is_uniform

Copies = list[list[Operation]]
"""For each vector the operations that are copies of one."""


def split_uniform(function: Operation) -> Copies:
    """Copy vectors of one number until each has one reader."""
    return [_split(op) for op in list(function.walk()) if is_uniform(op)]


def _split(op: Operation) -> list[Operation]:
    copies = [op]
    for use in list(op.results[0].uses)[1:]:
        new = op.clone()
        new.location = op.location
        new.results[0].name_hint = op.results[0].name_hint
        Rewriter.insert_op(new, InsertPoint.after(op))
        use.operation.operands[use.index] = new.results[0]
        copies.append(new)
    return copies


def merge_uniform(copies: Copies) -> None:
    """Make one of copies that turned out the same."""
    for group in copies:
        kept: dict[object, Operation] = {}
        for op in group:
            first = kept.setdefault(op.results[0].type, op)
            if first is not op:
                op.results[0].replace_all_uses_with(first.results[0])
                op.detach()
                op.erase()

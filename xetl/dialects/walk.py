"""The operations inside others, of some classes.

xDSL's ``walk`` is a generator for each level of nesting, and ``isinstance`` of a class
of operations runs Python: passes look through all operations so often that both show.
"""

from __future__ import annotations

from typing import TypeVar, cast

from xdsl.ir import Block, Operation, Region

_T = TypeVar("_T", bound=Operation)


def operations_in(root: Operation | Region | Block, *kinds: type[_T]) -> list[_T]:
    """All operations of these classes, ``root`` among them, in the order of the text.

    The list is made at once: what a pass changes meanwhile does not count.
    """
    found: list[_T] = []
    known: dict[type, bool] = {}

    def visit(op: Operation | None) -> None:
        while op is not None:  # xDSL's iterator is an object with a method more
            cls = type(op)
            is_wanted = known.get(cls)
            if is_wanted is None:
                is_wanted = known[cls] = issubclass(cls, kinds)
            if is_wanted:
                found.append(cast("_T", op))
            for region in op.regions:
                for block in region.blocks:
                    visit(block.first_op)
            op = op.next_op if op is not root else None

    if isinstance(root, Operation):
        visit(root)
    else:
        for block in (root,) if isinstance(root, Block) else root.blocks:
            visit(block.first_op)
    return found

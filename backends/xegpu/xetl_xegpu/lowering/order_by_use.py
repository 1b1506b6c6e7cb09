"""order-by-use: what is computed stands right before the first that needs it.

*What*: in a block, operations without effects move down to the first store, load, loop
or end of the block that needs them, in the order in which it does.
*Why*: a value of a subgroup is many registers' worth, one operation of the kernel many
of a lane's, all of which stand before those of the next one. Behind a product of 32x64
that is 128 registers for each step of an epilogue, and Intel's compiler spills. In this
order one part of the value goes all the way to its store before the next begins.
*Left alone*: blocks with products, where the order is that of the messages, and the
order of everything that has an effect.

Before: ``%a0 = f %x0; %a1 = f %x1; %b0 = g %a0; %b1 = g %a1; store %b0; store %b1``
After:  ``%a0 = f %x0; %b0 = g %a0; store %b0; %a1 = f %x1; %b1 = g %a1; store %b1``
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from xetl.analysis.memory import is_pure
from xetl_xegpu import simt


class OrderByUsePass(ModulePass):
    """See the module docstring."""

    name = "order-by-use"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for one in op.walk():
            for region in one.regions:
                for block in region.blocks:
                    if not any(isinstance(each, simt.PRODUCTS) for each in block.ops):
                        _order(block)


def _order(block: Block) -> None:
    """Bring the operations of a block into the order of their uses."""
    ops = list(block.ops)
    placed: set[Operation] = set()
    ordered: list[Operation] = []
    for op in ops:
        if not is_pure(op):
            _place(op, block, placed, ordered)
    if ordered == ops or len(ordered) != len(ops):
        return  # nothing moves; or something is used by nobody, and goes elsewhere
    for op in ordered:
        op.detach()
        block.add_op(op)


def _place(
    op: Operation, block: Block, placed: set[Operation], ordered: list[Operation]
) -> None:
    """Append what an operation needs and is not there yet, then the operation."""
    open_ = [(op, _needed(op, block))]
    while open_:
        current, needed = open_[-1]
        following = next((one for one in needed if one not in placed), None)
        if following is not None:
            open_.append((following, _needed(following, block)))
            continue
        open_.pop()
        placed.add(current)
        ordered.append(current)


def _needed(op: Operation, block: Block) -> Iterator[Operation]:
    """The operations of the block whose results it reads, inside its regions, too."""
    for inner in op.walk():
        for operand in inner.operands:
            owner = operand.owner
            if isinstance(owner, Operation) and owner.parent is block:
                yield owner

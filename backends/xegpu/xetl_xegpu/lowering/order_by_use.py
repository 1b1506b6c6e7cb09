"""order-by-use: what is computed stands right before the first that needs it.

*What*: in a block, operations without effects move down to the first store, load, loop
or end of the block that needs them, in the order in which it does.
*Why*: a value of a subgroup is many registers' worth, one operation of the kernel many
of a lane's, all of which stand before those of the next one. Behind a product of 32x64
that is 128 registers for each step of an epilogue, and Intel's compiler spills. In this
order one part of the value goes all the way to its store before the next begins.
Stores by lanes are a branch for each element, and what lives through branches is
copied: of neighbours among them that store elements below 32 bits, which are packed,
all values are computed before the first one. [measured] ocloc 26.27, pvc, GELU behind a
product in bf16, for any memory: 3 KB spilled, none so.
*Left alone*: blocks with products, where the order is that of the messages, and the
order of everything that has an effect.

Before: ``%a0 = f %x0; %a1 = f %x1; %b0 = g %a0; %b1 = g %a1; store %b0; store %b1``
After:  ``%a0 = f %x0; %b0 = g %a0; store %b0; %a1 = f %x1; %b1 = g %a1; store %b1``
"""

from __future__ import annotations

from itertools import groupby

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from xetl.analysis.memory import is_pure
from xetl.ir.builder import Pass, move_to_end
from xetl_xegpu import simt
from xetl_xegpu.lowering.fit_registers.graph import behind_needs


class OrderByUsePass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for one in op.walk():
            for region in one.regions:
                for block in region.blocks:
                    if not any(isinstance(each, simt.PRODUCTS) for each in block.ops):
                        _order(block)


def _order(block: Block) -> None:
    """Bring the operations of a block into the order of their uses."""
    ops = list(block.ops)
    number: dict[object, int] = {op: at for at, op in enumerate(ops)}
    # Of its regions, too.
    owners = [[each.owner for x in op.walk() for each in x.operands] for op in ops]
    needs = [[number[owner] for owner in each if owner in number] for each in owners]
    ordered: dict[int, None] = {}
    effects = [(at, op) for at, op in enumerate(ops) if not is_pure(op)]
    for is_packed, run in groupby(effects, lambda each: _packs_by_lanes(each[1])):
        ends = [at for at, _ in run]
        first = [need for end in ends for need in needs[end]] if is_packed else []
        for at in (*first, *ends):
            if at not in ordered:
                ordered |= dict.fromkeys(behind_needs(at, needs, ordered.__contains__))
    if len(ordered) != len(ops):
        return  # something is used by nobody, and goes elsewhere
    move_to_end([ops[at] for at in ordered], block)


def _packs_by_lanes(op: Operation) -> bool:
    """Whether lanes store a block that takes fewer registers than what it is of."""
    if not isinstance(op, simt.BlockStoreOp) or op.by_lanes is None:
        return False
    return op.shape.bits < _WORD


_WORD = 32

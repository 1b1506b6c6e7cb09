"""Common subexpression elimination.

*What*: erases a pure operation if an earlier one that dominates it has the same
operands, properties, attributes and result types; its uses get the earlier results.
*Why*: inlined functions and address arithmetic repeat operations, and later passes
compare values by identity.
*Left alone*: operations that access memory or have regions, and equal operations in
different blocks of one region (their dominance is not computed).

before: %a = arith.addi %x, %y    %b = arith.addi %x, %y    use(%b)
after:  %a = arith.addi %x, %y    use(%a)
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.rewriter import Rewriter
from xdsl.traits import Commutative, IsolatedFromAbove

from xetl.analysis.memory import is_pure
from xetl.ir.builder import Pass

_NONE: Mapping[Hashable, Operation] = {}


def _key(op: Operation) -> Hashable:
    operands = [id(operand) for operand in op.operands]
    if len(operands) == 2 and op.has_trait(Commutative):
        operands.sort()
    return (
        type(op),
        tuple(operands),
        frozenset(op.properties.items()) if op.properties else None,
        frozenset(op.attributes.items()) if op.attributes else None,
        tuple(result.type for result in op.results),
    )


def merge_equal(block: Block, outer: Mapping[Hashable, Operation] = _NONE) -> None:
    """Merge equal operations of a block and of the regions inside it.

    ``outer`` are the operations that dominate the block.
    """
    known = dict(outer)
    for op in list(block.ops):
        if op.regions:
            inner = _NONE if op.has_trait(IsolatedFromAbove) else known
            for region in op.regions:
                for nested in region.blocks:
                    merge_equal(nested, inner)
        elif op.results and is_pure(op):
            earlier = known.setdefault(_key(op), op)
            if earlier is not op:
                Rewriter.replace_op(op, [], earlier.results)


class CSEPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for block in op.body.blocks:
            merge_equal(block)

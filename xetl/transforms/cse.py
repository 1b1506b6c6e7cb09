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

from collections.abc import Hashable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.rewriter import Rewriter
from xdsl.traits import Commutative, IsolatedFromAbove

from xetl.analysis.memory import is_pure
from xetl.ir.builder import Pass


class _Scope:
    """The operations seen so far in a block; lookups include the enclosing blocks."""

    def __init__(self, outer: _Scope | None = None) -> None:
        self._known: dict[Hashable, Operation] = {}
        self._outer = outer

    def find_or_add(self, key: Hashable, op: Operation) -> Operation | None:
        """Return an earlier operation with this key; if there is none, add ``op``."""
        scope: _Scope | None = self
        while scope is not None:
            known = scope._known.get(key)
            if known is not None:
                return known
            scope = scope._outer
        self._known[key] = op
        return None


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


def merge_equal(block: Block, outer: _Scope | None = None) -> None:
    """Merge equal operations of a block and of the regions inside it."""
    scope = _Scope(outer)
    for op in list(block.ops):
        if op.regions:
            inner = None if op.has_trait(IsolatedFromAbove) else scope
            for region in op.regions:
                for nested in region.blocks:
                    merge_equal(nested, inner)
        elif op.results and is_pure(op):
            earlier = scope.find_or_add(_key(op), op)
            if earlier is not None:
                Rewriter.replace_op(op, [], earlier.results)


class CSEPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for block in op.body.blocks:
            merge_equal(block)

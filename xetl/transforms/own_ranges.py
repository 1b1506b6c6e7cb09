"""In how far two integers differ between subgroups, as a sum that can be compared.

``id * 8 + n`` and ``(id + 1) * 8`` both differ by ``8 * id``: their distance is the
same for all subgroups, so a loop from one to the other is run equally often.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TypeAlias

from xdsl.ir import SSAValue

from xetl.dialects.upstream import arith, index
from xetl.transforms.folding import integer_of

Sum: TypeAlias = dict[tuple[int, ...], int]
"""How often a product of values is added; the product is the sorted ids of these."""

_ADDITIONS = (arith.AddiOp, index.AddOp)
_DIFFERENCES = (arith.SubiOp, index.SubOp)
_PRODUCTS = (arith.MuliOp, index.MulOp)
_CASTS = (arith.IndexCastOp, index.CastsOp)
_DEEPEST = 12


def differing_part(
    value: SSAValue, differing: Container[SSAValue], depth: int = 0
) -> Sum:
    """``value`` as a sum of products, without what is the same for all subgroups.

    Args:
        value: an integer.
        differing: the values that are not the same for all.
        depth: how many operations were looked through already.
    """
    if value not in differing:
        return {}
    op = value.owner
    if depth < _DEEPEST:
        if isinstance(op, _CASTS):
            return differing_part(op.operands[0], differing, depth + 1)
        if isinstance(op, _ADDITIONS + _DIFFERENCES):
            left, right = (differing_part(v, differing, depth + 1) for v in op.operands)
            return _added(left, right, -1 if isinstance(op, _DIFFERENCES) else 1)
        if isinstance(op, _PRODUCTS):
            for factor, other in (op.operands, reversed(op.operands)):
                if factor not in differing:
                    return _scaled(differing_part(other, differing, depth + 1), factor)
    return {(id(value),): 1}


def _added(left: Sum, right: Sum, sign: int) -> Sum:
    found = dict(left)
    for product, times in right.items():
        found[product] = found.get(product, 0) + sign * times
    return {product: times for product, times in found.items() if times}


def _scaled(terms: Sum, factor: SSAValue) -> Sum:
    number = integer_of(factor)
    if number is not None:
        return {product: times * number for product, times in terms.items() if number}
    return {
        tuple(sorted((*product, id(factor)))): times for product, times in terms.items()
    }

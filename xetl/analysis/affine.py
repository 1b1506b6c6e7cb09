"""Facts about index values: signs, divisors, variation, and where they are defined.

Index arithmetic is assumed not to overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import partial
from math import gcd
from typing import TypeAlias, TypeVar

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from xetl.analysis.control_flow import loop_of_counter, sources
from xetl.dialects.base import Index, around, constant_index
from xetl.dialects.upstream import arith, gpu, index, memref, scf
from xetl.dialects.xetile import InitTileOp, UpdateTileOffsetOp
from xetl.worklist import sources_first

_NEVER_NEGATIVE = (
    *(gpu.BlockIdOp, gpu.ThreadIdOp, gpu.SubgroupIdOp, gpu.GlobalIdOp),
    *(gpu.BlockDimOp, gpu.GridDimOp, gpu.NumSubgroupsOp, memref.DimOp),
)
_KEEPS_SIGN = (
    *(arith.AddiOp, arith.MuliOp, arith.MinsiOp, arith.DivsiOp, arith.RemsiOp),
    *(arith.DivuiOp, arith.RemuiOp, arith.FloordivsiOp, arith.CeildivsiOp),
    arith.IndexCastOp,
)
"""Operations whose result is not negative if no operand is negative."""
_KEEPS_FACTOR = frozenset(
    (
        *("addi", "subi", "minsi", "minui", "maxsi", "maxui", "remui", "remsi"),
        *("add", "sub", "mins", "minu", "maxs", "maxu", "rems", "remu"),
        *("index_cast", "index_castui", "extsi", "extui", "casts", "castu"),
    )
)
"""Operations of `arith` and `index` that keep common divisors of their operands."""
T = TypeVar("T")
_Rule: TypeAlias = tuple[Callable[..., T], Sequence[Index]]
"""A function, and the values whose facts it takes."""
Terms: TypeAlias = dict[tuple[int, ...], int]
"""A sum of products: maps the sorted ids of the factors to the coefficient."""
_DIFFERENCES = (arith.SubiOp, index.SubOp)
_PRODUCTS = (arith.MuliOp, index.MulOp)
_CASTS = (arith.IndexCastOp, index.CastsOp)
_DEEPEST = 12


def _settled(
    value: Index,
    rule_of: Callable[[SSAValue], _Rule[T]],
    start: T,
    of_number: Callable[[int], T],
) -> T:
    """Return the fact about a value that follows from the rules of all it depends on.

    Facts begin as ``start``; rules are applied until nothing changes.
    """
    if isinstance(value, int):
        return of_number(value)
    rules: dict[SSAValue, _Rule[T]] = {}

    def sources_of(each: SSAValue) -> list[SSAValue]:
        rules[each] = rule_of(each)
        return [source for source in rules[each][1] if isinstance(source, SSAValue)]

    order = list(sources_first(value, sources_of))
    known, is_settled = dict.fromkeys(order, start), False

    def of(source: Index) -> T:
        return of_number(source) if isinstance(source, int) else known[source]

    while not is_settled:
        is_settled = True
        for each in order:
            combine, sources = rules[each]
            found = combine(*map(of, sources))
            is_settled &= found == known[each]
            known[each] = found
    return known[value]


# Signs ------------------------------------------------------------------------------


def is_non_negative(
    value: Index, is_size: Callable[[BlockArgument], bool] | None = None
) -> bool:
    """Whether a value is known to be 0 or more.

    Args:
        is_size: whether a block argument that belongs to no loop is never negative.
    """
    rule = partial(_sign_rule, is_size=is_size)
    return _settled(value, rule, True, lambda number: number >= 0)


def _sign_rule(
    value: SSAValue, is_size: Callable[[BlockArgument], bool] | None
) -> _Rule[bool]:
    """Return a function, and the values whose signs it takes."""
    number, op = constant_index(value), value.owner
    if number is not None:
        return _all, [number]
    loop = loop_of_counter(value)
    if loop is not None:  # its step is positive
        return _all, [loop.lower_bound]
    if isinstance(value, BlockArgument):
        return _known(is_size is not None and is_size(value))
    if isinstance(op, memref.ExtractStridedMetadataOp):
        rank = (len(op.results) - 2) // 2
        return _known(isinstance(value, OpResult) and 1 <= value.index < 2 + rank)
    if isinstance(op, arith.MaxsiOp | arith.MinuiOp):
        return _any, op.operands
    if isinstance(op, arith.SelectOp):
        return _all, op.operands[1:]
    divisor = divisor_of(value)
    if divisor is not None:
        return _all, [divisor]
    if isinstance(op, _KEEPS_SIGN):
        return _all, op.operands
    return _known(isinstance(op, _NEVER_NEGATIVE))


def _all(*found: bool) -> bool:
    return all(found)


def _any(*found: bool) -> bool:
    return any(found)


def _known(is_true: bool) -> _Rule[bool]:
    return _all, [0 if is_true else -1]


def divisor_of(remainder: SSAValue) -> SSAValue | None:
    """Return ``c`` if the value is ``x - x // c * c``, which has the sign of ``c``."""
    op = remainder.owner
    product = op.rhs.owner if isinstance(op, arith.SubiOp) else None
    quotient = product.lhs.owner if isinstance(product, arith.MuliOp) else None
    if not isinstance(quotient, arith.FloordivsiOp):
        return None
    assert isinstance(op, arith.SubiOp)
    assert isinstance(product, arith.MuliOp)
    by, divisor = quotient.rhs, product.rhs
    is_one = by is divisor or constant_index(by) == constant_index(divisor) is not None
    return divisor if is_one and quotient.lhs is op.lhs else None


# Factors ----------------------------------------------------------------------------


def multiple_of(value: Index, factor: int) -> SSAValue | None:
    """Return ``x`` if the value is ``x * factor``, else None."""
    if isinstance(value, int):
        return None
    owner = value.owner
    if factor == 1 and not isinstance(owner, arith.ConstantOp):
        return value
    if isinstance(owner, arith.MuliOp):
        left, right = owner.operands
        if constant_index(right) == factor:
            return left
        if constant_index(left) == factor:
            return right
    return None


def is_multiple_of(value: Index, factor: int) -> bool:
    """Whether the value is known to be a multiple of ``factor``."""
    return divisor(value) % factor == 0


def divisor(value: Index) -> int:
    """Return a divisor of an index, or of the last offset of a tile.

    0 is returned for a value that is 0, a multiple of every number. The analysis is
    optimistic: values that control flow joins start with the divisor 0, and iterations
    lower it until nothing changes.
    """
    return _settled(value, _divisor_rule, 0, abs)


def _divisor_rule(value: SSAValue) -> _Rule[int]:
    """Return a function, and the values whose divisors it takes."""
    number, op = constant_index(value), value.owner
    if number is not None:
        return gcd, [number]
    joined = joined_values(value)
    if joined is not None:
        return gcd, joined
    if isinstance(op, InitTileOp):
        return gcd, op.mixed_offsets[-1:] or [1]
    if isinstance(op, UpdateTileOffsetOp):
        return gcd, [op.tile, *(op.mixed_offsets[-1:] or [1])]
    name = op.name.partition(".")[2] if isinstance(op, Operation) else ""
    if isinstance(op, Operation) and name in _KEEPS_FACTOR:
        return gcd, op.operands
    if isinstance(op, _PRODUCTS):
        return int.__mul__, op.operands
    if isinstance(op, arith.ShliOp):
        by = constant_index(op.rhs)
        return (gcd, [1]) if by is None else (int.__mul__, [op.lhs, 1 << by])
    return gcd, [1]


def joined_values(value: SSAValue) -> Sequence[SSAValue] | None:
    """Return the values that control flow joins; None if an operation computes it."""
    owner = value.owner
    if isinstance(owner, arith.SelectOp):
        return [owner.true_value, owner.false_value]
    loop = loop_of_counter(value)
    if loop is not None:  # the lower bound plus some steps
        return [loop.lower_bound, loop.step]
    return sources(value)


# How values vary --------------------------------------------------------------------


def varying_terms(value: SSAValue, differing: Container[Index]) -> Terms:
    """Return ``value`` as a sum of products, without the terms that are uniform.

    ``id * 8 + n`` and ``(id + 1) * 8`` both vary by ``8 * id``: their difference is the
    same for all subgroups, so a loop from one to the other has the same trip count.

    Args:
        differing: the values that differ between subgroups.
    """
    return _terms(value, lambda each: None if each in differing else {})


def constant_distance(value: Index, other: Index) -> int | None:
    """Return ``other - value`` if it is a constant, else None."""
    terms = _added(_terms(other, _constant_term), _terms(value, _constant_term), -1)
    return terms.get((), 0) if terms.keys() <= {()} else None


def _constant_term(value: Index) -> Terms | None:
    number = constant_index(value)
    return None if number is None else {(): number}


def counts_below(value: Index, end: Index) -> bool:
    """Whether ``0 <= value < end`` in all trips of the loops whose counters it has."""
    room = _added(_terms(end, _constant_term), _extreme(value, 1), -1)
    if room.keys() != {()} or room[()] < 1:
        return False
    least = _extreme(value, -1)
    return least.get((), 0) >= 0 if least.keys() <= {()} else is_non_negative(value)


def _extreme(value: Index, sign: int) -> Terms:
    """Return the largest number (``sign`` 1) or the least (-1) that counters give it.

    Inner counters are replaced first: their bounds may depend on outer ones.
    """
    counters: dict[int, tuple[int, scf.ForOp]] = {}

    def known(each: Index) -> Terms | None:
        if isinstance(each, SSAValue) and isinstance(each.owner, _CASTS):
            return {(id(each),): 1}  # from a type that may not hold its number
        loop = loop_of_counter(each)
        if loop is not None:
            counters[id(each)] = len([*around(loop, Operation)]), loop
        return _constant_term(each)

    terms = _terms(value, known)
    while here := [each for each in counters if (each,) in terms]:
        counter = max(here, key=lambda each: counters[each][0])
        loop, times = counters[counter][1], terms.pop((counter,))
        bound = _terms(loop.lower_bound, known)
        if times * sign > 0:
            bound = _added(_terms(loop.upper_bound, known), {(): 1}, -1)
        terms = _added(terms, {each: n * times for each, n in bound.items()}, 1)
    return terms


def _terms(
    value: Index, known: Callable[[Index], Terms | None], depth: int = 0
) -> Terms:
    """Return a value as a sum of products.

    Args:
        known: returns the terms of a value that is not to be expanded, or None. A
            product is expanded if one factor is known.
    """
    found = known(value)
    if found is not None:
        return found
    assert isinstance(value, SSAValue)
    op = value.owner
    if depth < _DEEPEST:
        if isinstance(op, _CASTS):
            return _terms(op.operands[0], known, depth + 1)
        if isinstance(op, (arith.AddiOp, index.AddOp, *_DIFFERENCES)):
            left, right = (_terms(v, known, depth + 1) for v in op.operands)
            return _added(left, right, -1 if type(op) in _DIFFERENCES else 1)
        if isinstance(op, _PRODUCTS):
            for factor, other in (op.operands, reversed(op.operands)):
                if known(factor) is not None:
                    return _scaled(_terms(other, known, depth + 1), factor)
    return {(id(value),): 1}


def _added(left: Terms, right: Terms, sign: int) -> Terms:
    found = dict(left)
    for product, times in right.items():
        found[product] = found.get(product, 0) + sign * times
    return {product: times for product, times in found.items() if times}


def _scaled(terms: Terms, factor: SSAValue) -> Terms:
    number = constant_index(factor)
    if number is not None:
        return {product: times * number for product, times in terms.items() if number}
    return {
        tuple(sorted((*product, id(factor)))): times for product, times in terms.items()
    }


# Where values are defined -----------------------------------------------------------


def is_defined_outside(value: Index, op: Operation) -> bool:
    """Whether the value is defined outside of the regions of ``op``."""
    if isinstance(value, int):
        return True
    block = block_of(value)
    while block is not None:
        parent = block.parent_op()
        if parent is op:
            return False
        block = parent.parent if parent is not None else None
    return True


def dominates(value: Index, op: Operation) -> bool:
    """Whether ``value`` is available right before ``op``."""
    if isinstance(value, int):
        return True
    owner, block = value.owner, block_of(value)
    here = None if block is None else block.find_ancestor_op_in_block(op)
    if here is None:
        return False
    return isinstance(owner, Block) or owner.is_before_in_block(here)


def block_of(value: SSAValue) -> Block | None:
    """Return the block in which a value is defined."""
    owner = value.owner
    return owner if isinstance(owner, Block) else owner.parent

"""Where along one dimension a block begins: what can be compared with another one."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TypeAlias

from xdsl.ir import BlockArgument, Operation, SSAValue

from xetl.dialects.base import Index
from xetl.dialects.upstream import arith, scf
from xetl.transforms.folding import integer_of


@dataclass(frozen=True)
class Offset:
    """``symbol + constant``, in elements; in earlier turns of a loop some steps less.

    Attributes:
        symbol: None: there is only a constant.
        constant: is added to it.
        step: not 0: any number of these, at least one, are subtracted.
    """

    symbol: SSAValue | None
    constant: int
    step: int = 0


@dataclass(frozen=True)
class Residue:
    """What differs from ``symbol + constant`` by a multiple of ``modulus``.

    Attributes:
        symbol: None: there is only a constant.
        constant: is added to it.
        modulus: 0: it is equal.
    """

    symbol: SSAValue | None
    constant: int
    modulus: int


_MOST_TURNS = 16
"""Of a ring of buffers: in a longer one turns are not told from one another."""

Begin: TypeAlias = Offset | Residue | None
"""None: nothing is known."""


def offset_of(index: Index) -> Offset:
    """An index as a sum; constants that were added are seen."""
    if isinstance(index, int):
        return Offset(None, index)
    number = integer_of(index)
    if number is not None:
        return Offset(None, number)
    op = index.owner
    if isinstance(op, arith.AddiOp):
        for value, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            number = integer_of(other)
            if number is not None:
                inner = offset_of(value)
                return Offset(inner.symbol, inner.constant + number)
    return Offset(index, 0)


def added(begin: Begin, more: Index) -> Begin:
    """Further on by ``more``."""
    other = offset_of(more)
    if not isinstance(begin, Offset) or None not in (begin.symbol, other.symbol):
        return None
    return Offset(begin.symbol or other.symbol, begin.constant + other.constant)


def _residue_of(begin: Begin) -> Residue | None:
    """What is known of it modulo something: of a ring of buffers, say."""
    if begin is None or isinstance(begin, Residue):
        return begin
    if begin.step:
        return None
    inner = _remainder(begin.symbol) or Residue(begin.symbol, 0, 0)
    return Residue(inner.symbol, inner.constant + begin.constant, inner.modulus)


def _remainder(value: SSAValue | None) -> Residue | None:
    """Of ``(s + 96) mod 128``: s, 96 and 128; None if it is no such value."""
    op = None if value is None else value.owner
    if not isinstance(op, arith.RemuiOp | arith.RemsiOp):
        return None
    modulus = integer_of(op.rhs) or 0
    # A negative number counts from 2^64 down: only powers of two do not mind.
    if modulus <= 0 or (isinstance(op, arith.RemuiOp) and modulus & (modulus - 1)):
        return None
    inner = _residue_of(offset_of(op.lhs))
    assert inner is not None
    return Residue(inner.symbol, inner.constant, gcd(inner.modulus, modulus))


def are_apart(a: Begin, m: int, b: Begin, n: int) -> bool:
    """Whether ``m`` elements from ``a`` on are none of ``n`` from ``b`` on."""
    if isinstance(a, Offset) and isinstance(b, Offset) and a.symbol is b.symbol:
        if not b.step:
            return _later_is_apart(a, m, b, n)
        return not a.step and _later_is_apart(b, n, a, m)
    left, right = _residue_of(a), _residue_of(b)
    if left is None or right is None or left.symbol is not right.symbol:
        return False
    modulus = gcd(left.modulus, right.modulus)
    if modulus == 0:
        return False
    distance = (right.constant - left.constant) % modulus
    return distance >= m and modulus - distance >= n


def _later_is_apart(a: Offset, m: int, b: Offset, n: int) -> bool:
    """The same where ``b`` is of this turn and ``a`` may be of an earlier one."""
    # With more steps than one they are even further apart.
    distance = b.constant - a.constant + a.step
    if a.step > 0:
        return distance >= m
    if a.step < 0:
        return -distance >= n
    return distance >= m or -distance >= n


# Loops ------------------------------------------------------------------------------


def is_outside(value: Index | None, loop: Operation) -> bool:
    """Whether a value is the same in all turns."""
    return not isinstance(value, SSAValue) or not loop.is_ancestor(value.owner)


def before(begin: Begin, loop: Operation) -> Begin:
    """The same in the turn before this one, or in all turns before it."""
    if begin is None or is_outside(begin.symbol, loop):
        return begin
    if isinstance(begin, Offset) and begin.step:
        return begin if _growth(begin.symbol, loop) is not None else None
    residue = _residue_of(begin)
    if residue is None or is_outside(residue.symbol, loop):
        return residue
    growth = _growth(residue.symbol, loop)
    if growth is None:
        return None
    modulus, step = gcd(residue.modulus, growth.modulus), growth.constant
    if modulus == 0:
        return Offset(residue.symbol, residue.constant, step)
    if modulus // gcd(modulus, step) > _MOST_TURNS:
        modulus = gcd(modulus, step)
    return Residue(residue.symbol, (residue.constant - step) % modulus, modulus)


def _growth(value: SSAValue | None, loop: Operation) -> Residue | None:
    """By what a counter, or an index that a loop carries, grows from turn to turn."""
    if not isinstance(loop, scf.ForOp) or not isinstance(value, BlockArgument):
        return None
    if value.block is not loop.body.block:
        return None
    if value.index == 0:
        step = integer_of(loop.step)
        return None if step is None else Residue(None, step, 0)
    end = value.block.last_op
    assert end is not None
    after = _residue_of(offset_of(end.operands[value.index - 1]))
    if after is None or after.symbol is not value:
        return None
    return Residue(None, after.constant, after.modulus)

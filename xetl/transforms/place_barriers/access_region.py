"""Compare the regions of memory that two accesses touch."""

from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import TypeAlias

from xdsl.ir import BlockArgument, Operation, SSAValue

from xetl.analysis.control_flow import yielded
from xetl.dialects.base import Index
from xetl.dialects.upstream import arith, scf
from xetl.dialects.xetile import InitTileOp, tile_type, unmoved
from xetl.records import record
from xetl.transforms.canonicalize.folding import integer_of


@record(frozen=True)
class AccessRegion:
    """A block of a matrix.

    Attributes:
        matrix: the base, sizes and strides, which all blocks of a matrix share; or the
            tile if these are not known.
        begins: where the block begins along each dimension.
        shape: its extents; along leading dimensions of the base there is one element.
    """

    matrix: tuple[Index, ...]
    begins: tuple[Begin, ...]
    shape: tuple[int, ...]

    def is_same_as(self, other: AccessRegion) -> bool:
        """Whether the two are known to be one block."""
        known = all(isinstance(begin, Offset) for begin in self.begins)
        return known and self == other

    def is_apart_from(self, other: AccessRegion) -> bool:
        """Whether the two are known to have no element in common."""
        if self.matrix != other.matrix:
            return False
        pairs = zip(self.begins, self.shape, other.begins, other.shape)
        return any(are_apart(*each) for each in pairs)

    def before(self, loop: Operation) -> AccessRegion | None:
        """Return the region of the block in earlier iterations of a loop.

        Return None if nothing is known of it.
        """
        if all(is_outside(each, loop) for each in self.matrix):
            begins = tuple(before(begin, loop) for begin in self.begins)
            return replace(self, begins=begins)
        steps = _steps_of_tile(self.matrix[0], loop)
        if steps is None:
            return None
        pairs = zip(self.begins, steps)
        begins = tuple(_stepped(begin, step, loop) for begin, step in pairs)
        return replace(self, begins=begins)


def _stepped(begin: Begin, step: int, loop: Operation) -> Begin:
    """Add the step of a moving tile. Return None if the offset changes as well."""
    if isinstance(begin, Offset) and is_outside(begin.symbol, loop):
        return replace(begin, step=step)
    return None


def _steps_of_tile(tile: Index, loop: Operation) -> tuple[int, ...] | None:
    """Return by how much a loop moves a tile that it carries, or None if unknown."""
    if not isinstance(tile, BlockArgument) or not isinstance(loop, scf.ForOp):
        return None
    if tile.block is not loop.body.block:
        return None
    after = region_of(yielded(tile.block)[tile.index - 1])
    if after is None or after.matrix != (tile,):
        return None
    steps = [
        begin.constant
        for begin in after.begins
        if isinstance(begin, Offset) and begin.symbol is None
    ]
    return tuple(steps) if len(steps) == len(after.begins) else None


def region_of(tile: SSAValue, count: int = 1) -> AccessRegion | None:
    """Return the region of ``count`` tiles side by side; None for a scattered tile."""
    type_ = tile_type(tile)
    if type_.scattered:
        return None
    tile, moves = unmoved(tile)
    rows, columns = type_.shape
    matrix: tuple[Index, ...] = (tile,)
    begins: list[Begin] = [offset_of(0)] * 2
    if isinstance(op := tile.owner, InitTileOp):
        matrix = (op.source, *op.mixed_sizes, *op.mixed_strides)
        begins = [offset_of(each) for each in op.mixed_offsets]
    # Tiles of batched matrices move in the last two dimensions.
    for steps in [each.mixed_offsets for each in reversed(moves)]:
        last = begins[-len(steps) :]
        begins[-len(steps) :] = [added(begin, step) for begin, step in zip(last, steps)]
    shape = (1,) * (len(begins) - 2) + (rows, columns * count)
    return AccessRegion(matrix, tuple(begins), shape)


@record(frozen=True)
class Offset:
    """``symbol + constant``, in elements; or this minus some steps of a loop.

    Attributes:
        step: if not 0, one or more of these steps are subtracted.
    """

    symbol: SSAValue | None
    constant: int
    step: int = 0


@record(frozen=True)
class Residue:
    """A number that differs from ``symbol + constant`` by a multiple of ``modulus``.

    If that is 0, it equals the sum; without a symbol there is only the constant.
    """

    symbol: SSAValue | None
    constant: int
    modulus: int


_MOST_TURNS = 16
"""The longest ring of buffers in which iterations can be distinguished."""

Begin: TypeAlias = Offset | Residue | None
"""None: nothing is known."""


def offset_of(index: Index) -> Offset:
    """Return an index as the sum of a value and a constant."""
    constant = 0
    while not isinstance(index, int):
        number = integer_of(index)
        if number is not None:
            index = number
            break
        term = _constant_term(index)
        if term is None:
            return Offset(index, constant)
        index, number = term
        constant += number
    return Offset(None, constant + index)


def _constant_term(value: SSAValue) -> tuple[SSAValue, int] | None:
    """Return x and 4 for ``x + 4``. Return None for other values."""
    op = value.owner
    if isinstance(op, arith.AddiOp):
        for inner, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            number = integer_of(other)
            if number is not None:
                return inner, number
    return None


def added(begin: Begin, more: Index) -> Begin:
    """Add ``more`` to a begin. Return None if the sum has two symbols."""
    other = offset_of(more)
    if not isinstance(begin, Offset) or None not in (begin.symbol, other.symbol):
        return None
    return Offset(begin.symbol or other.symbol, begin.constant + other.constant)


def _residue_of(begin: Begin) -> Residue | None:
    """Return a begin as a residue, as in a ring of buffers, or None if unknown."""
    if begin is None or isinstance(begin, Residue):
        return begin
    if begin.step:
        return None
    symbol, constant, modulus = begin.symbol, begin.constant, 0
    while (divided := _modulus_of(symbol)) is not None:
        inner = offset_of(divided[0])
        symbol, constant = inner.symbol, constant + inner.constant
        modulus = gcd(modulus, divided[1])
    return Residue(symbol, constant, modulus)


def _modulus_of(value: SSAValue | None) -> tuple[SSAValue, int] | None:
    """Return s and 128 for ``s mod 128``. Return None for other values."""
    op = None if value is None else value.owner
    if not isinstance(op, arith.RemuiOp | arith.RemsiOp):
        return None
    modulus = integer_of(op.rhs) or 0
    # An unsigned remainder reads a negative number as 2^64 less its absolute value:
    # this keeps residues only modulo a power of two.
    if modulus <= 0 or (type(op) is arith.RemuiOp and modulus & (modulus - 1)):
        return None
    return op.lhs, modulus


def are_apart(a: Begin, m: int, b: Begin, n: int) -> bool:
    """Whether ``m`` elements from ``a`` on and ``n`` from ``b`` on are disjoint."""
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
    """Do the same; ``b`` is of this iteration, ``a`` may be of an earlier one."""
    # With more than one step they are even further apart.
    distance = b.constant - a.constant + a.step
    if a.step > 0:
        return distance >= m
    if a.step < 0:
        return -distance >= n
    return distance >= m or -distance >= n


# Loops ------------------------------------------------------------------------------


def is_outside(value: Index | None, loop: Operation) -> bool:
    """Whether a value is the same in all iterations of a loop."""
    return not isinstance(value, SSAValue) or not loop.is_ancestor(value.owner)


def before(begin: Begin, loop: Operation) -> Begin:
    """Return a begin as it was in the previous iteration, or in all earlier ones."""
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
    """Return how much a counter, or a carried index, grows in each iteration."""
    if not isinstance(loop, scf.ForOp) or not isinstance(value, BlockArgument):
        return None
    if value.block is not loop.body.block:
        return None
    if value.index == 0:
        step = integer_of(loop.step)
        return None if step is None else Residue(None, step, 0)
    after = _residue_of(offset_of(yielded(value.block)[value.index - 1]))
    if after is None or after.symbol is not value:
        return None
    return Residue(None, after.constant, after.modulus)

"""Ranges of index values, derived from constants and the number of subgroups.

A kernel needs no bounds check at run time where a range proves the bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from xetl.analysis.affine import divisor_of
from xetl.dialects.base import Index, constant_index, integer_width
from xetl.dialects.upstream import arith, gpu, scf
from xetl.worklist import sources_first


class Range(NamedTuple):
    """All numbers from ``low`` to ``high``, both included."""

    low: int
    high: int


class Ranges:
    """Ranges of the values of a kernel.

    Args:
        subgroups: the number of subgroups in a workgroup.
    """

    def __init__(self, subgroups: int) -> None:
        self._subgroups = subgroups
        self._known: dict[SSAValue, Range | None] = {}

    def say(self, value: SSAValue, range_: Range) -> None:
        """Set the range of a value, such as a loop counter."""
        self._known[value] = range_

    def of(self, value: Index) -> Range | None:
        """Return the range of an index; None if it is unknown."""
        if isinstance(value, int):
            return Range(value, value)

        def begun(each: SSAValue) -> Iterable[SSAValue]:
            self._known[each] = None  # a loop-carried value may depend on itself
            # Its range depends on these values.
            owner = each.owner
            if isinstance(owner, Operation):
                return () if owner.regions else owner.operands
            loop = owner.parent_op()
            return loop.operands if isinstance(loop, scf.ForOp) else ()

        for each in sources_first(value, begun, self._known):
            self._known[each] = self._computed(each)
        return self._known[value]

    def _of_argument(self, value: SSAValue) -> Range | None:
        """Return the range of a loop counter, or of a value that a loop increments."""
        assert isinstance(value, BlockArgument)
        loop = value.block.parent_op()
        if not isinstance(loop, scf.ForOp):
            return None
        bounds = [self.of(v) for v in (loop.lower_bound, loop.upper_bound, loop.step)]
        if any(each is None for each in bounds):
            return None
        low, high, step = (each for each in bounds if each is not None)
        if value.index == 0:
            last = max(high.high - 1, low.low)
            if low.low == low.high and 0 < step.low == step.high:
                last -= (last - low.low) % step.low
            return Range(low.low, last)
        end = value.block.last_op
        assert isinstance(end, scf.YieldOp)
        carried = value.index - 1
        first = self.of(loop.init_args[carried])
        following = end.operands[carried].owner
        if first is None or step.low < 1 or not isinstance(following, arith.AddiOp):
            return None
        lhs, rhs = following.operands
        added = constant_index(rhs if lhs is value else lhs)
        if value not in (lhs, rhs) or added is None:
            return None
        most = added * max(-((low.low - high.high) // step.low), 0)
        return Range(first.low + min(most, 0), first.high + max(most, 0))

    def _of_operation(self, op: Operation, value: SSAValue) -> Range | None:
        """Return the range that an operation has for any operands."""
        constant = constant_index(value)
        if constant is not None:
            return Range(constant, constant)
        if isinstance(op, gpu.SubgroupIdOp):
            return Range(0, self._subgroups - 1)
        if isinstance(op, gpu.BlockIdOp):
            return _PROGRAM
        divisor = divisor_of(value)
        most = None if divisor is None else constant_index(divisor)
        return Range(0, most - 1) if most is not None and most > 0 else None

    def _computed(self, value: SSAValue) -> Range | None:
        op = value.owner
        if isinstance(op, Block):
            found = self._of_argument(value)
            return found if found is not None and _is_exact(found) else None
        if isinstance(op, arith.IndexCastOp):
            found = self.of(op.operands[0])
            return found if found is not None and _fits(found, value) else None
        alone = self._of_operation(op, value)
        if alone is not None or not isinstance(value.type, IndexType):
            return alone
        if isinstance(op, arith.SelectOp):
            sides = self.of(op.true_value), self.of(op.false_value)
        elif isinstance(op, _BINARY):
            sides = self.of(op.lhs), self.of(op.rhs)
        else:
            return None
        left, right = sides
        if left is None and isinstance(op, arith.RemuiOp):
            left = _ANYTHING
        if isinstance(op, arith.MinsiOp | arith.MaxsiOp) and sides != (None, None):
            left, right = left or _ANY_INDEX, right or _ANY_INDEX
        found = None
        if left is not None and right is not None:
            found = _joined(op, left, right)
        return found if found is not None and _is_exact(found) else None


_PROGRAM = Range(0, (1 << 40) - 1)
"""More programs than run in a year; products with sizes of tiles are exact."""

_ANYTHING = Range(0, (1 << 64) - 1)
"""Any unsigned number of 64 bits."""

_ANY_INDEX = Range(-(1 << 63), (1 << 63) - 1)

_BINARY = (
    *(arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.RemuiOp, arith.DivuiOp),
    *(arith.FloordivsiOp, arith.MinsiOp, arith.MaxsiOp, arith.ShrsiOp),
    arith.MinuiOp,
)


def _is_exact(range_: Range) -> bool:
    """Whether all numbers of the range fit an index."""
    return range_.low >= -(1 << 63) and range_.high < 1 << 63


def _fits(range_: Range, value: SSAValue) -> bool:
    """Whether a cast to the type of ``value`` preserves all numbers of the range."""
    most = 1 << (integer_width(value.type) or 64) - 1
    return -most <= range_.low and range_.high < most


def _joined(op: Operation, left: Range, right: Range) -> Range | None:
    """Return the range of the result of an operation on two ranges."""
    if isinstance(op, arith.AddiOp):
        return Range(left.low + right.low, left.high + right.high)
    if isinstance(op, arith.SubiOp):
        return Range(left.low - right.high, left.high - right.low)
    if isinstance(op, arith.MuliOp):
        corners = [a * b for a in left for b in right]
        return Range(min(corners), max(corners))
    if isinstance(op, arith.SelectOp):
        return Range(min(left.low, right.low), max(left.high, right.high))
    if isinstance(op, arith.MinsiOp | arith.MaxsiOp):
        choose = min if type(op) is arith.MinsiOp else max
        return Range(choose(left.low, right.low), choose(left.high, right.high))
    if isinstance(op, arith.ShrsiOp):
        by = right.low
        is_known = by == right.high and 0 <= by < 64
        return Range(left.low >> by, left.high >> by) if is_known else None
    if isinstance(op, arith.MinuiOp) and left.low >= 0 and right.low >= 0:
        return Range(min(left.low, right.low), min(left.high, right.high))
    if left.low < 0 or right.low < 1:
        return None
    if isinstance(op, arith.RemuiOp):
        return Range(0, min(left.high, right.high - 1))
    return Range(left.low // right.high, left.high // right.low)

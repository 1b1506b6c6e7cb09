"""Where new operations go: one after the other, with one location."""

from __future__ import annotations

from typing import TypeVar

from xdsl.dialects.builtin import LocationAttr, UnknownLoc
from xdsl.ir import Block, Operation, SSAValue

from xetl.dialects.base import Index
from xetl.dialects.upstream import arith

OpT = TypeVar("OpT", bound=Operation)


class Place:
    """A point between the operations of a block.

    Args:
        block: operations go into it.
        before: ahead of this one, which stands in ``block``; None: at the end.
        location: of what is added and says no other itself.
    """

    def __init__(
        self, block: Block, before: Operation | None, location: LocationAttr
    ) -> None:
        self.block = block
        self._before = before
        self.location = location

    def add(self, op: OpT) -> OpT:
        """Put ``op`` here, behind what was added before; gives it back."""
        if self._before is None:
            self.block.add_op(op)
        else:
            self.block.insert_op_before(op, self._before)
        for each in op.walk() if op.regions else (op,):
            if isinstance(each.location, UnknownLoc):
                each.location = self.location
        return op

    # Arithmetic on `index`; what is known stays a number ----------------------------

    def value(self, index: Index) -> SSAValue:
        """``index`` as a value."""
        if isinstance(index, int):
            return self.add(arith.ConstantOp.index(index)).result
        return index

    def plus(self, left: Index, right: Index) -> Index:
        """``left + right``."""
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if left == 0:
            return right
        if right == 0:
            return left
        return self.add(arith.AddiOp(self.value(left), self.value(right))).result

    def minus(self, left: Index, right: Index) -> Index:
        """``left - right``."""
        if isinstance(left, int) and isinstance(right, int):
            return left - right
        if right == 0:
            return left
        return self.add(arith.SubiOp(self.value(left), self.value(right))).result

    def times(self, left: Index, factor: int) -> Index:
        """``left * factor``."""
        if isinstance(left, int):
            return left * factor
        if factor == 1:
            return left
        return self.add(arith.MuliOp(left, self.value(factor))).result

    def divided(self, left: Index, divisor: int) -> Index:
        """``left / divisor``, rounded down; neither is negative."""
        if isinstance(left, int):
            return left // divisor
        if divisor == 1:
            return left
        return self.add(arith.DivuiOp(left, self.value(divisor))).result

    def remainder(self, left: Index, divisor: int) -> Index:
        """``left`` modulo ``divisor``; neither is negative."""
        if isinstance(left, int):
            return left % divisor
        if divisor == 1:
            return 0
        return self.add(arith.RemuiOp(left, self.value(divisor))).result

    def is_less(self, left: SSAValue, limit: int) -> SSAValue:
        """Whether ``left < limit``; neither is negative."""
        compared = arith.CmpiOp("ult", left, self.value(limit))
        return self.add(compared).result

"""A builder of scalar index code that folds constants as it goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, VectorType, i1
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from xetl.dialects.upstream import arith, scf, vector

Index = SSAValue | int


@dataclass
class Build:
    """Inserts operations at one place; index arguments may be Python ints."""

    point: InsertPoint

    def insert(self, op: Operation) -> SSAValue:
        """Insert an operation, return its first result."""
        self.emit(op)
        return op.results[0]

    def emit(self, op: Operation) -> None:
        """Insert an operation without results."""
        if self.point.insert_before is not None:
            self.point.block.insert_op_before(op, self.point.insert_before)
        else:
            self.point.block.add_op(op)

    def value(self, index: Index) -> SSAValue:
        """The index as an SSA value."""
        if isinstance(index, SSAValue):
            return index
        return self.insert(arith.ConstantOp.index(index))

    def add(self, left: Index, right: Index) -> Index:
        """Left + right."""
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if right == 0 and isinstance(right, int):
            return left
        if left == 0 and isinstance(left, int):
            return right
        return self.insert(arith.AddiOp(self.value(left), self.value(right)))

    def sub(self, left: Index, right: Index) -> Index:
        """Left - right."""
        if isinstance(left, int) and isinstance(right, int):
            return left - right
        if isinstance(right, int) and right == 0:
            return left
        return self.insert(arith.SubiOp(self.value(left), self.value(right)))

    def mul(self, left: Index, right: Index) -> Index:
        """Left * right."""
        if isinstance(left, int) and isinstance(right, int):
            return left * right
        for one, other in ((left, right), (right, left)):
            if isinstance(one, int) and one in (0, 1):
                return other if one else 0
        return self.insert(arith.MuliOp(self.value(left), self.value(right)))

    def minimum(self, left: Index, right: Index) -> Index:
        """The smaller of two."""
        if isinstance(left, int) and isinstance(right, int):
            return min(left, right)
        return self.insert(arith.MinsiOp(self.value(left), self.value(right)))

    def maximum(self, left: Index, right: Index) -> Index:
        """The larger of two."""
        if isinstance(left, int) and isinstance(right, int):
            return max(left, right)
        return self.insert(arith.MaxsiOp(self.value(left), self.value(right)))

    def ceildiv(self, left: Index, right: int) -> Index:
        """Left / right, rounded up; left is not negative."""
        if isinstance(left, int):
            return -(-left // right)
        if right == 1:
            return left
        more = self.value(self.add(left, right - 1))
        return self.insert(arith.DivuiOp(more, self.value(right)))

    def round_up(self, extent: Index, step: int) -> Index:
        """The next multiple of ``step``; the extent is not negative."""
        return extent if step == 1 else self.mul(self.ceildiv(extent, step), step)

    def compare(self, predicate: str, left: Index, right: Index) -> SSAValue:
        """An i1."""
        return self.insert(arith.CmpiOp(predicate, self.value(left), self.value(right)))

    def select(self, condition: SSAValue, left: Index, right: Index) -> SSAValue:
        """One of two indices."""
        return self.insert(
            arith.SelectOp(condition, self.value(left), self.value(right))
        )

    def splat(self, scalar: SSAValue, lanes: int) -> SSAValue:
        """A vector with the scalar in every lane; the scalar itself for one lane."""
        if lanes == 1:
            return scalar
        return self.insert(vector.BroadcastOp(scalar, VectorType(scalar.type, [lanes])))

    def mask(self, limit: Index, lanes: int) -> SSAValue:
        """Lanes below ``limit``."""
        return self.insert(
            vector.CreateMaskOp([self.value(limit)], VectorType(i1, [lanes]))
        )

    def lane_numbers(self, lanes: int) -> SSAValue:
        """0, 1, 2, ... as an index vector."""
        return self.insert(vector.StepOp(VectorType(IndexType(), [lanes])))

    def loop(self, upper: Index, step: Index) -> scf.ForOp:
        """An empty loop from 0; its yield is added by the caller."""
        return for_loop(self, [self.value(v) for v in (0, upper, step)], ())

    def when(self, condition: SSAValue) -> Build:
        """The inside of ``if condition:``."""
        block = Block()
        end = scf.YieldOp()
        block.add_op(end)
        self.emit(scf.IfOp(condition, [], Region(block)))
        return Build(InsertPoint.before(end))


def for_loop(
    build: Build, bounds: Sequence[SSAValue], inits: Sequence[SSAValue]
) -> scf.ForOp:
    """An empty loop (lower, upper, step) that carries ``inits``, without its yield."""
    block = Block(arg_types=[IndexType(), *(value.type for value in inits)])
    lower, upper, step = bounds
    op = scf.ForOp(lower, upper, step, list(inits), Region(block))
    build.emit(op)
    return op


def before(op: Operation) -> Build:
    """A builder in front of an operation."""
    return Build(InsertPoint.before(op))


def at_end(block: Block) -> Build:
    """A builder at the end of a block that has no terminator yet."""
    return Build(InsertPoint.at_end(block))

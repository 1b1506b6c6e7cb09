"""align-block-bases: block messages move matrices that begin at any address.

Why: the base of a message must be a multiple of 64 bytes. The address of a slice, or of
an attention head of 40 or 80 elements, is none. The pass rounds the base down to a
multiple and adds the difference to the column offset.

Before: ``simt.block_load %base, %width, %height, %pitch, %x, %y``
After:  the same of ``%base & -64, %width + %gap, %height, %pitch, %x + %gap / bytes``
        with ``%gap = %base & 63``

``xegpu.any_base`` lists the arguments whose base need not be a multiple of 64.
Left alone: arrays of which a block may begin to the left of the first column: a message
reads zeros there, but would read the bytes before the matrix after the change. Arrays
that are folded (their rows have nothing between them). Kernels with many loads in
loops, such as attention with heads of 128.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import IndexType, ModuleOp, i64
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.analysis.affine import dominates
from xetl.analysis.memory import is_dead
from xetl.dialects.base import around, constant_index, dense_i64, operations_in
from xetl.dialects.upstream import arith, scf
from xetl.ir.builder import Builder, Pass
from xetl.worklist import Worklist
from xetl_xegpu import simt
from xetl_xegpu.limits import BASE_ALIGNMENT, WIDTH_STEP
from xetl_xegpu.lowering import record_arguments
from xetl_xegpu.simt.block_ops import BlockOp, root_and_distance

_MOST_IN_LOOPS = 56
"""The most loads in loops. [measured] With more of them, offsets that are not constant
cost more than 3 % of the instructions. Attention of bf16 on pvc, instructions a step:
heads of 128 (80 loads) 612, without the pass 573; heads of 80 (52 loads), whose base
may be any address, 447 and 443."""


class AlignBlockBasesPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        # A text that begins at this stage has no recorded arguments.
        if record_arguments.ARGUMENTS not in op.attributes:
            return
        for kernel in operations_in(op, simt.FuncOp):
            if record_arguments.FOLDED not in kernel.attributes:
                _align(op, kernel)


def _align(module: ModuleOp, kernel: simt.FuncOp) -> None:
    passed = record_arguments.passed_arguments(module, kernel.body.block.args)
    every = enumerate(passed)
    addresses = {value: n for n, (kind, value, *_) in every if kind == "array"}
    ranges = record_arguments.kernel_ranges(module, kernel)
    found: dict[int, list[BlockOp]] = {}
    starts_left: set[int] = set()
    blocks = [b for b in operations_in(kernel, BlockOp) if b.by_lanes is None]
    loads = [each for each in blocks if isinstance(each, simt.BlockLoadOp)]
    if sum(any(around(b, scf.ForOp, scf.WhileOp)) for b in loads) > _MOST_IN_LOOPS:
        return
    for block in blocks:
        argument = _argument_of(SSAValue.get(block.base), addresses)
        if argument is None:
            return
        found.setdefault(argument, []).append(block)
        columns = ranges.of(SSAValue.get(block.x))
        if columns is None or columns.low < 0:
            starts_left.add(argument)
    moved = set(record_arguments.moved_arguments(kernel))
    shift, steps = _Shift(), list[int]()
    for argument in sorted((found.keys() & moved) - starts_left):
        for block in found[argument]:
            shift.apply(block)
        widest = max(block.shape.bits // 8 for block in found[argument])
        steps += [argument, max(WIDTH_STEP, widest)]
    shift.erase_dead()
    kernel.attributes[record_arguments.ANY_BASE] = dense_i64(steps)


def _argument_of(base: SSAValue, addresses: dict[SSAValue, int]) -> int | None:
    """Return the number of the array that contains ``base``. None: it is unknown."""
    found, todo = set[int](), Worklist([base])
    for value in todo:
        if value in addresses:
            found.add(addresses[value])
        elif isinstance(value.owner, arith.IndexCastOp | arith.AddiOp):
            todo += value.owner.operands
    return found.pop() if len(found) == 1 else None


class _Shift:
    """Moves blocks to matrices that begin at a multiple of 64 bytes."""

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], SSAValue] = {}
        self._replaced: dict[SSAValue, None] = {}

    def apply(self, block: BlockOp) -> None:
        """Change base, width and column offset of a message."""
        base = SSAValue.get(block.base)
        gap = self._with(arith.AndiOp, base, BASE_ALIGNMENT - 1)
        size = (block.shape.bits // 8).bit_length() - 1
        columns = self._with(arith.ShruiOp, gap, size) if size else gap
        new = {
            "base": self._with(arith.AndiOp, base, -BASE_ALIGNMENT),
            "width": self._sum(SSAValue.get(block.width), gap),
            "x": self._moved(SSAValue.get(block.x), columns),
        }
        # A matrix of one row has an artificial pitch; it must cover the longer row.
        if constant_index(block.height) == 1:
            pitch = SSAValue.get(block.pitch)
            new["pitch"] = self._with(arith.AddiOp, pitch, BASE_ALIGNMENT)
        self._replaced |= dict.fromkeys(block.operands)
        block.move(**new)

    def erase_dead(self) -> None:
        """Erase the operations that computed only former operands of messages."""
        todo = list(self._replaced)
        while todo:
            owner = todo.pop().owner
            if isinstance(owner, Operation) and owner.parent and is_dead(owner):
                todo += owner.operands
                Rewriter.erase_op(owner)

    def _moved(self, x: SSAValue, columns: SSAValue) -> SSAValue:
        """Return ``x + columns``. Offsets at constant distances keep these distances.

        The constant part is added last, so that equal sums of the rest are shared.
        """
        root, distance = root_and_distance(x)
        if root is None:
            start = columns
        elif isinstance(root.type, IndexType):
            start = self._sum(self._once(root, arith.IndexCastOp, root, i64), columns)
        else:
            start = self._sum(root, columns)
        return self._with(arith.AddiOp, start, distance) if distance else start

    def _once(
        self, at: SSAValue, make: Callable[..., Operation], *operands: Any
    ) -> SSAValue:
        """Return the result of an operation, which is made once, right after ``at``."""
        key = (make, *operands)
        if key not in self._made:
            b = Builder.after(at)
            given = (b.constant(x, i64) if isinstance(x, int) else x for x in operands)
            self._made[key] = b.insert(make(*given))
        return self._made[key]

    def _sum(self, one: SSAValue, other: SSAValue) -> SSAValue:
        return self._once(_later(one, other), arith.AddiOp, one, other)

    def _with(
        self, make: Callable[..., Operation], value: SSAValue, number: int
    ) -> SSAValue:
        """Combine ``value`` with a constant by ``make``, right after the value."""
        return self._once(value, make, value, number)


def _later(one: SSAValue, other: SSAValue) -> SSAValue:
    """Return the value that is computed later. Some operation must use both."""
    owner = other.owner
    there = owner if isinstance(owner, Operation) else owner.parent_op()
    return other if there is not None and dominates(one, there) else one

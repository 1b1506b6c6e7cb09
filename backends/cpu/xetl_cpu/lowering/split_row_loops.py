"""split-row-loops: a loop over rows is split at the end of its matrix.

    scf.for %i = 0 to %rows {
      %at = arith.addi %i, %first
      %limit = arith.select (%at < %n), %cols, 0      # columns of a row that exist
      A(%i, %limit)
    }
    ->
    scf.while (%from = 0) : %from < %rows {
      %end = min(%rows, %n - %first if that is more than %from)
      %limit = arith.select (%from + %first < %n), %cols, 0
      scf.for %i = %from to %end { A(%i, %limit) }
      yield %end
    }

Why: a tile ends where its matrix does. Without the split, each row tests whether it is
inside the matrix, and computes again where its vectors need masks.  Within a part,
these are the same for all rows, and most loops have one part (Zen 4, f32, 8192 rows of
7 by 64 x 8: ``max(x, 0)`` 25.1 us, then 18.5, softmax 70.6, then 60.6).

Before: loops, as the last pass that looks at rows.
Left alone: loops that carry values, and tests that compare anything else than the
counter plus loop-invariant values.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import chain
from typing import NamedTuple

from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import Rewriter

from xetl.analysis.affine import is_defined_outside
from xetl.dialects.base import Index, constant_index, operations_in
from xetl.dialects.upstream import arith, scf
from xetl.ir.builder import Builder, Pass
from xetl_cpu.lowering.hoist_launch_invariants import hoist_scalars
from xetl_cpu.lowering.tiles import is_non_negative
from xetl_cpu.lowering.vectorize_element_loops import BY_ELEMENTS
from xetl_cpu.lowering.widen_programs import IS_PROGRAMS

_TESTS = ("slt", "ult")


class SplitRowLoopsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for loop in operations_in(op, scf.ForOp):
            step = constant_index(loop.step)
            is_marked = {IS_PROGRAMS, BY_ELEMENTS} & loop.attributes.keys()
            if step is None or loop.init_args or is_marked:
                continue
            groups = dict[object, list[_Test]]()
            for test in _tests_of(loop, loop.body.block.args[0]):
                groups.setdefault(test.group, []).append(test)
            alike = [each for each in groups.values() if _spread(each) < step]
            if alike:
                _split(loop, step, alike)


class _Test(NamedTuple):
    """``counter + offsets + number < end``."""

    op: arith.CmpiOp
    offsets: tuple[SSAValue, ...] = ()
    number: int = 0

    @property
    def group(self) -> object:
        """A key that is equal for tests that differ only by their number."""
        return self.op.rhs, self.op.predicate_name, frozenset(self.offsets)


def _tests_of(
    loop: scf.ForOp,
    value: SSAValue,
    offsets: tuple[SSAValue, ...] = (),
    number: int = 0,
) -> Iterator[_Test]:
    """Yield the tests of a value, which is the counter plus offsets and a number."""
    for use in value.uses:
        op = use.operation
        if not isinstance(op, arith.AddiOp | arith.CmpiOp):
            continue
        other = op.operands[1 - use.index]
        known = constant_index(other) if isinstance(op, arith.AddiOp) else None
        if known is not None:
            yield from _tests_of(loop, op.result, offsets, number + known)
        elif other is value or not is_defined_outside(other, loop):
            continue
        elif isinstance(op, arith.CmpiOp):
            if use.index == 0 and op.predicate_name in _TESTS:
                yield _Test(op, offsets, number)
        else:
            yield from _tests_of(loop, op.result, (*offsets, other), number)


def _spread(tests: list[_Test]) -> int:
    numbers = [each.number for each in tests]
    return max(numbers) - min(numbers)


def _split(loop: scf.ForOp, step: int, groups: list[list[_Test]]) -> None:
    """Run the loop in parts within which each test has one answer."""
    build = Builder.before(loop)
    first, upper = loop.lower_bound, loop.upper_bound
    ends = [end for tests in groups for end in _ends(build, tests, first)]
    index = IndexType()
    test, part = Block(arg_types=[index]), Block(arg_types=[index])
    at = Builder.at_end(test, loop.location)
    at.add(scf.ConditionOp(at.compare("slt", test.args[0], upper), test.args[0]))
    build.add(scf.WhileOp([first], [index], Region(test), Region(part)))
    (first,) = part.args
    at = Builder.at_end(part, loop.location)
    end: Index = upper
    for each in ends:
        is_ahead = at.compare("sgt", each, first)
        end = at.minimum(end, at.select(is_ahead, each, upper))
    loop.detach()
    at.add(loop)
    loop.operands[0], loop.operands[1] = first, Builder.before(loop).index(end)
    if step > 1:
        end = at.plus(first, at.rounded_up(at.minus(end, first), step))
    at.add(scf.YieldOp(at.index(end)))
    at = Builder.before(loop)
    for each in chain(*groups):
        # Its answer is the same for all iterations from `first` on.
        place = at.plus(reduce(at.plus, each.offsets, first), each.number)
        answer = at.compare(each.op.predicate_name, place, each.op.rhs)
        Rewriter.replace_op(each.op, [], [answer])
    hoist_scalars(loop)


def _ends(build: Builder, tests: list[_Test], first: SSAValue) -> Iterator[Index]:
    """Yield the rows, from the loop's first row on, where answers change.

    One step contains all tests between the first and the last one, because their
    numbers differ by less than a step.
    """
    op, offsets, _ = tests[0]
    offset: Index = reduce(build.plus, offsets, 0)
    numbers = [each.number for each in tests]
    known = is_non_negative(offset) and is_non_negative(first)
    begins = min(numbers) < 0 or not known
    for number in sorted({min(numbers), max(numbers)}):
        yield build.minus(op.rhs, build.plus(offset, number))
        if op.predicate_name == "ult" and begins:
            yield build.minus(0, build.plus(offset, number))

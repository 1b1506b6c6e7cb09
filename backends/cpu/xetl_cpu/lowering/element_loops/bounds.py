"""In which iterations of a loop over elements all tests of bounds hold.

A tested value is a sum: of the loop's counter times a number, of counters of loops
inside, which have bounds of their own, and of what is known before the loop begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from xetl.analysis.affine import divisor_of, is_defined_outside, is_non_negative
from xetl.analysis.control_flow import loop_of_counter
from xetl.dialects.base import Index, constant_index, known
from xetl.dialects.upstream import arith, scf
from xetl.ir.builder import Builder


def is_known_before(value: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a value is known before a loop begins."""
    return constant_index(value) is not None or is_defined_outside(value, loop)


def is_sum_of_counters(value: SSAValue, loop: scf.ForOp, of_inner: bool = True) -> bool:
    """Whether a value is a sum of counters, times numbers, and of what is known before.

    Args:
        value: an index in the body of the loop.
        loop: the loop whose counter may be a term.
        of_inner: whether counters of loops inside may be terms.
    """
    inner, op = loop_of_counter(value), value.owner
    if is_known_before(value, loop) or inner is loop:
        return True
    if inner is not None:
        bounds = inner.lower_bound, inner.upper_bound
        return of_inner and all(is_known_before(each, loop) for each in bounds)
    if not isinstance(op, arith.AddiOp | arith.SubiOp | arith.MuliOp):
        return False
    is_linear = type(op) is not arith.MuliOp or any(map(constant_index, op.operands))
    return is_linear and all(is_sum_of_counters(v, loop, of_inner) for v in op.operands)


def step_of_sum(op: Operation, steps: Sequence[int]) -> int | None:
    """Return how much larger a sum or a product becomes; None if this is unknown.

    Args:
        op: computes an index.
        steps: how much larger each operand becomes.
    """
    match op:
        case arith.AddiOp():
            return steps[0] + steps[1]
        case arith.SubiOp():
            return steps[0] - steps[1]
        case arith.MuliOp():
            numbers = map(constant_index, reversed(op.operands))
            found = [n * step for n, step in zip(numbers, steps) if n is not None]
            return found[0] if found else (None if any(steps) else 0)
        case _:
            return None


def least_value(
    build: Builder,
    value: SSAValue,
    loop: scf.ForOp,
    counter: Index | None = None,
    is_most: bool = False,
) -> Index:
    """Return the least value of a sum in a loop, or a value that is never less.

    Args:
        build: inserts in front of the loop.
        value: a sum as for `is_sum_of_counters`, also of remainders and extremes.
        loop: the loop.
        counter: its counter, if the value is wanted for one iteration.
        is_most: whether the largest value is wanted instead.
    """
    if is_known_before(value, loop):
        return known(value)

    def least(each: SSAValue, is_turned: bool = False) -> Index:
        return least_value(build, each, loop, counter, is_most != is_turned)

    inner, op, by = loop_of_counter(value), value.owner, divisor_of(value)
    if inner is loop and counter is not None:
        return counter
    if inner is not None and is_most:
        return _last(build, inner, loop, least(inner.upper_bound))
    if inner is not None:
        return least(inner.lower_bound)
    if by is not None:
        edge = build.minus(least(by), 1 if is_most else -1)
        return (build.maximum if is_most else build.minimum)(edge, 0)
    assert isinstance(op, Operation)
    return _of_operation(build, op, least, is_most)


def _of_operation(
    build: Builder, op: Operation, least: Callable[..., Index], is_most: bool
) -> Index:
    """Return the extreme of a result, from those of the operands."""
    match op:
        case arith.AddiOp():
            return build.plus(least(op.lhs), least(op.rhs))
        case arith.SubiOp():
            return build.minus(least(op.lhs), least(op.rhs, is_turned=True))
        case arith.SelectOp():
            choose = build.maximum if is_most else build.minimum
            return choose(*map(least, op.operands[1:]))
        case arith.MinsiOp():
            return build.minimum(least(op.lhs), least(op.rhs))
        case _:
            assert isinstance(op, arith.MuliOp)
            number, other = constant_index(op.lhs), op.rhs
            if number is None:
                number, other = constant_index(op.rhs), op.lhs
            assert number is not None
            return build.times(least(other, is_turned=number < 0), number)


def _last(build: Builder, inner: scf.ForOp, loop: scf.ForOp, end: Index) -> Index:
    """Return the last value of a counter, or one that is never less.

    Args:
        build: inserts in front of the loop.
        inner: the loop whose counter it is.
        loop: the loop around it, or the same.
        end: the most that the upper bound is.
    """
    step, first = constant_index(inner.step), inner.lower_bound
    last = build.minus(end, 1)
    if step == 1 or step is None or not is_known_before(first, loop):
        return last
    distance = build.maximum(build.minus(last, known(first)), 0)
    return build.plus(known(first), build.times(build.divided(distance, step), step))


def iterations_inside(
    build: Builder, loop: scf.ForOp, tests: Mapping[arith.CmpiOp, int]
) -> tuple[Index, Index]:
    """Return where all tests hold: the first iteration, and the one behind the last.

    Args:
        build: inserts in front of the loop.
        loop: a loop of step 1.
        tests: comparisons `ult` of a sum of counters with a size known before, and how
            much the sum grows in each iteration: 0 if it does not, negative if it
            becomes less.
    """
    start = known(loop.lower_bound)
    begin: Index = loop.lower_bound
    end: Index = loop.upper_bound
    for test, step in tests.items():
        size = known(test.rhs)
        least, most = (
            least_value(build, test.lhs, loop, start, m) for m in (False, True)
        )
        if not step:
            holds = [build.compare("ult", each, size) for each in (least, most)]
            end = build.select(build.both(*holds), end, loop.lower_bound)
            continue
        before, inside = build.minus(0, least), build.minus(size, most)
        if step < 0:
            before = build.minus(build.plus(most, 1), size)
            inside = build.plus(least, 1)
        end = build.minimum(end, build.plus(start, _steps(build, inside, step)))
        if step < 0 or not is_non_negative(least):
            first = build.plus(start, _steps(build, before, step))
            begin = build.maximum(begin, first)
    return begin, end


def _steps(build: Builder, distance: Index, step: int) -> Index:
    """Return the steps that cover a distance; 0 or less if it is negative."""
    if abs(step) == 1:
        return distance
    more = build.plus(distance, abs(step) - 1)
    return build.pure(arith.DivsiOp, more, abs(step))

"""In which iterations of a loop over elements all tests of bounds hold.

A tested value is a sum: of the loop's counter times a number, of counters of loops
inside, which have bounds of their own, and of what is known before the loop begins.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue

from xetl.analysis.affine import is_defined_outside, is_non_negative
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


def least_value(
    build: Builder,
    value: SSAValue,
    loop: scf.ForOp,
    counter: Index,
    is_most: bool = False,
) -> Index:
    """Return the least value of such a sum for a value of the counter, or the most."""
    if is_known_before(value, loop):
        return known(value)

    def least(each: SSAValue, is_turned: bool = False) -> Index:
        return least_value(build, each, loop, counter, is_most != is_turned)

    inner, op = loop_of_counter(value), value.owner
    if inner is loop:
        return counter
    if inner is not None:
        last = build.minus(known(inner.upper_bound), 1)
        return last if is_most else known(inner.lower_bound)
    match op:
        case arith.AddiOp():
            return build.plus(least(op.lhs), least(op.rhs))
        case arith.SubiOp():
            return build.minus(least(op.lhs), least(op.rhs, is_turned=True))
        case _:
            assert isinstance(op, arith.MuliOp)
            number, other = constant_index(op.lhs), op.rhs
            if number is None:
                number, other = constant_index(op.rhs), op.lhs
            assert number is not None
            return build.times(least(other, is_turned=number < 0), number)


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

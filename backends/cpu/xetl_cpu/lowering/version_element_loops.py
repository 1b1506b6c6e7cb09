"""version-element-loops: tests of bounds become one test in front of a loop.

    scf.for %i = 0 to %m { scf.for %j = 0 to %n {
      %inside = arith.cmpi ult, %j, %size {xetile.bounds = "A"}
      %a = scf.if %inside { memref.load %A[%i, %j] } else { 0.0 }
      A(%a)
    } }
    ->
    %fits = %n - 1 < %size
    scf.if %fits {
      scf.for %i = 0 to %m { scf.for %j = 0 to %n { A(memref.load %A[%i, %j]) } }
    } else { as before }

Why: an element outside of its array reads as 0 and is not stored, so each access has a
test; programs that are right never fail one. Without tests LLVM merges loads of the
same element, and vectors need no tests either (Zen 4, local alignment of 300 by 300
letters: 226 us, then 155).

The test is for the outermost loop before which the least and the largest index are
known: sums of counters, each at most once, of remainders, and of what is known before.
Loops inside have tests of their own for the other accesses.

A remainder as of ``A[(i + 1) % n]`` is a sum less than ``2 * n`` and not less than
``-n``: the copy has two selects instead of the division, and the test says so as well.

Products and sums are fused in neither copy: elements are the same wherever they are.

Before: loops. After it vectorize-element-loops takes both copies.
Left alone: loops with vectors, and long ones, as the code becomes twice as long. The
old loop is not split at the ends of its arrays any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects.builtin import IndexType, ModuleOp, UnitAttr, i1
from xdsl.ir import Block, Operation, Region, SSAValue

from xetl.analysis.affine import (
    constant_distance,
    divisor_of,
    is_defined_outside,
    is_non_negative,
)
from xetl.analysis.control_flow import loop_of_counter
from xetl.dialects.base import Index, constant_index, is_vector, known, operations_in
from xetl.dialects.kernel_attributes import BOUNDS
from xetl.dialects.upstream import arith, memref, scf
from xetl.ir.builder import Builder, Pass
from xetl.transforms.canonicalize import canonicalize
from xetl_cpu.lowering.element_loops.body import round_each
from xetl_cpu.lowering.element_loops.bounds import is_known_before, least_value
from xetl_cpu.lowering.vectorize_element_loops import BY_ELEMENTS

_MOST_OPERATIONS = 300
_LARGEST = 1 << 40
_MOST_TIMES = 1 << 20
"""What an index is a sum of, and by how much it is multiplied: no sum overflows."""


class _UnknownError(Exception):
    """The least or the largest value is not known before the loop."""


class VersionElementLoopsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for loop in _outermost(op):
            _version(loop)


def _outermost(op: Operation) -> list[scf.ForOp]:
    """Return the loops in an operation that are in no other loop in it."""
    found: list[scf.ForOp] = []
    for each in (op for region in op.regions for b in region.blocks for op in b.ops):
        found += [each] if isinstance(each, scf.ForOp) else _outermost(each)
    return found


def _version(loop: scf.ForOp) -> None:
    """Make copies of a loop, and of those in it, for the case that all tests hold."""
    ops = [*loop.walk()]
    has_vectors = any(is_vector(value.type) for op in ops for value in op.results)
    if len(ops) <= _MOST_OPERATIONS and not has_vectors:
        loop = _copied(loop, _settled(loop), [*_testable(loop)], [*_wrapped(loop)])
    for inner in _outermost(loop):
        _version(inner)


def _settled(loop: scf.ForOp) -> list[SSAValue]:
    """Return the answers of tests in front of the loop that it uses."""
    used = dict.fromkeys(value for op in loop.walk() for value in op.operands)
    return [v for v in used if _is_test(v.owner) and is_defined_outside(v, loop)]


def _is_test(op: Operation | Block) -> bool:
    return isinstance(op, arith.CmpiOp) and BOUNDS in op.attributes


def _testable(loop: scf.ForOp) -> Iterator[arith.CmpiOp]:
    """Yield the tests whose answers for all iterations are known before the loop."""
    for test in operations_in(loop, arith.CmpiOp):
        is_fixed = _is_test(test) and is_known_before(test.rhs, loop)
        if is_fixed and _has_extremes(test.lhs, loop):
            yield test


def _wrapped(loop: scf.ForOp) -> Iterator[tuple[Operation, SSAValue]]:
    """Yield remainders of numbers that are nearly in range, and the divisors."""
    for op in loop.walk():
        is_number = len(op.results) == 1
        divisor = _positive(divisor_of(op.results[0])) if is_number else None
        if divisor is None or not is_known_before(divisor, loop):
            continue
        if _has_extremes(op.operands[0], loop):
            block = Block()
            build = Builder.at_end(block)
            most = least_value(build, op.operands[0], loop, is_most=True)
            ends = divisor, build.times(divisor, 2)
            if any(constant_distance(end, most) is not None for end in ends):
                yield op, divisor
            block.erase(safe_erase=False)


def _positive(divisor: SSAValue | None) -> SSAValue | None:
    """Return what a divisor is if it is positive: front ends choose 1 for 0 and -1."""
    op = divisor.owner if divisor else None
    if not isinstance(op, arith.SelectOp):
        return divisor
    test, number = op.condition.owner, _positive(op.false_value)
    if not isinstance(test, arith.CmpiOp) or test.predicate_name != "eq":
        return divisor
    is_zero = test.lhs is number and constant_index(test.rhs) in (0, -1)
    return number if is_zero else divisor


def _has_extremes(value: SSAValue, loop: scf.ForOp) -> bool:
    """Whether the least and the largest index are known before the loop."""
    if value.type != IndexType():
        return False
    try:
        for is_most in (False, True):
            parts = _parts(value, loop, is_most)
            counters = [each for each in parts if not is_known_before(each, loop)]
            if len({*counters}) < len(counters):
                return False
    except _UnknownError:
        return False
    return True


def _parts(
    value: SSAValue, loop: scf.ForOp, is_most: bool, times: int = 1
) -> Iterator[SSAValue]:
    """Yield counters, and what is known before, of the least value or the largest."""
    if abs(times) > _MOST_TIMES:
        raise _UnknownError
    if is_known_before(value, loop):
        yield value
        return
    if loop_of_counter(value) is not None:
        yield value
    for each, is_greatest, number in _sources(value, is_most):
        yield from _parts(each, loop, is_greatest, times * number)


def _sources(value: SSAValue, is_most: bool) -> Iterator[tuple[SSAValue, bool, int]]:
    """Yield what an extreme is computed from, whether its most counts, and a factor."""
    inner, op, by = loop_of_counter(value), value.owner, divisor_of(value)
    if by is not None:
        yield by, True, 1
        return
    if inner is not None and constant_index(inner.step) is not None:
        yield inner.upper_bound if is_most else inner.lower_bound, is_most, 1
        return
    match op:
        case arith.AddiOp() | arith.MinsiOp() | arith.SelectOp():
            yield from ((each, is_most, 1) for each in op.operands[-2:])
        case arith.SubiOp():
            yield op.lhs, is_most, 1
            yield op.rhs, not is_most, 1
        case arith.MuliOp():
            known = [constant_index(each) for each in op.operands]
            number = known[0] if known[0] is not None else known[1]
            if number is None:
                raise _UnknownError
            other = op.operands[known[0] is not None]
            yield other, is_most != (number < 0), number
        case _:
            raise _UnknownError


def _copied(
    loop: scf.ForOp,
    settled: list[SSAValue],
    tests: list[arith.CmpiOp],
    wrapped: list[tuple[Operation, SSAValue]],
) -> scf.ForOp:
    """Return a copy without tests and divisions, or the loop if it has none of them."""
    if not (settled or tests or wrapped):
        return loop
    round_each(loop.walk())
    build = Builder.before(loop)
    copies: dict[SSAValue, SSAValue] = {v: build.constant(1, i1) for v in settled}
    conditions = [*settled, *_conditions(build, loop, tests)]
    conditions += _are_near(build, loop, wrapped)
    values = [each.operands[0] for each in (*tests, *(op for op, _ in wrapped))]
    parts = [p for v in values for m in (False, True) for p in _parts(v, loop, m)]
    conditions += _are_small(build, loop, dict.fromkeys(parts))
    copy = loop.clone(copies)
    regions = Region(Block([copy])), Region(Block())
    types = [each.type for each in loop.results]
    chosen = build.add(scf.IfOp(build.both(*conditions), types, *regions))
    for old, new in zip(loop.results, chosen.results):
        old.replace_all_uses_with(new)
    loop.detach()
    chosen.else_region.block.add_op(loop)
    for each in operations_in(chosen.else_region.block, scf.ForOp):
        each.attributes[BY_ELEMENTS] = UnitAttr()
    for each in (copy, loop):
        Builder.after(each).add(scf.YieldOp(*each.results))
    for test in tests:
        made = copies[test.result]
        made.replace_all_uses_with(Builder.before(copy).constant(1, i1))
    for op, divisor in wrapped:
        made, value = copies[op.results[0]], op.operands[0]
        found = _wrap(Builder.after(made), copies.get(value, value), divisor)
        made.replace_all_uses_with(found)
    canonicalize(copy)
    return copy


def _wrap(build: Builder, value: SSAValue, divisor: SSAValue) -> SSAValue:
    """Return ``value % divisor`` of a value in ``-divisor ... 2 * divisor - 1``."""
    below, above = build.plus(value, divisor), build.minus(value, divisor)
    found = build.select(build.compare("slt", value, 0), below, value)
    is_above = build.compare("sge", value, divisor)
    return build.index(build.select(is_above, above, found))


def _are_near(
    build: Builder, loop: scf.ForOp, wrapped: list[tuple[Operation, SSAValue]]
) -> Iterator[SSAValue]:
    """Yield conditions with which `_wrap` is right."""
    for op, divisor in wrapped:
        least, most = _extremes(build, op.operands[0], loop)
        yield build.compare("sgt", divisor, 0)
        yield build.compare("sge", least, build.minus(0, divisor))
        yield build.compare("slt", most, build.times(divisor, 2))


def _conditions(
    build: Builder, loop: scf.ForOp, tests: list[arith.CmpiOp]
) -> Iterator[SSAValue]:
    """Yield conditions with which the tests hold in all iterations."""
    for test in tests:
        least, most = _extremes(build, test.lhs, loop)
        if not is_non_negative(least):
            yield build.compare("sge", least, 0)
        yield build.compare("slt", most, known(test.rhs))


def _extremes(build: Builder, value: SSAValue, loop: scf.ForOp) -> tuple[Index, Index]:
    return least_value(build, value, loop), least_value(build, value, loop, None, True)


def _are_small(
    build: Builder, loop: scf.ForOp, values: Iterable[SSAValue]
) -> Iterator[SSAValue]:
    """Yield conditions with which no sum of the extremes overflows."""
    for each in values:
        is_size = isinstance(each.owner, memref.ExtractStridedMetadataOp)
        if is_known_before(each, loop) and not is_size and constant_index(each) is None:
            yield build.compare("ult", build.plus(each, _LARGEST), 2 * _LARGEST)

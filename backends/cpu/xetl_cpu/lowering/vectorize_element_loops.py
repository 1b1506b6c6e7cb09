"""vectorize-element-loops: a loop that computes elements takes a vector of them.

    scf.for %j = %from to %to {
      %inside = arith.cmpi ult, %j, %n {xetile.bounds = "A"}
      %a = scf.if %inside { memref.load %A[%i, %j] } else { 0.0 }
      memref.store f(%a), %B[%i, %j]
    }
    ->
    scf.for %first = %from to %to step 8 {
      scf.if <all tests of bounds hold from %first to %first + 7> {
        vector.store f(vector.load %A[%i, %first]), %B[%i, %first]
      } else {
        scf.for %j = %first to min(%first + 8, %to) { as before }
      }
    }

Why: users write some kernels as loops over elements, as they would for numba, whose
LLVM vectorises them (Zen 4, Jacobi's 5 points of 256 x 256 in f32: 98 us, then 25).
Elements are computed as before and in the order of the program, so no number changes.

Loops inside, of as many trips in all iterations, carry vectors. Conditions that are no
tests of bounds become masks. An element of a stored array that all iterations read, as
``D[i, k]`` of shortest paths, is tested not to be in the vector that an iteration
stores. Products and sums are not fused in either loop, so that equal
elements give equal results wherever they are.

Before: loops; the outermost ones that have the form are taken.
Left alone: loops that carry values, divide integers, compute in 16-bit floats, or
access elements that are not neighbours in memory or that another iteration stores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, product
from typing import NamedTuple

from xdsl.dialects.builtin import IndexType, ModuleOp, UnitAttr, i1
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from xetl.analysis.affine import constant_distance, is_defined_outside, is_non_negative
from xetl.analysis.control_flow import conditions_of, loop_of_counter, yielded
from xetl.analysis.memory import is_pure, roots_of
from xetl.codegen.arith import ROUNDED
from xetl.codegen.memref import static_strides
from xetl.codegen.types import byte_width, is_narrow_float
from xetl.dialects.base import (
    Index,
    constant_index,
    is_number,
    known,
    memref_type,
    operations_in,
    row_type,
)
from xetl.dialects.kernel_attributes import BOUNDS
from xetl.dialects.traits import is_elementwise
from xetl.dialects.upstream import arith, memref, scf, vector
from xetl.ir.builder import Builder, Pass, move_before, remade
from xetl.transforms.diagnostics import remark
from xetl_cpu.lowering.tiles import may_alias
from xetl_cpu.targets import find_target

BY_ELEMENTS = "xetl.by_elements"
"""Marks the loop over the elements of a vector: it is short."""

_DIVIDES = (
    *(arith.DivsiOp, arith.DivuiOp, arith.RemsiOp, arith.RemuiOp),
    *(arith.FloordivsiOp, arith.CeildivsiOp, arith.CeildivuiOp, arith.RemfOp),
)
_FUSED = (arith.AddfOp, arith.SubfOp, arith.MulfOp)
_CONTROL = (scf.IfOp, scf.ForOp, scf.YieldOp)
_CASTS = (arith.ExtfOp, arith.TruncfOp, arith.BitcastOp, arith.SelectOp)


@dataclass(frozen=True)
class VectorizeElementLoopsPass(Pass):
    target: str = "host"

    def rewrite(self, op: ModuleOp) -> None:
        vector_bytes = find_target(self.target).vector_bytes
        for loop in operations_in(op, scf.ForOp):
            lanes = _lanes(loop, vector_bytes)
            if lanes is None:
                continue
            found = _Vectors(loop, lanes)
            try:
                found.compute(loop.body.block)
                found.choose_iterations()
            except _RefusedError:
                found.drop()
            else:
                found.put_in_place()
                remark(loop, "loops", f"{lanes} elements at a time")


class _RefusedError(Exception):
    """The loop stays as it is."""


class _Access(NamedTuple):
    """An access of the old loop, and whether it is of as many elements as lanes."""

    op: memref.LoadOp | memref.StoreOp
    is_row: bool


def _lanes(loop: scf.ForOp, vector_bytes: int) -> int | None:
    """Return how many elements of all types a vector holds; None for other loops."""
    ops = [*loop.body.walk()]
    stores = [op for op in ops if isinstance(op, memref.StoreOp)]
    if constant_index(loop.step) != 1 or loop.init_args or not stores:
        return None
    types = [each.type for op in ops for each in op.results]
    types += [memref_type(op.memref).element_type for op in stores]
    widths = [byte_width(t) for t in types if is_number(t) and t != IndexType()]
    lanes = vector_bytes // max(widths, default=vector_bytes)
    trips = constant_distance(loop.lower_bound, loop.upper_bound)
    is_short = trips is not None and trips < 2 * lanes
    return None if lanes == 1 or is_short else lanes


class _Vectors:
    """Computes the body of a loop for a vector of iterations, in a new block.

    Attributes:
        scalars: new values for old ones that are equal in all lanes, or `counting`.
        counting: old values that are one larger in each lane; `scalars` has the first.
        vectors: new values with an element for each lane.
        tests: tests of bounds; the block is right if they hold for all lanes.
    """

    def __init__(self, loop: scf.ForOp, lanes: int) -> None:
        self.loop, self.lanes = loop, lanes
        self.ahead, self.block = Block(), Block()
        self.around = Block(arg_types=[IndexType()])
        self.outside = Builder.at_end(self.ahead, loop.location)
        self.build = Builder.at_end(self.block, loop.location)
        counter = loop.body.block.args[0]
        self.scalars: dict[SSAValue, SSAValue] = {counter: self.around.args[0]}
        self.counting: set[SSAValue] = {counter}
        self.vectors: dict[SSAValue, SSAValue] = {}
        self.broadcast: dict[SSAValue, SSAValue] = {}
        self.tests: list[arith.CmpiOp] = []
        self.accesses: list[_Access] = []

    # The body -------------------------------------------------------------------------

    def compute(self, block: Block, mask: SSAValue | None = None) -> None:
        """Compute all operations of a block where a mask is set; None: everywhere."""
        for op in block.ops:
            if isinstance(op, scf.YieldOp):
                continue
            if self._is_uniform(op):
                self._copy(op, mask)
            elif isinstance(op, scf.IfOp):
                self._choose(op, mask)
            elif isinstance(op, scf.ForOp):
                self._repeat(op, mask)
            elif isinstance(op, memref.LoadOp | memref.StoreOp):
                self._access(op, mask)
            elif self._is_count(op):
                self.build.add(op.clone(self.scalars))
                self.counting.update(op.results)
            elif is_elementwise(op):
                self._compute_elements(op)
            else:
                raise _RefusedError

    def _is_uniform(self, op: Operation) -> bool:
        return not any(
            value in self.vectors or value in self.counting
            for each in op.walk()
            for value in each.operands
        )

    def _copy(self, op: Operation, mask: SSAValue | None) -> None:
        """Copy an operation that computes the same in all lanes."""
        for each in op.walk():
            if isinstance(each, memref.LoadOp) and mask is None:
                self.accesses.append(_Access(each, is_row=False))
            elif not (is_pure(each) or isinstance(each, _CONTROL)):
                raise _RefusedError
        place = self.outside if isinstance(op, arith.ConstantOp) else self.build
        place.add(op.clone(self.scalars))

    def _is_count(self, op: Operation) -> bool:
        """Whether a result is the counter plus values that are equal in all lanes."""
        is_sum = isinstance(op, arith.AddiOp | arith.SubiOp)
        if not is_sum or op.result.type != IndexType():
            return False
        left, right = (each in self.counting for each in op.operands)
        if any(each in self.vectors for each in op.operands):
            return False
        return left != right if type(op) is arith.AddiOp else left and not right

    def _lanes_of(self, value: SSAValue) -> SSAValue:
        """Return a vector of an old value for all lanes."""
        found = self.vectors.get(value, self.broadcast.get(value))
        if found is None and not is_number(value.type):
            raise _RefusedError
        if found is None:
            scalar = self.scalars.get(value, value)
            type_ = row_type(value.type, self.lanes)
            is_outside = is_defined_outside(value, self.loop)
            place = self.outside if is_outside else self.build
            found = place.insert(vector.BroadcastOp(scalar, type_))
            if value in self.counting:
                step = self.outside.insert(vector.StepOp(type_))
                found = self.build.insert(arith.AddiOp(found, step))
            self.broadcast[value] = found
        return found

    def _compute_elements(self, op: Operation) -> None:
        values = (*op.operands, *op.results)
        is_narrow = any(is_narrow_float(each.type) for each in values)
        are_numbers = all(is_number(each.type) for each in values)
        is_refused = is_narrow and not isinstance(op, _CASTS)
        if is_refused or isinstance(op, _DIVIDES) or not are_numbers:
            raise _RefusedError
        types: list[Attribute] = [row_type(v.type, self.lanes) for v in op.results]
        new = self.build.add(remade(op, [*map(self._lanes_of, op.operands)], types))
        self.vectors.update(zip(op.results, new.results))

    # Memory ---------------------------------------------------------------------------

    def _access(
        self, op: memref.LoadOp | memref.StoreOp, mask: SSAValue | None
    ) -> None:
        """Load or store neighbours."""
        *others, last = op.indices
        element = memref_type(op.memref).element_type
        is_row = last in self.counting and not any(
            each in self.counting or each in self.vectors for each in others
        )
        stride = static_strides(memref_type(op.memref))[-1]
        if not is_row or stride != 1 or element == i1:
            raise _RefusedError
        self.accesses.append(_Access(op, is_row=True))
        base, *at = (self.scalars.get(v, v) for v in (op.memref, *op.indices))
        type_ = row_type(element, self.lanes)
        if isinstance(op, memref.StoreOp):
            is_own = self._is_sum(last, of_inner=False)
            if not is_own or not is_defined_outside(op.memref, self.loop):
                raise _RefusedError
            value = self._lanes_of(op.value)
            made = vector.StoreOp(value, base, at)
            if mask is not None:
                made = vector.MaskedstoreOp(base, at, mask, value)
            self.build.add(made)
            return
        load = vector.LoadOp(base, at, type_)
        if mask is not None:
            rest = self.outside.constant(0, type_)
            load = vector.MaskedloadOp(base, at, mask, rest, type_)
        self.vectors[op.result] = self.build.insert(load)

    def _choose(self, op: scf.IfOp, mask: SSAValue | None) -> None:
        """Compute both branches; results are chosen for each lane."""
        unknown = [c for c in conditions_of(op.condition) if not self._is_test(c)]
        yes, *no = (region.block for region in op.regions if region.blocks)
        if not unknown:
            self.compute(yes, mask)
            for old, value in zip(op.results, yielded(yes)):
                self._rename(old, value)
            return
        chosen = self.build.both(*map(self._lanes_of, unknown))
        self.compute(yes, self.build.conjunction(mask, chosen))
        if no:
            ones = self.outside.constant(1, chosen.type)
            left = self.build.insert(arith.XoriOp(chosen, ones))
            self.compute(no[0], self.build.conjunction(mask, left))
            for old, *values in zip(op.results, yielded(yes), yielded(no[0])):
                parts = map(self._lanes_of, values)
                self.vectors[old] = self.build.insert(arith.SelectOp(chosen, *parts))

    def _repeat(self, op: scf.ForOp, mask: SSAValue | None) -> None:
        """Compute a loop whose bounds are equal in all lanes; it carries vectors."""
        bounds = op.lower_bound, op.upper_bound, op.step
        if any(each in self.vectors or each in self.counting for each in bounds):
            raise _RefusedError
        old, inits = op.body.block, [*map(self._lanes_of, op.init_args)]
        body = Block(arg_types=[IndexType(), *(each.type for each in inits)])
        self.scalars[old.args[0]] = body.args[0]
        self.vectors.update(zip(old.args[1:], body.args[1:]))
        known_outside = dict(self.broadcast)
        with self.build.inside(body):
            self.compute(old, mask)
            self.build.add(scf.YieldOp(*map(self._lanes_of, yielded(old))))
        self.broadcast = known_outside
        lower, upper, step = (self.scalars.get(each, each) for each in bounds)
        new = self.build.add(scf.ForOp(lower, upper, step, inits, Region(body)))
        self.vectors.update(zip(op.results, new.results))

    def _rename(self, old: SSAValue, value: SSAValue) -> None:
        """Let an old value be another old one."""
        if value in self.vectors:
            self.vectors[old] = self.vectors[value]
        else:
            self.scalars[old] = self.scalars.get(value, value)
        if value in self.counting:
            self.counting.add(old)

    def _is_test(self, condition: SSAValue) -> bool:
        """Note a test of bounds. It must be known before the loop begins."""
        test = condition.owner
        if not isinstance(test, arith.CmpiOp) or BOUNDS not in test.attributes:
            return False
        left = self._is_sum(test.lhs)
        if test.predicate_name != "ult" or not left or not self._is_known(test.rhs):
            return False
        self.tests.append(test)
        return True

    def _is_known(self, value: SSAValue) -> bool:
        """Whether a value is known before the loop begins."""
        return constant_index(value) is not None or is_defined_outside(value, self.loop)

    def _is_sum(self, value: SSAValue, of_inner: bool = True) -> bool:
        """Whether a value is a sum of counters and of what is known before.

        Args:
            of_inner: whether counters of loops inside may be terms.
        """
        loop, op = loop_of_counter(value), value.owner
        if self._is_known(value) or loop is self.loop:
            return True
        if loop is not None:
            bounds = loop.lower_bound, loop.upper_bound
            return of_inner and all(map(self._is_known, bounds))
        is_sum = isinstance(op, arith.AddiOp | arith.SubiOp)
        return is_sum and all(self._is_sum(each, of_inner) for each in op.operands)

    def _at(
        self, build: Builder, value: SSAValue, counter: Index, is_most: bool = False
    ) -> Index:
        """Return the least value of a sum for a value of the counter, or the most."""
        if self._is_known(value):
            return known(value)
        loop, op = loop_of_counter(value), value.owner
        if loop is self.loop:
            return counter
        if loop is not None:
            last = build.minus(known(loop.upper_bound), 1)
            return last if is_most else known(loop.lower_bound)
        assert isinstance(op, arith.AddiOp | arith.SubiOp)
        left = self._at(build, op.lhs, counter, is_most)
        if type(op) is arith.AddiOp:
            return build.plus(left, self._at(build, op.rhs, counter, is_most))
        return build.minus(left, self._at(build, op.rhs, counter, not is_most))

    # The new loop ---------------------------------------------------------------------

    def choose_iterations(self) -> None:
        """Compute in which iterations of the new loop the vectors are right."""
        b = Builder.at_end(self.around, self.loop.location)
        first, (begin, end) = self.around.args[0], self._range()
        self.conditions = [b.compare("sle", b.plus(first, self.lanes), end)]
        if begin is not self.loop.lower_bound:
            self.conditions.append(b.compare("sge", first, begin))
        for stored, place in self._places_that_are_stored():
            ahead = b.minus(place, self._at(b, stored, first))
            self.conditions.append(b.compare("uge", ahead, self.lanes))

    def _places_that_are_stored(self) -> Iterator[tuple[SSAValue, Index]]:
        """Yield where elements are stored, and a place of those that all lanes read.

        Arrays that a kernel stores do not overlap themselves (`xetl.runtime.overlap`;
        views of texts might), so equal places along the last dimension are one element
        or rows apart, and each lane has its own. Rows that loops inside go through are
        not apart: lanes are in one row at a time, but iterations were in all of them,
        one after the other.
        """
        stores = [each for each in self.accesses if isinstance(each.op, memref.StoreOp)]
        for store, other in product(stores, self.accesses):
            roots = product(roots_of(store.op.memref), roots_of(other.op.memref))
            if store is other or not any(may_alias(*pair) for pair in roots):
                continue
            pairs = [*zip(store.op.indices, other.op.indices)]
            *rows, ahead = [constant_distance(*pair) for pair in pairs]
            place = other.op.indices[-1]
            if store.op.memref is not other.op.memref:
                raise _RefusedError
            is_array = isinstance(store.op.memref, BlockArgument)
            are_known = all(map(self._is_known, store.op.indices[:-1]))
            if is_array and any(rows) and are_known:
                continue
            if other.is_row and ahead == 0 and (is_array or set(rows) <= {0}):
                continue
            if other.is_row or not self._is_known(place):
                raise _RefusedError
            yield store.op.indices[-1], known(place)

    def drop(self) -> None:
        """Erase what was made."""
        for block in (self.block, self.around, self.ahead):
            block.erase(safe_erase=False)

    def put_in_place(self) -> None:
        """Run the block in these iterations, and the old loop in the others."""
        old, (first,) = self.loop, self.around.args
        for each in chain(old.body.walk(), self.block.walk()):
            if isinstance(each, _FUSED):
                each.attributes[ROUNDED] = UnitAttr()
        old.attributes[BY_ELEMENTS] = UnitAttr()
        upper, step = old.upper_bound, self.outside.index(self.lanes)
        new = scf.ForOp(old.lower_bound, upper, step, [], Region(self.around))
        self.outside.add(new)
        move_before(self.ahead.ops, old)
        old.detach()
        rest = Block()
        build = Builder.at_end(rest, old.location)
        last = build.minimum(build.plus(first, self.lanes), upper)
        old.operands[0], old.operands[1] = first, build.index(last)
        build.add(old)
        build = Builder.at_end(self.around, old.location)
        regions = Region(self.block), Region(rest)
        build.add(scf.IfOp(build.both(*self.conditions), [], *regions))
        for block in (self.block, rest, self.around):
            block.add_op(scf.YieldOp())

    def _range(self) -> tuple[Index, Index]:
        """Return where all tests hold: the first iteration, and the one behind."""
        build, loop = self.outside, self.loop
        start = known(loop.lower_bound)
        begin: Index = loop.lower_bound
        end: Index = loop.upper_bound
        for test in dict.fromkeys(self.tests):
            size = known(test.rhs)
            least, most = (self._at(build, test.lhs, start, s) for s in (False, True))
            if test.lhs not in self.counting:
                holds = [build.compare("ult", each, size) for each in (least, most)]
                end = build.select(build.both(*holds), end, loop.lower_bound)
                continue
            end = build.minimum(end, build.plus(start, build.minus(size, most)))
            if not is_non_negative(least):
                begin = build.maximum(begin, build.minus(start, least))
        return begin, end

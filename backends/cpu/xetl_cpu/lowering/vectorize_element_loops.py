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

Values that a loop only folds numbers into, in any order (`xetl.analysis.folds`), are
folded lane by lane and combined behind the loop.

Before: loops; the outermost ones that have the form are taken.
Left alone: loops that carry other values, divide by what is no constant, compute in
16-bit floats, load elements that are far apart in memory, store such that are not
neighbours, or access what another iteration stores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, product
from typing import NamedTuple

from xdsl.dialects.builtin import IndexType, ModuleOp, UnitAttr, i1
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from xetl.analysis.affine import constant_distance, is_defined_outside
from xetl.analysis.control_flow import conditions_of, yielded
from xetl.analysis.folds import fold_kind
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
from xetl.dialects.reduction_kinds import identity_of, operation_of
from xetl.dialects.traits import is_elementwise
from xetl.dialects.upstream import arith, memref, scf, vector
from xetl.ir.builder import Builder, Pass, move_before, remade
from xetl.transforms.diagnostics import remark
from xetl_cpu.lowering.element_bounds import (
    is_known_before,
    is_sum_of_counters,
    iterations_inside,
    least_value,
)
from xetl_cpu.lowering.strided_rows import strided_row
from xetl_cpu.lowering.tiles import may_alias
from xetl_cpu.targets import find_target

BY_ELEMENTS = "xetl.by_elements"
"""Marks the loop over the elements of a vector: it is short."""

_DIVIDES = (
    *(arith.DivsiOp, arith.DivuiOp, arith.RemsiOp, arith.RemuiOp),
    *(arith.FloordivsiOp, arith.CeildivsiOp, arith.CeildivuiOp),
)
_MOST_APART = 4
"""Elements farther apart are loaded one by one."""
_FUSED = (arith.AddfOp, arith.SubfOp, arith.MulfOp)
_CONTROL = (scf.IfOp, scf.ForOp, scf.YieldOp)
_INT_CASTS = (arith.IndexCastOp, arith.IndexCastuiOp)
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
            kinds = [fold_kind(loop, index) for index in range(len(loop.init_args))]
            if None in kinds:
                continue
            found = _Vectors(loop, lanes, [kind for kind in kinds if kind])
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
    are_numbers = all(is_number(each.type) for each in loop.init_args)
    is_idle = not (stores or loop.init_args)
    if constant_index(loop.step) != 1 or is_idle or not are_numbers:
        return None
    types = [each.type for op in ops for each in op.results]
    types += [memref_type(op.memref).element_type for op in stores]
    # Python's ints: vectors of them are computed, not of counters.
    has_ints = any(isinstance(op, _INT_CASTS) for op in ops)
    widths = [
        byte_width(t) for t in types if is_number(t) and (has_ints or t != IndexType())
    ]
    lanes = vector_bytes // max(widths, default=vector_bytes)
    trips = constant_distance(loop.lower_bound, loop.upper_bound)
    is_short = trips is not None and trips < 2 * lanes
    return None if lanes == 1 or is_short else lanes


class _Vectors:
    """Computes the body of a loop for a vector of iterations, in a new block.

    Attributes:
        scalars: new values for old ones that are equal in all lanes, or `counting`.
        counting: how much larger old values are in each lane than in the lane before;
            `scalars` has the first.
        vectors: new values with an element for each lane.
        tests: tests of bounds, and how much larger the tested value is in each lane;
            the block is right if they hold for all lanes.
        strides: the strides of arrays with which the block is right.
    """

    def __init__(self, loop: scf.ForOp, lanes: int, kinds: list[str]) -> None:
        self.loop, self.lanes, self.kinds = loop, lanes, kinds
        self.ahead, self.block = Block(), Block()
        carried = [each.type for each in loop.init_args]
        self.types: list[Attribute] = [*carried, *(row_type(t, lanes) for t in carried)]
        self.around = Block(arg_types=[IndexType(), *self.types])
        self.outside = Builder.at_end(self.ahead, loop.location)
        self.build = Builder.at_end(self.block, loop.location)
        counter = loop.body.block.args[0]
        self.scalars: dict[SSAValue, SSAValue] = {counter: self.around.args[0]}
        self.counting: dict[SSAValue, int] = {counter: 1}
        parts = self.around.args[1 + len(kinds) :]
        self.vectors: dict[SSAValue, SSAValue] = dict(
            zip(loop.body.block.args[1:], parts)
        )
        self.broadcast: dict[SSAValue, SSAValue] = {}
        self.tests: dict[arith.CmpiOp, int] = {}
        self.accesses: list[_Access] = []
        self.strides: dict[tuple[SSAValue, int], int] = {}

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
            elif step := self._step_of(op):
                self.build.add(op.clone(self.scalars))
                self.counting[op.results[0]] = step
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

    def _step_of(self, op: Operation) -> int:
        """Return how much larger a result is in each lane; 0 if this is not known."""
        is_known = not any(each in self.vectors for each in op.operands)
        if not is_known or [each.type for each in op.results] != [IndexType()]:
            return 0
        steps = [self.counting.get(each, 0) for each in op.operands]
        match op:
            case arith.AddiOp():
                return steps[0] + steps[1]
            case arith.SubiOp():
                return steps[0] - steps[1]
            case arith.MuliOp():
                numbers = map(constant_index, reversed(op.operands))
                return sum(n * step for n, step in zip(numbers, steps) if n and step)
            case _:
                return 0

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
            number = constant_index(value)
            found = (
                place.insert(vector.BroadcastOp(scalar, type_))
                if number is None
                else self.outside.constant(number, type_)
            )
            if value in self.counting:
                step: SSAValue = self.outside.insert(vector.StepOp(type_))
                if self.counting[value] != 1:
                    times = self.outside.constant(self.counting[value], type_)
                    step = self.outside.insert(arith.MuliOp(step, times))
                found = self.build.insert(arith.AddiOp(found, step))
            self.broadcast[value] = found
        return found

    def _compute_elements(self, op: Operation) -> None:
        values = (*op.operands, *op.results)
        is_narrow = any(is_narrow_float(each.type) for each in values)
        are_numbers = all(is_number(each.type) for each in values)
        is_slow = isinstance(op, arith.RemfOp) or (
            isinstance(op, _DIVIDES) and constant_index(op.operands[1]) is None
        )
        if (is_narrow and not isinstance(op, _CASTS)) or is_slow or not are_numbers:
            raise _RefusedError
        types: list[Attribute] = [row_type(v.type, self.lanes) for v in op.results]
        new = self.build.add(remade(op, [*map(self._lanes_of, op.operands)], types))
        self.vectors.update(zip(op.results, new.results))

    # Memory ---------------------------------------------------------------------------

    def _access(
        self, op: memref.LoadOp | memref.StoreOp, mask: SSAValue | None
    ) -> None:
        """Load or store a row, whose elements have a small distance."""
        type_ = row_type(memref_type(op.memref).element_type, self.lanes)
        step = self._distance_in_memory(op)
        if not -1 <= step <= _MOST_APART or step == 0 or type_.element_type == i1:
            raise _RefusedError
        self.accesses.append(_Access(op, is_row=True))
        base, *at = (self.scalars.get(v, v) for v in (op.memref, *op.indices))
        if isinstance(op, memref.StoreOp):
            is_own = is_sum_of_counters(op.indices[-1], self.loop, of_inner=False)
            if step != 1 or not is_own or not is_defined_outside(op.memref, self.loop):
                raise _RefusedError
            made = vector.StoreOp(self._lanes_of(op.value), base, at)
            if mask is not None:
                value = self._lanes_of(op.value)
                made = vector.MaskedstoreOp(base, at, mask, value)
            self.build.add(made)
        elif mask is None:
            self.vectors[op.result] = strided_row(self.build, base, at, type_, step)
        elif step == 1:
            rest = self.outside.constant(0, type_)
            load = vector.MaskedloadOp(base, at, mask, rest, type_)
            self.vectors[op.result] = self.build.insert(load)
        else:
            raise _RefusedError

    def _distance_in_memory(self, op: memref.LoadOp | memref.StoreOp) -> int:
        """Return the distance of an access from its element in the lane before.

        If it is that of columns, in ``X[i, %j, 2]``, it is taken to be what holds all
        the numbers that are the last index of loads, and tested when the kernel runs.
        """
        dims = [n for n, each in enumerate(op.indices) if each in self.counting]
        strides = static_strides(memref_type(op.memref))
        is_known = not any(each in self.vectors for each in op.indices)
        if len(dims) != 1 or strides[-1] != 1 or not is_known:
            raise _RefusedError
        step, stride = self.counting[op.indices[dims[0]]], strides[dims[0]]
        if stride is None:
            loads = [each.operation for each in op.memref.uses]
            loads = [each for each in loads if isinstance(each, memref.LoadOp)]
            last = [constant_index(each.indices[-1]) or 0 for each in loads]
            stride = 1 + max(last, default=0)
            if constant_index(op.indices[-1]) is None or stride == 1:
                raise _RefusedError
            self.strides[op.memref, dims[0]] = stride
        return step * stride

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
            self.counting[old] = self.counting[value]

    def _is_test(self, condition: SSAValue) -> bool:
        """Note a test of bounds. It must be known before the loop begins."""
        test = condition.owner
        if not isinstance(test, arith.CmpiOp) or BOUNDS not in test.attributes:
            return False
        is_sum = is_sum_of_counters(test.lhs, self.loop)
        if test.predicate_name != "ult" or not is_sum or not self._is_known(test.rhs):
            return False
        self.tests[test] = self.counting.get(test.lhs, 0)
        return True

    def _is_known(self, value: SSAValue) -> bool:
        return is_known_before(value, self.loop)

    # The new loop ---------------------------------------------------------------------

    def choose_iterations(self) -> None:
        """Compute in which iterations of the new loop the vectors are right."""
        b = Builder.at_end(self.around, self.loop.location)
        first = self.around.args[0]
        begin, end = iterations_inside(self.outside, self.loop, self.tests)
        self.conditions = [b.compare("sle", b.plus(first, self.lanes), end)]
        if begin is not self.loop.lower_bound:
            self.conditions.append(b.compare("sge", first, begin))
        for (base, dim), stride in self.strides.items():
            if not is_defined_outside(base, self.loop):
                raise _RefusedError
            layout = self.outside.add(memref.ExtractStridedMetadataOp(base))
            self.conditions.append(b.compare("eq", layout.strides[dim], stride))
        for stored, place in self._places_that_are_stored():
            ahead = b.minus(place, least_value(b, stored, self.loop, first))
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
        old, (first, *carried) = self.loop, self.around.args
        numbers, parts = carried[: len(self.kinds)], carried[len(self.kinds) :]
        ends = [*numbers, *map(self._lanes_of, yielded(old.body.block))]
        for each in chain(old.body.walk(), self.block.walk()):
            if isinstance(each, _FUSED):
                each.attributes[ROUNDED] = UnitAttr()
        old.attributes[BY_ELEMENTS] = UnitAttr()
        upper, step = old.upper_bound, self.outside.index(self.lanes)
        inits = [*old.init_args, *map(self._identity, self.kinds, self.types)]
        new = scf.ForOp(old.lower_bound, upper, step, inits, Region(self.around))
        self.outside.add(new)
        combined = [
            *map(
                self._combined, self.kinds, new.results, new.results[len(self.kinds) :]
            )
        ]
        move_before(self.ahead.ops, old)
        for result, value in zip(old.results, combined):
            result.replace_all_uses_with(value)
        old.detach()
        rest = Block()
        build = Builder.at_end(rest, old.location)
        last = build.minimum(build.plus(first, self.lanes), upper)
        old.operands = [first, build.index(last), old.step, *numbers]
        build.add(old)
        build = Builder.at_end(self.around, old.location)
        regions = Region(self.block), Region(rest)
        chosen = scf.IfOp(build.both(*self.conditions), self.types, *regions)
        build.add(chosen)
        self.block.add_op(scf.YieldOp(*ends))
        rest.add_op(scf.YieldOp(*old.results, *parts))
        self.around.add_op(scf.YieldOp(*chosen.results))

    def _identity(self, kind: str, type_: Attribute) -> SSAValue:
        number = identity_of(kind, type_)
        return self.outside.constant(number, row_type(type_, self.lanes))

    def _combined(self, kind: str, number: SSAValue, parts: SSAValue) -> SSAValue:
        """Return what both loops folded."""
        part = self.outside.insert(vector.ReductionOp(parts, kind=kind))
        return self.outside.insert(operation_of(kind, part.type)(number, part))

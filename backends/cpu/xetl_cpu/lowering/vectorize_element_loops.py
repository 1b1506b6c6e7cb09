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
stores. Products and sums are not fused in either loop, so that equal elements give
equal results wherever they are.

Values that a loop only folds numbers into, in any order (`_fold_kind`), are folded lane
by lane and combined behind the loop.

Every second, third or fourth element, and colors of pixels (``X[i, %j, 2]``), are loads
and shuffles. Other elements are gathered, unless a loop inside has neighbours.

Before: loops; the outermost ones that have the form are taken.
Left alone: loops that carry other values, divide by what is no constant, compute in
16-bit floats, store elements that are not neighbours, or access what another iteration
stores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, product

from xdsl.dialects.builtin import IndexType, ModuleOp, UnitAttr, i1
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from xetl.analysis.affine import constant_distance, is_defined_outside
from xetl.analysis.control_flow import sources, targets, yielded
from xetl.analysis.memory import roots_of
from xetl.codegen.types import byte_width
from xetl.dialects.base import (
    Index,
    constant_index,
    is_number,
    known,
    memref_type,
    operations_in,
    row_type,
)
from xetl.dialects.reduction_kinds import (
    ON_FLOATS,
    ON_INTEGERS,
    SUMS,
    identity_of,
    operation_of,
)
from xetl.dialects.upstream import arith, memref, scf, vector
from xetl.ir.builder import Builder, Pass, move_before
from xetl.transforms.diagnostics import remark
from xetl_cpu.lowering.element_loops.body import Body, RefusedError, round_each
from xetl_cpu.lowering.element_loops.bounds import iterations_inside, least_value
from xetl_cpu.lowering.tiles import may_alias
from xetl_cpu.targets import Target, find_target

BY_ELEMENTS = "xetl.by_elements"
"""Marks a loop that is not to be split: it is short, or a copy for few cases."""

_INT_CASTS = (arith.IndexCastOp, arith.IndexCastuiOp)


@dataclass(frozen=True)
class VectorizeElementLoopsPass(Pass):
    target: str = "host"

    def rewrite(self, op: ModuleOp) -> None:
        target = find_target(self.target)
        for loop in operations_in(op, scf.ForOp):
            found = _vectors(loop, target)
            if found is None:
                continue
            if found.gathers and _has_rows_inside(loop, target):
                found.drop()
                continue
            found.put_in_place()
            remark(loop, "loops", f"{found.lanes} elements at a time")


def _vectors(loop: scf.ForOp, target: Target) -> _Vectors | None:
    """Return what computes a loop in vectors; None if it stays as it is."""
    lanes = _lanes(loop, target.vector_bytes)
    if lanes is None:
        return None
    kinds = [_fold_kind(loop, index) for index in range(len(loop.init_args))]
    if None in kinds:
        return None
    found = _Vectors(loop, lanes, [kind for kind in kinds if kind])
    try:
        found.compute(loop.body.block)
        if found.gathers and found.truncates and not target.has_masks:
            raise RefusedError  # of f64 vectors only AVX-512 makes integers of 64 bits
        found.choose_iterations()
    except RefusedError:
        found.drop()
        return None
    return found


def _has_rows_inside(loop: scf.ForOp, target: Target) -> bool:
    """Whether a loop inside is vectors of neighbours: they need no gathers."""
    for op in loop.body.walk():
        found = _vectors(op, target) if isinstance(op, scf.ForOp) else None
        if found is not None:
            found.drop()
            if not found.gathers:
                return True
    return False


def _lanes(loop: scf.ForOp, vector_bytes: int) -> int | None:
    """Return how many elements of all types a vector holds; None for other loops."""
    are_numbers = all(is_number(each.type) for each in loop.init_args)
    if constant_index(loop.step) != 1 or not are_numbers:
        return None
    ops = [*loop.body.walk()]
    stores = [op for op in ops if isinstance(op, memref.StoreOp)]
    if not (stores or loop.init_args):
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


class _Vectors(Body):
    """Puts the computed body in the place of a loop."""

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
                raise RefusedError
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
                raise RefusedError
            is_array = isinstance(store.op.memref, BlockArgument)
            are_known = all(map(self.is_known, store.op.indices[:-1]))
            if is_array and any(rows) and are_known:
                continue
            if other.is_row and ahead == 0 and (is_array or set(rows) <= {0}):
                continue
            if other.is_row or not self.is_known(place):
                raise RefusedError
            yield store.op.indices[-1], known(place)

    def drop(self) -> None:
        """Erase what was made."""
        for block in (self.block, self.around, self.ahead):
            block.erase(safe_erase=False)

    def put_in_place(self) -> None:
        """Run the block in these iterations, and the old loop in the others."""
        old, (first, *carried) = self.loop, self.around.args
        numbers, parts = carried[: len(self.kinds)], carried[len(self.kinds) :]
        ends = [*numbers, *map(self.lanes_of, yielded(old.body.block))]
        round_each(chain(old.body.walk(), self.block.walk()))
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


_FOLDS = {
    **{row.operation: kind for kind, row in ON_INTEGERS.items()},
    **{row.operation: kind for kind, row in ON_FLOATS.items() if kind not in SUMS},
    arith.SubiOp: "add",
}
"""The kinds whose numbers may be combined in any order."""


def _fold_kind(loop: scf.ForOp, index: int) -> str | None:
    """Return the kind of reduction that a loop computes in a carried value.

    The value goes through operations of this kind, which bring other numbers, and
    through conditionals and loops; nothing else reads it. So iterations may fold into
    values of their own, which start with the identity and are combined at the end.
    Sums of floats are no such reductions, for they depend on the order.

    Args:
        index: counts from 0, without the counter.
    """
    start: SSAValue = loop.body.block.args[index + 1]
    if start.type == i1:
        return None
    folded, waiting, kinds = set[SSAValue]([start]), [start], set[str]()
    while waiting:
        for use in waiting.pop().uses:
            op = use.operation
            found: list[SSAValue] = []
            if type(op) in _FOLDS:
                kinds.add(_FOLDS[type(op)])
                found = [*op.results]
            elif isinstance(op, arith.SelectOp):
                found = [op.result]
            elif op is not loop.body.block.last_op:
                found = [*targets(op, use.index)]
            elif use.index != index:
                return None
            if not found and op is not loop.body.block.last_op:
                return None
            waiting += [each for each in found if each not in folded]
            folded.update(found)
    is_one = yielded(loop.body.block)[index] in folded and all(
        _is_folded(each, folded) for each in folded if each is not start
    )
    return kinds.pop() if is_one and len(kinds) == 1 else None


def _is_folded(value: SSAValue, folded: set[SSAValue]) -> bool:
    """Whether a value is one folded value, or one with another number."""
    op = value.owner
    if isinstance(op, arith.SelectOp):
        return op.operands[0] not in folded and {*op.operands[1:]} <= folded
    if type(op) in _FOLDS:
        assert isinstance(op, Operation)
        left, right = (each in folded for each in op.operands)
        return left and not right if isinstance(op, arith.SubiOp) else left != right
    return {*(sources(value) or [None])} <= folded

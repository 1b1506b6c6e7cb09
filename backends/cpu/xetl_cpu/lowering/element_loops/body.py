"""The body of a loop over elements, computed for a vector of iterations."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

from xdsl.dialects.builtin import IndexType, UnitAttr, VectorType, i1
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from xetl.analysis.affine import is_defined_outside
from xetl.analysis.control_flow import conditions_of, yielded
from xetl.analysis.memory import is_pure
from xetl.codegen.arith import ROUNDED
from xetl.codegen.memref import static_strides
from xetl.codegen.types import is_narrow_float
from xetl.dialects.base import constant_index, is_number, memref_type, row_type
from xetl.dialects.kernel_attributes import BOUNDS
from xetl.dialects.traits import is_elementwise
from xetl.dialects.upstream import arith, memref, scf, vector
from xetl.ir.builder import Builder, remade
from xetl_cpu.lowering.element_loops.bounds import (
    is_known_before,
    is_sum_of_counters,
    step_of_sum,
)
from xetl_cpu.lowering.strided_rows import strided_row

_DIVIDES = (
    *(arith.DivsiOp, arith.DivuiOp, arith.RemsiOp, arith.RemuiOp),
    *(arith.FloordivsiOp, arith.CeildivsiOp, arith.CeildivuiOp),
)
_MOST_APART = 4
"""Elements farther apart are loaded one by one."""
_CONTROL = (scf.IfOp, scf.ForOp, scf.YieldOp)
_CASTS = (arith.ExtfOp, arith.TruncfOp, arith.BitcastOp, arith.SelectOp)


_FUSED = (arith.AddfOp, arith.SubfOp, arith.MulfOp)


def round_each(ops: Iterable[Operation]) -> None:
    """Let no later pass fuse products and sums: copies of a loop compute the same."""
    for op in ops:
        if isinstance(op, _FUSED):
            op.attributes[ROUNDED] = UnitAttr()


class RefusedError(Exception):
    """The loop stays as it is."""


class Access(NamedTuple):
    """An access of the old loop, and whether it is of as many elements as lanes."""

    op: memref.LoadOp | memref.StoreOp
    is_row: bool


class Body:
    """Computes the body of a loop for a vector of iterations, in a new block.

    Attributes:
        scalars: new values for old ones that are equal in all lanes, or `counting`.
        counting: how much larger old values are in each lane than in the lane before;
            `scalars` has the first.
        vectors: new values with an element for each lane.
        tests: tests of bounds, and how much larger the tested value is in each lane;
            the block is right if they hold for all lanes.
        strides: the strides of arrays with which the block is right.
        gathers: how many loads are of elements that are anywhere.
        truncates: whether floats become integers.
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
        self.accesses: list[Access] = []
        self.gathers = 0
        self.truncates = False
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
                raise RefusedError

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
                self.accesses.append(Access(each, is_row=False))
            elif not (is_pure(each) or isinstance(each, _CONTROL)):
                raise RefusedError
        place = self.outside if isinstance(op, arith.ConstantOp) else self.build
        place.add(op.clone(self.scalars))

    def _step_of(self, op: Operation) -> int:
        """Return how much larger a result is in each lane; 0 if this is not known."""
        is_known = not any(each in self.vectors for each in op.operands)
        if not is_known or [each.type for each in op.results] != [IndexType()]:
            return 0
        steps = [self.counting.get(each, 0) for each in op.operands]
        return step_of_sum(op, steps) or 0

    def lanes_of(self, value: SSAValue) -> SSAValue:
        """Return a vector of an old value for all lanes."""
        found = self.vectors.get(value, self.broadcast.get(value))
        if found is None and not is_number(value.type):
            raise RefusedError
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
            raise RefusedError
        types: list[Attribute] = [row_type(v.type, self.lanes) for v in op.results]
        new = self.build.add(remade(op, [*map(self.lanes_of, op.operands)], types))
        self.vectors.update(zip(op.results, new.results))
        self.truncates |= isinstance(op, arith.FptosiOp)

    # Memory ---------------------------------------------------------------------------

    def _access(
        self, op: memref.LoadOp | memref.StoreOp, mask: SSAValue | None
    ) -> None:
        """Load or store a row, or elements that are anywhere."""
        type_ = row_type(memref_type(op.memref).element_type, self.lanes)
        if type_.element_type == i1 or static_strides(memref_type(op.memref))[-1] != 1:
            raise RefusedError
        step = self._distance_in_memory(op)
        self.accesses.append(Access(op, is_row=step is not None))
        base, *at = (self.scalars.get(v, v) for v in (op.memref, *op.indices))
        if isinstance(op, memref.StoreOp):
            is_own = is_sum_of_counters(op.indices[-1], self.loop, of_inner=False)
            if step != 1 or not is_own or not is_defined_outside(op.memref, self.loop):
                raise RefusedError
            value = self.lanes_of(op.value)
            made = vector.StoreOp(value, base, at)
            if mask is not None:
                made = vector.MaskedstoreOp(base, at, mask, value)
            self.build.add(made)
        elif step is not None and mask is None:
            self.vectors[op.result] = strided_row(self.build, base, at, type_, step)
        elif step == 1:
            rest = self.outside.constant(0, type_)
            load = vector.MaskedloadOp(base, at, mask, rest, type_)
            self.vectors[op.result] = self.build.insert(load)
        else:
            self.vectors[op.result] = self._gathered(op, mask, type_)

    def _gathered(
        self,
        op: memref.LoadOp,
        mask: SSAValue | None,
        type_: VectorType[Attribute],
    ) -> SSAValue:
        """Load elements wherever they are."""
        self.gathers += 1
        base = self.scalars.get(op.memref, op.memref)
        is_outside = is_defined_outside(op.memref, self.loop)
        place = self.outside if is_outside else self.build
        strides = place.add(memref.ExtractStridedMetadataOp(base)).strides
        at, offsets = list[SSAValue](), list[SSAValue]()
        for index, stride in zip(op.indices, strides):
            if index not in self.counting and index not in self.vectors:
                at.append(self.scalars.get(index, index))
                continue
            at.append(self.outside.index(0))
            lanes = self.lanes_of(index)
            if index is not op.indices[-1]:
                apart = place.insert(vector.BroadcastOp(stride, lanes.type))
                lanes = self.build.insert(arith.MuliOp(lanes, apart))
            offsets.append(lanes)
        total = self.build.index(reduce(self.build.plus, offsets))
        if mask is None:
            mask = self.outside.constant(1, row_type(i1, self.lanes))
        rest = self.outside.constant(0, type_)
        return self.build.insert(vector.GatherOp(base, at, total, mask, rest))

    def _distance_in_memory(self, op: memref.LoadOp | memref.StoreOp) -> int | None:
        """Return the distance of an access from its element in the lane before.

        If it is that of columns, in ``X[i, %j, 2]``, it is taken to be what holds all
        the numbers that are the last index of loads, and tested when the kernel runs.

        Returns:
            -1, or a small positive distance; None if it is another one, or unknown.
        """
        dims = [n for n, each in enumerate(op.indices) if each in self.counting]
        if len(dims) != 1 or any(each in self.vectors for each in op.indices):
            return None
        step = self.counting[op.indices[dims[0]]]
        known = static_strides(memref_type(op.memref))[dims[0]]
        stride = _columns(op) if known is None else known
        distance = step * stride
        if distance == 0 or not -1 <= distance <= _MOST_APART:
            return None
        if known is None:
            self.strides[op.memref, dims[0]] = stride
        return distance

    def _choose(self, op: scf.IfOp, mask: SSAValue | None) -> None:
        """Compute both branches; results are chosen for each lane."""
        unknown = [c for c in conditions_of(op.condition) if not self._is_test(c)]
        yes, *no = (region.block for region in op.regions if region.blocks)
        if not unknown:
            self.compute(yes, mask)
            for old, value in zip(op.results, yielded(yes)):
                self._rename(old, value)
            return
        chosen = self.build.both(*map(self.lanes_of, unknown))
        self.compute(yes, self.build.conjunction(mask, chosen))
        if no:
            ones = self.outside.constant(1, chosen.type)
            left = self.build.insert(arith.XoriOp(chosen, ones))
            self.compute(no[0], self.build.conjunction(mask, left))
            for old, *values in zip(op.results, yielded(yes), yielded(no[0])):
                parts = map(self.lanes_of, values)
                self.vectors[old] = self.build.insert(arith.SelectOp(chosen, *parts))

    def _repeat(self, op: scf.ForOp, mask: SSAValue | None) -> None:
        """Compute a loop whose bounds are equal in all lanes; it carries vectors."""
        bounds = op.lower_bound, op.upper_bound, op.step
        if any(each in self.vectors or each in self.counting for each in bounds):
            raise RefusedError
        old, inits = op.body.block, [*map(self.lanes_of, op.init_args)]
        body = Block(arg_types=[IndexType(), *(each.type for each in inits)])
        self.scalars[old.args[0]] = body.args[0]
        self.vectors.update(zip(old.args[1:], body.args[1:]))
        known_outside = dict(self.broadcast)
        lower, upper, step = (self.scalars.get(each, each) for each in bounds)
        # In its place before it is computed, so that it is dropped with the rest.
        new = self.build.add(scf.ForOp(lower, upper, step, inits, Region(body)))
        with self.build.inside(body):
            self.compute(old, mask)
            self.build.add(scf.YieldOp(*map(self.lanes_of, yielded(old))))
        self.broadcast = known_outside
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
        is_sum = is_sum and test.lhs not in self.vectors
        if test.predicate_name != "ult" or not is_sum or not self.is_known(test.rhs):
            return False
        self.tests[test] = self.counting.get(test.lhs, 0)
        return True

    def is_known(self, value: SSAValue) -> bool:
        """Whether a value is known before the loop begins."""
        return is_known_before(value, self.loop)


def _columns(op: memref.LoadOp | memref.StoreOp) -> int:
    """Return how many columns hold the last indices of loads, if they are numbers.

    Return 0 if that of ``op`` is none, or if there is one column.
    """
    loads = [each.operation for each in op.memref.uses]
    loads = [each for each in loads if isinstance(each, memref.LoadOp)]
    last = [constant_index(each.indices[-1]) or 0 for each in loads]
    is_constant = constant_index(op.indices[-1]) is not None
    return 1 + max(last) if is_constant and any(last) else 0

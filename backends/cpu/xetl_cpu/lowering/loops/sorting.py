"""``tile_sort``: a bitonic sorting network on vectors in memory, in loops.

A merge makes one sorted run of two: the first is compared with the second in reverse,
then halves are compared with halves. In this form each comparison leaves the smaller
element in front. So all vectors are treated alike, and comparisons with elements behind
the end are left out: the length need not be a power of two.

Down columns each vector is a row, and lanes are never compared with each other. Along
rows, elements less than some vectors apart are compared in registers.

To compare elements of one register, a shuffle of two registers brings pairs of elements
to the same lane of both, so that one minimum and one maximum serve two vectors. The
shuffles are those that AVX has constants for. The order of the lanes is restored at the
end.  A second run that was compared in reverse may stay reversed within its vectors,
because a merge takes runs in either order.

Before: ``%s = xetile.tile_sort %v [1]``
After:  ``scf.for row { scf.for 8 vectors { sorted }; scf.for merge { scf.for distance {
min, max }; scf.for 8 vectors { merged } } }``, in place

Source: K. E. Batcher, Sorting Networks and Their Applications, AFIPS 1968.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, SSAValue

from xetl.codegen.types import byte_width
from xetl.dialects.base import Index, vector_type
from xetl.dialects.upstream import arith, vector
from xetl.dialects.xetile import TileSortOp
from xetl.ir.builder import Builder
from xetl.records import record
from xetl.transforms.diagnostics import remark
from xetl_cpu.lowering.loops.nest import lane_mask
from xetl_cpu.lowering.loops.state import Buffer, State, element_of, shape_of
from xetl_cpu.lowering.loops.stores import write
from xetl_cpu.lowering.strided_rows import backwards

_SHUFFLED_BYTES = 16
"""AVX shuffles two registers by a constant within parts of this size, or whole
parts."""


@record()
class SortedRegisters:
    """Vectors in registers; their number is 2^n with n > 0."""

    build: Builder
    values: list[SSAValue]

    def sort(self) -> None:
        """Sort elements in any order."""
        self._pairs(_Pair.sort)
        runs = 4
        while runs <= len(self.values):
            self._compare(runs, is_backwards=True)
            self.merge(runs // 2)
            runs *= 2

    def merge(self, runs: int | None = None) -> None:
        """Sort runs of ``runs`` vectors that rise, then fall; None: one run of all."""
        runs = runs or len(self.values)
        while runs > 2:
            self._compare(runs, is_backwards=False)
            runs //= 2
        self._pairs(_Pair.merge)

    def _compare(self, runs: int, is_backwards: bool) -> None:
        for first in range(0, len(self.values), runs):
            for n in range(runs // 2):
                low = first + n
                high = first + runs - 1 - n if is_backwards else low + runs // 2
                a, b = self.values[low], self.values[high]
                if is_backwards:
                    b = backwards(self.build, b)
                self.values[low] = self.build.insert(arith.MinsiOp(a, b))
                self.values[high] = self.build.insert(arith.MaxsiOp(a, b))

    def _pairs(self, change: Callable[[_Pair], None]) -> None:
        for n in range(0, len(self.values), 2):
            pair = _Pair(self.build, self.values[n : n + 2])
            change(pair)
            self.values[n : n + 2] = pair.values


class _Pair:
    """Two registers, and the bit of elements' numbers that each bit of places means.

    Attributes:
        values: the registers.
        bits: for each bit of the lane, from the lowest, then for the register.
    """

    def __init__(self, build: Builder, values: Sequence[SSAValue]) -> None:
        type_ = vector_type(values[0])
        (self.lanes,) = type_.get_shape()
        self.values = list(values)
        self.bits = list(range(self.lanes.bit_length()))
        self._build = build
        lanes = _SHUFFLED_BYTES // byte_width(type_.element_type)
        self._part = lanes.bit_length() - 1

    def sort(self) -> None:
        """Sort elements in any order."""
        for bit in range(len(self.bits)):
            self._bring(bit)
            self._turn(bit)
            self._compare_down(bit)
        self._put_in_order()

    def merge(self) -> None:
        """Sort elements that rise and then fall, or fall and then rise."""
        self._compare_down(len(self.bits) - 1)
        self._put_in_order()

    def _compare_down(self, highest: int) -> None:
        """Compare elements whose numbers differ in one bit, the highest one first."""
        for bit in reversed(range(highest + 1)):
            self._bring(bit)
            a, b = self.values
            low, high = arith.MinsiOp(a, b), arith.MaxsiOp(a, b)
            self.values = [self._build.insert(low), self._build.insert(high)]

    def _turn(self, bit: int) -> None:
        """Reverse the elements of the second register, in groups of 2^bit."""
        turned = sum(1 << n for n, each in enumerate(self.bits[:-1]) if each < bit)
        if turned:
            a, b = self.values
            mask = [lane ^ turned for lane in range(self.lanes)]
            self.values = [a, self._build.insert(vector.ShuffleOp(b, b, mask=mask))]

    def _bring(self, bit: int) -> None:
        """Shuffle so that the register is a bit of the elements' numbers."""
        place = self.bits.index(bit)
        if place == len(self.bits) - 1:
            return
        low, high = (
            (0, self._part) if place < self._part else (self._part, len(self.bits) - 1)
        )
        lane_bits = self.bits[:-1]
        lane_bits[low:high] = [b for b in lane_bits[low:high] if b != bit]
        lane_bits.insert(high - 1, self.bits[-1])
        self._arrange([*lane_bits, bit])

    def _put_in_order(self) -> None:
        self._arrange(sorted(self.bits))

    def _arrange(self, bits: list[int]) -> None:
        """Shuffle so that the bits of places mean these bits of numbers."""
        masks = list[list[int]]()
        for register in range(2):
            places = [lane + register * self.lanes for lane in range(self.lanes)]
            numbers = [_number(place, bits) for place in places]
            masks.append([_place(number, self.bits) for number in numbers])
        ops = [vector.ShuffleOp(*self.values, mask=mask) for mask in masks]
        self.values = [self._build.insert(op) for op in ops]
        self.bits = bits


def _number(place: int, bits: Sequence[int]) -> int:
    """Return the number of the element at a place."""
    return sum((place >> n & 1) << bit for n, bit in enumerate(bits))


def _place(number: int, bits: Sequence[int]) -> int:
    """Return the place of the element with this number."""
    return sum((number >> bit & 1) << n for n, bit in enumerate(bits))


_AT_ONCE = 8
"""Vectors of a row that are sorted in registers; 16 gain a tenth for twice the code."""


def sort_tile(state: State, op: TileSortOp) -> None:
    """Sort in the memory of the result."""
    shape, element = shape_of(op.source), element_of(op.result)
    lanes = state.target.vector_bytes // byte_width(element)
    type_ = VectorType(element, [lanes])
    text = f"a network of comparisons in memory, in vectors of {lanes}"
    remark(op, "loop", f"{shape[0]} x {shape[1]} elements are sorted by {text}")
    if shape[op.dim] > 1 and (op.dim == 1 or shape[1] == 1):
        state.buffers[op.result] = _sort_rows(state, op, type_)
        return
    result = state.allocate(shape, element)
    write(state, op.source, result, op)
    state.buffers[op.result] = result
    if op.dim == 0 and shape[0] > 1:
        build, column = _loop(Builder.before(op), 0, shape[1], lanes)
        network = _Network(result.memref, type_, shape[0], lambda _, n: [n, column])
        network.merge_all(build)


def _sort_rows(state: State, op: TileSortOp, type_: VectorType[Attribute]) -> Buffer:
    """Sort rows, each padded to some vectors; a column is stored like a row."""
    shape, (lanes,) = shape_of(op.source), type_.get_shape()
    length, vectors = shape[op.dim], -(-shape[op.dim] // lanes)
    at_once = min(_AT_ONCE, max(2, 1 << (vectors - 1).bit_length()))
    count = at_once * -(-vectors // at_once)
    memory = [count * lanes] if op.dim == 0 else [shape[0], count * lanes]
    result = Buffer(state.scratch_memref(memory, type_.element_type), shape)
    write(state, op.source, result, op)

    build, row = _loop(Builder.before(op), 0, 1 if op.dim == 0 else shape[0], 1)

    def place(build: Builder, number: Index) -> list[Index]:
        column = build.times(number, lanes)
        return [column] if op.dim == 0 else [row, column]

    network = _Network(result.memref, type_, count, place, at_once)
    if length < count * lanes:
        network.pad(build, length)
    network.in_registers(build, SortedRegisters.sort)
    network.merge_all(build)
    return result


@record()
class _Network:
    """Vectors in memory that are sorted together.

    Attributes:
        count: the number of vectors.
        place: returns the indices of the vector with a number.
        at_once: how many neighbours are sorted in registers; 1: lanes never meet.
    """

    memory: SSAValue
    type: VectorType[Attribute]
    count: int
    place: Callable[[Builder, Index], Sequence[Index]]
    at_once: int = 1

    def load(self, build: Builder, number: Index) -> SSAValue:
        """Load the vector with this number."""
        indices = [build.index(each) for each in self.place(build, number)]
        return build.insert(vector.LoadOp(self.memory, indices, self.type))

    def store(self, build: Builder, value: SSAValue, number: Index) -> None:
        """Replace the vector of this number."""
        indices = [build.index(each) for each in self.place(build, number)]
        build.add(vector.StoreOp(value, self.memory, indices))

    def pad(self, build: Builder, length: int) -> None:
        """Fill a row with the largest number, from element ``length`` on."""
        (lanes,) = self.type.get_shape()
        bits = 8 * byte_width(self.type.element_type)
        most = build.constant(2 ** (bits - 1) - 1, self.type)
        build, number = _loop(build, length // lanes, self.count, 1)
        left = build.minus(length, build.times(number, lanes))
        found = self.load(build, number)
        mask = lane_mask(build, left, lanes)
        chosen = build.insert(arith.SelectOp(mask, found, most))
        self.store(build, chosen, number)

    def in_registers(
        self, build: Builder, change: Callable[[SortedRegisters], None]
    ) -> None:
        """Sort or merge each group of ``at_once`` neighbours."""
        build, first = _loop(build, 0, self.count, self.at_once)
        places = [build.plus(first, n) for n in range(self.at_once)]
        registers = SortedRegisters(build, [self.load(build, n) for n in places])
        change(registers)
        for value, place in zip(registers.values, places):
            self.store(build, value, place)

    def merge_all(self, build: Builder) -> None:
        """Sort all vectors, if groups of ``at_once`` neighbours are sorted already."""
        levels = (-(-self.count // self.at_once) - 1).bit_length()
        build, level = _loop(build, 0, levels, 1)
        self._halves(build, _shifted(build, self.at_once, level), True)
        stage, number = _loop(build, 0, level, 1)
        further = stage.minus(stage.minus(level, 1), number)
        self._halves(stage, _shifted(stage, self.at_once, further), False)
        if self.at_once > 1:
            self.in_registers(build, SortedRegisters.merge)

    def _halves(self, build: Builder, half: Index, is_backwards: bool) -> None:
        """Compare the halves of all runs of 2 * ``half`` vectors."""
        whole = build.times(half, 2)
        build, base = _loop(build, 0, self.count, whole)
        # Elements behind the last vector would be larger, so no exchange is needed.
        missing = build.minus(build.plus(base, whole), self.count)
        if is_backwards:
            build, number = _loop(build, build.maximum(missing, 0), half, 1)
        else:
            end = build.minimum(half, build.minus(half, missing))
            build, number = _loop(build, 0, end, 1)
        first = build.plus(base, number)
        other = build.plus(first, half)
        if is_backwards:
            last = build.plus(base, build.minus(whole, 1))
            other = build.minus(last, number)
        a, b = self.load(build, first), self.load(build, other)
        if is_backwards and self.at_once > 1:
            b = backwards(build, b)
        self.store(build, build.insert(arith.MinsiOp(a, b)), first)
        self.store(build, build.insert(arith.MaxsiOp(a, b)), other)


def _shifted(build: Builder, number: int, by: Index) -> Index:
    return number << by if isinstance(by, int) else build.pure(arith.ShliOp, number, by)


def _loop(
    build: Builder, first: Index, end: Index, step: Index
) -> tuple[Builder, Index]:
    """Do the same as `Builder.repeat`; a single iteration needs no loop."""
    if first == 0 and isinstance(end, int) and end == step:
        return build, first
    return build.repeat(first, end, step)

"""Vectors that are sorted, or merged, in registers.

Where elements of one register are to be compared, a shuffle of two registers brings
what belongs together to the same lane of both, so that one minimum and one maximum
serve two vectors. The shuffles are those that AVX has constants for. In which order
lanes then are is put right at the end. A second run that was compared backwards may
stay so within its vectors, as a merge takes runs in either order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from xetl.codegen.types import byte_width
from xetl.dialects.base import vector_type
from xetl.dialects.upstream import arith, vector
from xetl.ir.builder import Builder
from xetl.records import record

_SHUFFLED_BYTES = 16
"""AVX shuffles two registers by a constant within such parts, or whole parts."""


@record()
class SortedRegisters:
    """Vectors in registers, 2^n of them, n > 0."""

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
        """Sort runs of so many vectors that rise and then fall; None: one run."""
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
    """Two registers, and which bit of an element's number its place stands for.

    Attributes:
        values: the registers.
        bits: of the number of a lane, from the lowest, and then of the register.
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
        """Sort elements that rise and then fall, or the other way round."""
        self._compare_down(len(self.bits) - 1)
        self._put_in_order()

    def _compare_down(self, highest: int) -> None:
        """Compare elements whose numbers differ in one bit, the highest one first."""
        for bit in reversed(range(highest + 1)):
            self._bring(bit)
            a, b = self.values
            low, high = arith.MinsiOp(a, b), arith.MaxsiOp(a, b)
            self.values = [self._build.insert(low), self._build.insert(high)]

    def _shuffle(self, masks: Sequence[list[int]]) -> None:
        ops = [vector.ShuffleOp(*self.values, mask=mask) for mask in masks]
        self.values = [self._build.insert(op) for op in ops]

    def _turn(self, bit: int) -> None:
        """Bring the elements of the second register backwards, in groups of 2^bit."""
        turned = sum(1 << n for n, each in enumerate(self.bits[:-1]) if each < bit)
        if turned:
            a, b = self.values
            mask = [lane ^ turned for lane in range(self.lanes)]
            self.values = [a, self._build.insert(vector.ShuffleOp(b, b, mask=mask))]

    def _bring(self, bit: int) -> None:
        """Let a bit of the elements' numbers be that of the register."""
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
        """Let bits of places stand for these bits of numbers."""
        masks = list[list[int]]()
        for register in range(2):
            places = [lane + register * self.lanes for lane in range(self.lanes)]
            numbers = [_number(place, bits) for place in places]
            masks.append([_place(number, self.bits) for number in numbers])
        self._shuffle(masks)
        self.bits = bits


def backwards(build: Builder, value: SSAValue) -> SSAValue:
    """The lanes of a vector in reverse order."""
    mask = list(reversed(range(vector_type(value).get_shape()[0])))
    return build.insert(vector.ShuffleOp(value, value, mask=mask))


def _number(place: int, bits: Sequence[int]) -> int:
    """The number of the element at a place."""
    return sum((place >> n & 1) << bit for n, bit in enumerate(bits))


def _place(number: int, bits: Sequence[int]) -> int:
    """The place of the element of a number."""
    return sum((number >> bit & 1) << n for n, bit in enumerate(bits))

"""What one lane holds of a value, and what is known while a kernel is distributed.

The type of a value says what a lane holds, nothing else does (the table of
docs/design/0005-xegpu.md, "Fragments").  A lane holds *pieces*: scalars, or vectors of
2, 4, 8 elements, as SPIR-V wants them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum, auto

from xdsl.dialects.builtin import (
    AnyFloat,
    FloatTF32Type,
    IndexType,
    IntegerType,
    f32,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from xetl.devices import Device
from xetl.dialects.base import Index, is_vector
from xetl.dialects.kernel_attributes import LANES
from xetl.dialects.upstream import arith, vector
from xetl.dialects.upstream.elementwise import bit_width
from xetl.errors import XetlError
from xetl.ir.builder import Builder, move_before
from xetl.ir.conversion import Carried
from xetl.transforms.diagnostics import refusal
from xetl_xegpu import simt
from xetl_xegpu.dialect import DpasOp
from xetl_xegpu.dialect.stage import NO_BLOCKS
from xetl_xegpu.simt.block_ops import PIECE

_PRODUCTS = (DpasOp, vector.ContractOp)


class Distribution(Enum):
    """How the elements of a value lie on the lanes."""

    SAME = auto()
    """Every lane holds all."""
    COLUMNS = auto()
    """Lane l holds column l, row after row."""
    GROUPS = auto()
    """Lane l holds f columns, from f*l on, of a row as one integer (A of bytes)."""
    HALVES = auto()
    """Lane l holds column l % 8 of the rows l / 8 + 2i: tf32, A of a dpas."""
    PACKED = auto()
    """Lane l holds column l; rows that are neighbours share 32 bits: B of a dpas."""


@dataclass(frozen=True)
class LaneLayout:
    """What a lane holds of a value.

    Attributes:
        spread: which elements.
        element: the type of an element of a piece.
        lengths: of the pieces.
    """

    spread: Distribution
    element: Attribute
    lengths: tuple[int, ...]

    @property
    def types(self) -> tuple[Attribute, ...]:
        """The types of the pieces."""
        return tuple(simt.lanes_type(self.element, length) for length in self.lengths)


def is_number(type_: Attribute) -> bool:
    """Whether values of the type are numbers: no memory, no descriptors."""
    return isinstance(type_, IntegerType | IndexType | AnyFloat)


def lane_element(type_: Attribute) -> Attribute:
    """The type a lane keeps an element in: all but tf32 as they are."""
    return f32 if isinstance(type_, FloatTF32Type) else type_


def bits_of(element: Attribute) -> int:
    """Bits of an element, in a lane and in memory."""
    return bit_width(lane_element(element))


def pieces(rows: int) -> tuple[int, ...]:
    """``rows`` elements cut into pieces of at most 8: greedily 8, 4, 2, 1."""
    found: list[int] = []
    while rows:
        length = min(PIECE, 1 << (rows.bit_length() - 1))
        found.append(length)
        rows -= length
    return tuple(found)


def lane_layout(type_: Attribute) -> LaneLayout | None:
    """What a lane holds of a value of this type; None: nobody knows."""
    if not is_vector(type_):
        return (
            LaneLayout(Distribution.SAME, lane_element(type_), (1,))
            if is_number(type_)
            else None
        )
    element, shape = lane_element(type_.element_type), type_.get_shape()
    match shape:
        case (length,):
            if length == LANES:
                return LaneLayout(Distribution.COLUMNS, element, (1,))
            return LaneLayout(Distribution.SAME, element, pieces(length))
        case (rows, 1):
            return LaneLayout(Distribution.SAME, element, pieces(rows))
        case (rows, 16):
            return LaneLayout(Distribution.COLUMNS, element, pieces(rows))
        case (rows, 8) if element == f32:
            return LaneLayout(Distribution.HALVES, f32, pieces(max(1, rows // 2)))
        case _:
            return _in_groups(type_.element_type, shape)


def _in_groups(element: Attribute, shape: tuple[int, ...]) -> LaneLayout | None:
    bits = bits_of(element)
    match shape:
        case (rows, 32 | 64 as columns) if columns // LANES * bits <= 32:
            item = IntegerType(columns // LANES * bits)
            return LaneLayout(Distribution.GROUPS, item, pieces(rows))
        case (rows, 16, factor) if factor * bits == 32:
            return LaneLayout(Distribution.PACKED, i32, pieces(rows))
        case (count, rows, 16, factor) if factor * bits == 32:
            return LaneLayout(Distribution.PACKED, i32, pieces(rows) * count)
        case (count, rows, 16):
            return LaneLayout(
                Distribution.COLUMNS, lane_element(element), pieces(rows) * count
            )
        case _:
            return None


@dataclass(frozen=True)
class Memory:
    """A memref as a lane sees it.

    Attributes:
        address: of element 0, in bytes, i64.
        sizes: in elements; numbers where they are known.
        strides: in elements.
        element: the type in the text: an i1 takes a byte, a bf16 two.
        shared: whether it is the workgroup's (SLM).
    """

    address: SSAValue
    sizes: tuple[Index, ...]
    strides: tuple[Index, ...]
    element: Attribute
    shared: bool = False


@dataclass(frozen=True)
class Places:
    """Scattered places: some memory, and the offset of this lane in elements."""

    memory: Memory
    offset: SSAValue


@dataclass(frozen=True)
class Matrix:
    """A matrix that blocks are taken of.

    Attributes:
        base: address, i64.
        width: of a row in bytes, i64.
        height: rows, i64.
        pitch: from row to row in bytes, i64.
        step: from element to element of a row in bytes, i64; None: there are no gaps.
    """

    base: SSAValue
    width: SSAValue
    height: SSAValue
    pitch: SSAValue
    step: SSAValue | None = None


@dataclass(frozen=True)
class NamedBarrier:
    """Where some subgroups of a workgroup meet, or all of them.

    ``on_arrival``: some arrive only, so all meet where they arrive; see
    `named_barriers`.
    """

    number: int
    subgroups: int
    on_arrival: bool = False


@dataclass(frozen=True)
class Halves:
    """Rows of 16 columns, loaded as two blocks of 8 columns; see `Distribution.HALVES`.

    Attributes:
        pieces: of both blocks, one behind the other.
        rows: of a block.
        first: the row that they are looked at from.
    """

    pieces: tuple[SSAValue, ...]
    rows: int
    first: int = 0


class Lanes(Builder):
    """The operations of one kernel's lanes, in the making; constants stand at the head.

    Args:
        entry: the first block of the new function.
        source: the old function: errors name it.
        subgroups: how many a workgroup has.
        device: what the kernel is for.
        lower: lowers the operations of a block at the current place.
    """

    def __init__(
        self,
        entry: Block,
        source: Operation,
        subgroups: int,
        device: Device,
        lower: Callable[[Lanes, Block], None],
    ) -> None:
        super().__init__(InsertPoint.at_end(entry), source.location)
        self._lower = lower
        self.source = source
        self.subgroups = subgroups
        self.device = device
        self.entry = entry
        self._head = Builder.at_end(Block(), source.location)
        self._constants: dict[tuple[object, ...], SSAValue] = {}
        self._beside: dict[tuple[SSAValue, str], SSAValue] = {}
        self._held: dict[SSAValue, tuple[SSAValue, ...]] = {}
        self.memories: dict[SSAValue, Memory] = {}
        """Memrefs, and matrices in the workgroup's memory."""
        self.places: dict[SSAValue, Places] = {}
        """Descriptors of scattered places."""
        self.matrices: dict[SSAValue, Matrix] = {}
        """Descriptors of blocks."""
        self.moves_by_lanes = NO_BLOCKS in source.attributes
        """Whether blocks are moved element by element."""
        self.multiplies = any(isinstance(op, _PRODUCTS) for op in source.walk())
        """Whether there are products of matrices, which need most registers."""
        self.halves: dict[SSAValue, Halves] = {}
        """Rows that were loaded as A of tf32 wants them."""
        self.barriers: dict[SSAValue, NamedBarrier] = {}
        """Named barriers."""
        self.local_bytes = 0
        """Of the workgroup's memory, used so far."""

    # Where operations go ------------------------------------------------------------

    def finish(self) -> None:
        """Put the constants ahead of all."""
        move_before(self._head.point.block.ops, next(iter(self.entry.ops)))

    def beside(
        self, value: SSAValue, key: str, make: Callable[[], SSAValue]
    ) -> SSAValue:
        """What is made of a value, once: right behind the value, outside of loops."""
        known = self._beside.get((value, key))
        if known is None:
            with self.at(Builder.after(value).point):
                known = self._beside[(value, key)] = make()
        return known

    # What a lane holds --------------------------------------------------------------

    def hold(self, value: SSAValue, *pieces: SSAValue) -> None:
        """Say what a lane holds of ``value``."""
        self._held[value] = pieces

    def pieces(self, value: SSAValue) -> tuple[SSAValue, ...]:
        """What a lane holds of ``value``."""
        found = self._held.get(value)
        if found is None:
            raise self.refuse_value(value)
        return found

    def one(self, value: SSAValue) -> SSAValue:
        """What a lane holds, where it is one piece."""
        found = self.pieces(value)
        if len(found) != 1:
            raise self.refuse_value(value)
        return found[0]

    def layout(self, value: SSAValue) -> LaneLayout:
        """What a lane holds of a value of this type."""
        found = lane_layout(value.type)
        if found is None:
            raise self.refuse_value(value)
        return found

    # Control flow, see `xetl.ir.conversion` ------------------------------------------

    def carried(self, value: SSAValue, op: Operation) -> Carried:
        """A loop or a branch carries what a lane holds of a value."""
        types = self.layout(value).types
        return Carried(types, self.pieces, lambda old, new: self.hold(old, *new))

    @property
    def emit(self) -> Lanes:
        """What adds operations."""
        return self

    def converted(self, value: SSAValue) -> SSAValue:
        """What stands for a number."""
        return self.one(value)

    def convert(self, block: Block) -> None:
        """Lower the operations of a block at the current place."""
        self._lower(self, block)

    # Constants, at the head ---------------------------------------------------------

    def constant(self, number: float, type_: Attribute) -> SSAValue:
        """A number, or a vector of it, made once."""
        key = (repr(number), type_)
        known = self._constants.get(key)
        if known is None:
            known = self._constants[key] = self._head.constant(number, type_)
        return known

    def index(self, index: Index) -> SSAValue:
        """A value of type `index`."""
        return self.constant(index, IndexType()) if isinstance(index, int) else index

    @property
    def lane(self) -> SSAValue:
        """The number of this lane, i32."""
        return self.of_lane("lane", lambda head: head.insert(simt.LaneIdOp()))

    @property
    def lane_index(self) -> SSAValue:
        """The number of this lane, `index`."""
        cast = arith.IndexCastOp
        return self.of_lane("index", lambda b: b.insert(cast(self.lane, IndexType())))

    def is_lane_bit(self, bit: int) -> SSAValue:
        """Whether this bit of the lane's number is set, i1."""

        def compare(head: Builder) -> SSAValue:
            mask, zero = (head.constant(number, i32) for number in (bit, 0))
            return head.compare("ne", head.insert(arith.AndiOp(self.lane, mask)), zero)

        return self.of_lane(bit, compare)

    @property
    def is_first(self) -> SSAValue:
        """Whether this is the first lane, i1."""
        return self.of_lane(
            "first", lambda b: b.compare("eq", self.lane, b.constant(0, i32))
        )

    def of_lane(self, key: Hashable, make: Callable[[Builder], SSAValue]) -> SSAValue:
        """What follows from the number of the lane alone, made once."""
        known = self._constants.get((key,))
        if known is None:
            known = self._constants[(key,)] = make(self._head)
        return known

    # Refusing -----------------------------------------------------------------------

    def refuse(self, op: Operation, message: str, help: str) -> XetlError:
        """The error that this operation has no form for lanes."""
        return refusal(op, message, help)

    def refuse_value(self, value: SSAValue) -> XetlError:
        """The error that nobody knows what a lane holds of ``value``."""
        owner = value.owner
        op = owner if isinstance(owner, Operation) else self.source
        if not is_vector(value.type):
            return self.refuse(
                op,
                f"a loop or a branch cannot carry {value.type}",
                "carry the offsets, and describe the memory where it is used",
            )
        help_ = "write `vector<hx16xT>`, h 1, 2, 4 or 8: a lane holds a column of it"
        return self.refuse(op, f"no lane can hold its part of {value.type}", help_)

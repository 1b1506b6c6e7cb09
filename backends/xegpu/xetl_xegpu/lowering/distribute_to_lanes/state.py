"""The distribution of values over lanes, and the state of the pass for one kernel.

The type of a value alone determines the part that a lane holds (the table of
docs/design/0005-xegpu.md, "Fragments"). A lane holds *pieces*: scalars, or vectors of
2, 4 or 8 elements, which SPIR-V has.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum, auto
from math import prod

from xdsl.dialects.builtin import FloatTF32Type, IndexType, IntegerType, f32, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from xetl.devices import Device
from xetl.dialects.base import Index, is_number, is_vector, operations_in
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
from xetl_xegpu.lowering.convert_xetile_to_xegpu.fragments import cut_rows


class Distribution(Enum):
    """How the elements of a value are distributed over the lanes."""

    SAME = auto()
    """Every lane holds all elements."""
    COLUMNS = auto()
    """Lane l holds column l, row after row."""
    GROUPS = auto()
    """Lane l holds f columns of a row, from f*l on, as one integer (A of bytes)."""
    HALVES = auto()
    """Lane l holds column l % 8 of the rows l / 8 + 2i (A of a dpas of tf32)."""
    PACKED = auto()
    """Lane l holds column l; neighbouring rows share 32 bits (B of a dpas)."""


@dataclass(frozen=True)
class LaneLayout:
    """The part of a value that a lane holds.

    Attributes:
        spread: which elements it holds.
        element: the type of an element of a piece.
        lengths: the lengths of the pieces.
    """

    spread: Distribution
    element: Attribute
    lengths: tuple[int, ...]

    @property
    def types(self) -> tuple[Attribute, ...]:
        """The types of the pieces."""
        return tuple(simt.lanes_type(self.element, length) for length in self.lengths)


def lane_element(type_: Attribute) -> Attribute:
    """Return the type of an element in a lane: f32 for tf32, else the same."""
    return f32 if isinstance(type_, FloatTF32Type) else type_


def bits_of(element: Attribute) -> int:
    """Return the bits of an element, in a lane and in memory."""
    return bit_width(lane_element(element))


def pieces(rows: int) -> tuple[int, ...]:
    """Return the lengths of the pieces of ``rows`` elements."""
    return tuple(span.count for span in cut_rows(rows))


def lane_layout(type_: Attribute) -> LaneLayout | None:
    """Return the part that a lane holds, by type. None: it has no distribution."""
    if not is_vector(type_):
        alone = LaneLayout(Distribution.SAME, lane_element(type_), (1,))
        return alone if is_number(type_) else None
    element, shape = lane_element(type_.element_type), type_.get_shape()
    match shape:
        case (16,):
            return LaneLayout(Distribution.COLUMNS, element, (1,))
        case (length,):
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
        case (*count, rows, 32 | 64 as columns) if columns // LANES * bits <= 32:
            item, parts = IntegerType(columns // LANES * bits), prod(count)
            return LaneLayout(Distribution.GROUPS, item, pieces(rows) * parts)
        case (rows, 16, factor) if factor * bits == 32:
            return LaneLayout(Distribution.PACKED, i32, pieces(rows))
        case (count, rows, 16, factor) if factor * bits == 32:
            return LaneLayout(Distribution.PACKED, i32, pieces(rows) * count)
        case (count, rows, 16):
            item = lane_element(element)
            return LaneLayout(Distribution.COLUMNS, item, pieces(rows) * count)
        case _:
            return None


@dataclass(frozen=True)
class Memory:
    """A memref as a lane sees it.

    Attributes:
        address: the address of element 0 in bytes, i64.
        sizes: sizes in elements; Python integers if they are static.
        strides: strides in elements.
        element: the element type of the memref: an i1 takes one byte, a bf16 two.
        shared: whether it is the workgroup's memory (SLM).
    """

    address: SSAValue
    sizes: tuple[Index, ...]
    strides: tuple[Index, ...]
    element: Attribute
    shared: bool = False


@dataclass(frozen=True)
class Places:
    """A scattered descriptor: memory, and the offset of this lane in elements."""

    memory: Memory
    offset: SSAValue


@dataclass(frozen=True)
class NamedBarrier:
    """A barrier of some subgroups of a workgroup, or of all of them.

    ``on_arrival``: some subgroups arrive but never wait, so all meet at the arrivals;
    see `named_barriers`.
    """

    number: int
    subgroups: int
    on_arrival: bool = False


@dataclass(frozen=True)
class Halves:
    """Rows of 16 columns, loaded as two blocks of 8 columns; see `Distribution.HALVES`.

    Attributes:
        pieces: the pieces of the first block, then those of the second.
        rows: the rows of a block.
        first: the first row that this value has of them.
    """

    pieces: tuple[SSAValue, ...]
    rows: int
    first: int = 0


class Lanes(Builder):
    """The builder of a kernel's lane code, with the state of the pass.

    Constants go to the head of the function.

    Args:
        entry: the first block of the new function.
        source: the old function, which errors name.
        lower: lowers the operations of a block at the insertion point.
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
        self._held: dict[SSAValue, tuple[SSAValue, ...]] = {}
        self.memories: dict[SSAValue, Memory] = {}
        """The memory of memrefs, and of matrices in the workgroup's memory."""
        self.places: dict[SSAValue, Places] = {}
        """The values of scattered descriptors."""
        self.surfaces: dict[SSAValue, Callable[..., simt.Surface]] = {}
        """For each block descriptor, its surface with a block that begins at x, y."""
        self.moves_by_lanes = NO_BLOCKS in source.attributes
        """Whether lanes move blocks element by element."""
        self.multiplies = bool(operations_in(source, DpasOp, vector.ContractOp))
        """Whether there are products of matrices, which need most of the registers."""
        self.halves: dict[SSAValue, Halves] = {}
        """Values that were loaded in the layout of A of tf32."""
        self.barriers: dict[SSAValue, NamedBarrier] = {}
        """Named barriers."""
        self.local_bytes = 0
        """Bytes of the workgroup's memory that are used so far."""

    # Where operations go ------------------------------------------------------------

    def finish(self) -> None:
        """Move the constants to the head of the function."""
        move_before(self._head.point.block.ops, next(iter(self.entry.ops)))

    def beside(
        self, value: SSAValue, key: str, make: Callable[[], SSAValue]
    ) -> SSAValue:
        """Return what ``make`` computes of a value: once, right after the value."""
        with self.at(Builder.after(value).point):
            return self.once((value, key), lambda _: make())

    # What a lane holds --------------------------------------------------------------

    def hold(self, value: SSAValue, *pieces: SSAValue) -> None:
        """Set the pieces of ``value`` that a lane holds."""
        self._held[value] = pieces

    def pieces(self, value: SSAValue) -> tuple[SSAValue, ...]:
        """Return the pieces of ``value`` that a lane holds."""
        found = self._held.get(value)
        if found is None:
            raise self.refuse_value(value)
        return found

    def one(self, value: SSAValue) -> SSAValue:
        """Return the only piece of ``value``; raise an error if there are several."""
        found = self.pieces(value)
        if len(found) != 1:
            raise self.refuse_value(value)
        return found[0]

    def layout(self, value: SSAValue) -> LaneLayout:
        """Return the layout of a value; raise an error if it has none."""
        found = lane_layout(value.type)
        if found is None:
            raise self.refuse_value(value)
        return found

    # Control flow, see `xetl.ir.conversion` ------------------------------------------

    def carried(self, value: SSAValue, op: Operation) -> Carried:
        """Return how a loop or a branch carries the pieces of a value."""
        types = self.layout(value).types
        return Carried(types, self.pieces, lambda old, new: self.hold(old, *new))

    @property
    def emit(self) -> Lanes:
        """The builder: this object."""
        return self

    def converted(self, value: SSAValue) -> SSAValue:
        """Return the scalar of the new function for a number."""
        return self.one(value)

    def convert(self, block: Block) -> None:
        """Lower the operations of a block at the insertion point."""
        self._lower(self, block)

    # Constants, at the head ---------------------------------------------------------

    def constant(self, number: float, type_: Attribute) -> SSAValue:
        """Return a constant, a number or a vector of it, which is shared."""
        key = (repr(number), type_)
        return self.of_lane(key, lambda head: head.constant(number, type_))

    @property
    def lane(self) -> SSAValue:
        """The id of this lane, i32."""
        return self.of_lane("lane", lambda head: head.insert(simt.LaneIdOp()))

    @property
    def lane_index(self) -> SSAValue:
        """The id of this lane, `index`."""
        cast = arith.IndexCastOp
        return self.of_lane("index", lambda b: b.insert(cast(self.lane, IndexType())))

    def is_lane_bit(self, bit: int) -> SSAValue:
        """Return whether this bit of the lane's id is set, i1."""

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
        """Return a constant, or a value of the lane's id; it is shared, at the head."""
        return self._head.once(key, make)

    # Refusing -----------------------------------------------------------------------

    def refuse_value(self, value: SSAValue) -> XetlError:
        """Return the error that ``value`` has no distribution over the lanes."""
        owner = value.owner
        op = owner if isinstance(owner, Operation) else self.source
        if not is_vector(value.type):
            return refusal(
                op,
                f"a loop or a branch cannot carry {value.type}",
                "carry the offsets, and describe the memory where it is used",
            )
        help_ = "write `vector<hx16xT>`, h 1, 2, 4 or 8: a lane holds a column of it"
        return refusal(op, f"no lane can hold its part of {value.type}", help_)

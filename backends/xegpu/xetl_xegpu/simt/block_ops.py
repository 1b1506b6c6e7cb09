"""Operations of a whole subgroup on 2-D blocks of memory and on matrices.

A surface is a matrix in memory: base address, width and pitch in bytes, height in rows.
The block begins at column ``x`` and row ``y`` (in elements); they may be negative.
``step`` is the stride in bytes of the elements of a row; it is absent without gaps.
Elements outside of the surface are loaded as 0 and are not stored.

Messages of the hardware take 32 bits of each number. They need surfaces that meet
`xetl_xegpu.limits` and have no ``step``. For other surfaces a block is moved
``by_lanes``, element by element.

Lane l holds a list of items of a block (see `BlockShape.items`):

* ``plain``: take the blocks one after the other, each in row-major order. The lane has
  the items l, 16 + l, ... If a row has over 16 elements, an item is two neighbours.
* ``transform``: item i is column l of the rows f*i ... f*i + f-1, f = 32 / bits.
* ``transpose``: as ``plain``, of the block with rows and columns swapped.

Sources: cl_intel_subgroup_2d_block_io, SPV_INTEL_2d_block_io.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from typing_extensions import Unpack
from xdsl import irdl
from xdsl.dialects.builtin import (
    I64,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    VectorType,
    bf16,
    f16,
    f32,
    f64,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from xetl.devices import CODES
from xetl.dialects.base import (
    Value,
    check,
    constant_index,
    element_type,
    row_type,
    shape_of,
)
from xetl.dialects.operation import Common, Operand, XetlOp
from xetl.dialects.traits import READS_AND_WRITES
from xetl.dialects.type_rules import like
from xetl.dialects.upstream import arith
from xetl_xegpu.limits import Hints
from xetl_xegpu.simt.memory_ops import CachedOp
from xetl_xegpu.simt.program_ops import SUBGROUP_SIZE

PIECE = 8
"""The most items of one vector: the size of operands of matrix operations."""

MODES = ("plain", "transform", "transpose")


def lanes_type(element: Attribute, count: int) -> Attribute:
    """Return the type of ``count`` items of a lane: a vector, or a scalar for 1."""
    return element if count == 1 else row_type(element, count)


@dataclass(frozen=True, slots=True)
class BlockShape:
    """The block that a message moves.

    Attributes:
        bits: bits of an element: 8, 16, 32 or 64.
        rows: rows of one block.
        columns: columns of one block.
        count: the number of blocks side by side.
        mode: ``plain``, ``transform`` or ``transpose``.
    """

    bits: int
    rows: int
    columns: int
    count: int = 1
    mode: str = "plain"

    def __str__(self) -> str:
        block = f"{self.rows}x{self.columns}, {self.bits} bits, {self.mode}"
        return f"{self.count} blocks of {block}"

    @property
    def item_bits(self) -> int:
        """Bits of an item of a lane."""
        if self.mode == "transform":
            return 32
        row = self.rows if self.mode == "transpose" else self.columns
        return self.bits * max(1, row // SUBGROUP_SIZE)

    @property
    def items(self) -> int:
        """How many items a lane holds; 0 if the lanes do not share it evenly."""
        bits = self.bits * self.rows * self.columns * self.count
        items, rest = divmod(bits, self.item_bits * SUBGROUP_SIZE)
        return 0 if rest else items

    def pieces(self) -> list[Attribute]:
        """Return the types of the vectors of a lane's items, at most 8 items each."""
        item = IntegerType(self.item_bits)
        whole, rest = divmod(self.items, PIECE)
        return [lanes_type(item, PIECE)] * whole + [lanes_type(item, rest)] * (rest > 0)


class Surface(NamedTuple):
    """A matrix in memory and the begin of a block in it, as i64 values.

    See the module's docstring.
    """

    base: Value
    width: Value
    height: Value
    pitch: Value
    x: Value
    y: Value
    step: Value | None = None


def root_and_distance(place: SSAValue) -> tuple[SSAValue | None, int]:
    """Split an offset into a value and a constant summand; None: it is constant."""
    distance = 0
    while True:
        number = constant_index(place)
        if number is not None:
            return None, distance + number
        owner = place.owner
        if isinstance(owner, arith.IndexCastOp):
            place = SSAValue.get(owner.operands[0])
            continue
        added = constant_index(owner.rhs) if isinstance(owner, arith.AddiOp) else None
        if added is None:
            return place, distance
        assert isinstance(owner, arith.AddiOp)
        place, distance = SSAValue.get(owner.lhs), distance + added


class BlockOp(CachedOp):
    """Base class of operations that move a block: a surface and a shape."""

    base = width = height = pitch = x = y = irdl.operand_def(I64)
    step = irdl.opt_operand_def(I64)
    bits = rows = columns = irdl.prop_def(IntegerAttr[I64])
    count = irdl.opt_prop_def(IntegerAttr[I64], IntegerAttr(1, i64))
    mode = irdl.opt_prop_def(StringAttr, StringAttr("plain"))
    by_lanes = irdl.opt_prop_def(UnitAttr)

    def __init__(
        self,
        *given: Operand | Sequence[Attribute],
        shape: BlockShape,
        by_lanes: bool = False,
        hints: Hints | None = None,
        **common: Unpack[Common],
    ) -> None:
        facts: dict[str, Any] = {**asdict(shape), "by_lanes": by_lanes}
        super().__init__(*given, **facts, hints=hints, **common)

    @property
    def shape(self) -> BlockShape:
        """The block."""
        given = (self.bits, self.rows, self.columns, self.count)
        bits, rows, columns, count = (each.value.data for each in given)
        return BlockShape(bits, rows, columns, count, self.mode.data)

    @property
    def surface(self) -> Surface:
        """The matrix, and where the block begins."""
        place = self.x, self.y, self.step
        return Surface(self.base, self.width, self.height, self.pitch, *place)

    def move(self, **new: SSAValue) -> None:
        """Give the message another base, width, height, pitch, x or y."""
        before = isinstance(self, BlockStoreOp)  # its value comes first
        for name, value in new.items():
            self.operands[Surface._fields.index(name) + before] = value

    def check_surface(self) -> None:
        """Check the cache hints, and that only a block ``by_lanes`` has a step."""
        self.check_hints()
        is_right = self.step is None or self.by_lanes is not None
        check(is_right, "no message moves rows with gaps: only `by_lanes` has a step")

    def check_items(self, found: Sequence[Attribute]) -> None:
        """Check that these types hold the items of the block."""
        self.check_surface()
        shape = self.shape
        check(shape.mode in MODES, "`mode` is one of {}, found {}", MODES, shape.mode)
        check(shape.items > 0, "16 lanes cannot share {} evenly", shape)
        wanted = shape.pieces()
        if list(found) != wanted:
            held, given = (", ".join(map(str, types)) for types in (wanted, found))
            raise VerifyException(f"a lane holds {held} of {shape}, found {given}")


_SURFACE = "$base `,` $width `,` $height `,` $pitch `,` $x `,` $y (`step` $step^)?"


class BlockLoadOp(BlockOp, name="simt.block_load", traits=[MemoryReadEffect()]):
    """Load a block; the results are the items of a lane, in vectors of 8."""

    pieces = irdl.var_result_def()
    assembly_format = f"{_SURFACE} attr-dict `:` type($pieces)"

    def verify_(self) -> None:
        self.check_items([piece.type for piece in self.pieces])


class BlockStoreOp(BlockOp, name="simt.block_store", traits=[MemoryWriteEffect()]):
    """Store a block; ``value`` has the items of a lane, at most 8."""

    value = irdl.operand_def()
    assembly_format = f"$value `,` {_SURFACE} attr-dict `:` type($value)"

    def verify_(self) -> None:
        is_plain = (self.shape.count, self.shape.mode) == (1, "plain")
        check(is_plain, "a store takes one plain block")
        self.check_items([self.value.type])
        check(self.shape.items <= PIECE, "a store takes at most 8 items of a lane")


# The effects keep it from being erased or hoisted.
class BlockPrefetchOp(BlockOp, name="simt.block_prefetch", traits=READS_AND_WRITES):
    """Bring a block into the cache."""

    assembly_format = f"{_SURFACE} attr-dict"

    def verify_(self) -> None:
        check(self.shape.mode == "plain", "a prefetch has no mode")
        self.check_surface()


class _ProductOp(XetlOp, traits=[Pure()]):
    """Base class of products that are added to ``c``; lane l holds its column l."""

    c = irdl.operand_def()

    @property
    def m(self) -> int:
        """Rows of A and C."""
        return shape_of(self.c.type)[0] if shape_of(self.c.type) else 1


class DpasOp(_ProductOp, name="simt.dpas"):
    """``C(m, 16) + A(m, k) @ B(k, 16)``, k = 256 / bits of an element; m is 8, 4, 2, 1.

    A is distributed as by a plain load of m rows and k columns, B as by a load with
    ``transform`` (f32: a plain one). Lane l holds column l of C. ``a_type`` and
    ``b_type`` are f16, bf16, tf32, i8, u8, e4m3 or e5m2; C is f32, f16, bf16 or i32.
    """

    a = b = c = irdl.operand_def()
    a_type = b_type = irdl.prop_def(StringAttr)
    result = irdl.result_def(like("c"))
    assembly_format = (
        "$a `,` $b `,` $c attr-dict `:` type($a) `,` type($b) `,` type($c) "
        "`->` type($result)"
    )

    def verify_(self) -> None:
        pair, accumulator = (self.a_type.data, self.b_type.data), self.c.type
        check(pair in _SUMS, "there is no product of {} and {}", *pair)
        found = element_type(accumulator)
        check(found in _SUMS[pair], "{} @ {} has no result of {}", *pair, found)
        check(self.m in (1, 2, 4, 8), "8, 4, 2 or 1 rows, found {}", self.m)
        is_tf32 = pair[0] == "tf32"
        item, rows = (f32, max(1, self.m // 2)) if is_tf32 else (i16, self.m)
        wanted_a = lanes_type(item, rows)
        wanted_b = VectorType(f32 if is_tf32 else i32, [8])
        check(self.a.type == wanted_a, "A is {}, found {}", wanted_a, self.a.type)
        check(self.b.type == wanted_b, "B is {}, found {}", wanted_b, self.b.type)
        check(self.result.type == accumulator, "the result is not of the type of C")


class RoundToTf32Op(XetlOp, name="simt.round_to_tf32", traits=[Pure()]):
    """f32 rounded to the nearest tf32, ties to even: 10 bits of fraction, still f32."""

    value = irdl.operand_def()
    result = irdl.result_def(like("value"))
    assembly_format = "$value attr-dict `:` type($value)"

    def verify_(self) -> None:
        check(element_type(self.value.type) == f32, "f32, found {}", self.value.type)


class LaneProductOp(_ProductOp, name="simt.lane_product"):
    """``C(m, 16) + A(m, 16) @ B(16, 16)`` in f32 or f64; m is 8, 4, 2 or 1.

    The matrix unit has no such product: lanes multiply, and shuffle the elements of A.
    Lane l holds column l of each matrix. B has two halves: rows 0 to 7 in ``upper``,
    rows 8 to 15 in ``lower``.
    """

    a = upper = lower = c = irdl.operand_def()
    result = irdl.result_def(like("c"))
    assembly_format = (
        "$a `,` $upper `,` $lower `,` $c attr-dict `:` type($a) `,` type($upper) `,` "
        "type($lower) `,` type($c) `->` type($result)"
    )

    @property
    def element(self) -> Attribute:
        """The element type of all operands."""
        return element_type(self.c.type)

    def verify_(self) -> None:
        check(self.m in (1, 2, 4, 8), "8, 4, 2 or 1 rows, found {}", self.m)
        check(self.element in (f32, f64), "f32 or f64, found {}", self.element)
        half = VectorType(self.element, [PIECE])
        types = [value.type for value in (*self.operands, self.result)]
        wanted = [self.c.type, half, half, self.c.type, self.c.type]
        check(types == wanted, "operands do not match C: {}", types)


OPERAND_BITS = {
    **{"f16": 16, "bf16": 16, "tf32": 32, "i8": 8, "u8": 8},
    **dict.fromkeys(CODES.values(), 8),
}
"""Bits of operands of the matrix unit, by dtype."""

_SUMS: dict[tuple[str, str], tuple[Attribute, ...]] = {
    ("f16", "f16"): (f32, f16),
    ("bf16", "bf16"): (f32, bf16),
    ("tf32", "tf32"): (f32,),
    **{(a, b): (i32,) for a in ("i8", "u8") for b in ("i8", "u8")},
    **{(a, b): (f32,) for a in CODES.values() for b in CODES.values()},
}
"""The types of C, by those of A and B.  Source: `xetl.devices`, with the signs."""


PRODUCTS = (DpasOp, LaneProductOp)
"""Products of matrices: their operands are blocks, and take most of the registers."""

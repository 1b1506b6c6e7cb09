"""State of the lowering of a function: tiles, buffers, the target's lanes.

Also which values and loads a value is computed from, and how often loads are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, NoneAttr, StridedLayoutAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from xetl.analysis.ranges import Ranges
from xetl.codegen.memref import static_strides
from xetl.dialects import xetile
from xetl.dialects.base import Index, is_memref, is_vector, memref_type, vector_type
from xetl.dialects.upstream import memref, vector
from xetl.errors import InternalError
from xetl.ir.builder import Builder
from xetl.records import record
from xetl.transforms.diagnostics import remark
from xetl.worklist import Worklist
from xetl_cpu.dialect import BrgemmTileOp, ViewAddressOp
from xetl_cpu.lowering.tiles import tile_sizes
from xetl_cpu.targets import Target

Shape = tuple[int, int]

FREE = (vector.BroadcastOp, vector.StepOp)
VIEWS = (xetile.TileBroadcastOp, xetile.TileConvLayoutOp, xetile.TileTransposeOp)
MOVES = (vector.InterleaveOp, vector.ExtractStridedSliceOp)

UNROLL = 4
"""Partial sums of a row: enough to hide the latency of an addition."""

MOST_APART = 7
"""[measured] Elements at most this many places apart are loaded as vectors and
shuffled; with more vectors, shuffles take as long as gathers."""


@record()
class Matrix:
    """The matrix behind a tile: element (0, 0) of ``memref``, and its extent."""

    memref: SSAValue
    rows: Index
    cols: Index
    _transposed: SSAValue | None = None

    def transposed(self) -> Matrix:
        """The same memory with rows and columns exchanged."""
        if self._transposed is None:
            self._transposed = transposed_view(self.memref, self.rows, self.cols)
        return Matrix(self._transposed, self.cols, self.rows, self.memref)

    def is_contiguous(self) -> bool:
        """True when elements of a row are known to be adjacent."""
        type_ = memref_type(self.memref)
        return static_strides(type_)[-1] == 1


@record()
class Factor:
    """An operand of a product: a part of a matrix.

    Element (0, 0) is at (row, col); ``rows`` x ``cols`` elements exist from there.
    """

    matrix: Matrix
    row: Index
    col: Index
    rows: Index
    cols: Index


@record()
class TileAt:
    """A tile of a matrix: its offset, and whether that may be before the matrix.

    ``is_inside``: the whole tile is known to be inside of the matrix.
    """

    matrix: Matrix
    row: Index
    col: Index
    shape: Shape
    non_negative: bool
    is_inside: bool = False

    def transposed(self) -> TileAt:
        """The transposed tile of the transposed matrix."""
        return TileAt(
            self.matrix.transposed(),
            self.col,
            self.row,
            (self.shape[1], self.shape[0]),
            self.non_negative,
            self.is_inside,
        )


@record()
class ScatterTile:
    """A tile whose elements are at ``indices`` (a vector value) of a rank-1 array.

    Without a size (None), the array is an address, and no element is outside.
    """

    memref: SSAValue
    size: Index | None
    indices: SSAValue
    shape: Shape


@record()
class Buffer:
    """A rank-2 value in scratch memory.

    A single column is usually a rank-1 memref, so that it can be read along its only
    dimension. Any other value has rows that are padded to whole vectors.
    """

    memref: SSAValue
    shape: Shape

    @property
    def is_column(self) -> bool:
        """True for the rank-1 form."""
        type_ = memref_type(self.memref)
        return len(type_.get_shape()) == 1


@record()
class State:
    """Everything the lowering of one function knows.

    Attributes:
        scratch: the block whose start receives the scratch buffers.
        lanes: the vector length for every element type: f32 lanes of the target.
        buffers: vector values that are in memory.
        tiles: descriptions of tile values.
        registers: the registers of rows that a loop carries in registers.
        in_place: carried values that their only reader may overwrite.
        homes: buffers of carried values, for values that are computed from those and
            from no other value of their size: they may be written there.
        lowered: readers whose code has been written.
        pending_loads: for each block, the loads in order that may still have to be
            done.
        joined: stores that share the loop of the next store.
        stored: stores that the product before them has done.
        dead: operations to erase at the end.
        reads: how many loops do each load.
        of_one_a: products in a loop whose iterations share A.
        adjacent: see `xetl_cpu.lowering.loops.carried.adjacent_dims`.
        ranges: ranges of indices.
    """

    target: Target
    scratch: Block
    lanes: int
    buffers: dict[SSAValue, Buffer] = field(default_factory=dict[SSAValue, Buffer])
    tiles: dict[SSAValue, TileAt | ScatterTile] = field(
        default_factory=dict[SSAValue, "TileAt | ScatterTile"]
    )
    registers: dict[SSAValue, list[SSAValue]] = field(
        default_factory=dict[SSAValue, "list[SSAValue]"]
    )
    in_place: set[SSAValue] = field(default_factory=set[SSAValue])
    homes: dict[SSAValue, Buffer] = field(default_factory=dict[SSAValue, Buffer])
    lowered: set[Operation] = field(default_factory=set[Operation])
    pending_loads: dict[Block, list[xetile.LoadTileOp | xetile.LoadGatherOp]] = field(
        default_factory=dict[Block, "list[xetile.LoadTileOp | xetile.LoadGatherOp]"]
    )
    joined: list[xetile.StoreTileOp] = field(default_factory=list[xetile.StoreTileOp])
    stored: set[Operation] = field(default_factory=set[Operation])
    dead: list[Operation] = field(default_factory=list[Operation])
    reads: Counter[Operation] = field(default_factory=Counter[Operation])
    of_one_a: set[BrgemmTileOp] = field(default_factory=set[BrgemmTileOp])
    adjacent: dict[Attribute, set[int]] = field(
        default_factory=dict[Attribute, "set[int]"]
    )
    ranges: Ranges = field(default_factory=lambda: Ranges(subgroups=1))

    def for_columns(self, cols: int) -> State:
        """Return a state with shorter vectors, if these fill short rows.

        Rows of less than a vector are one, if their length is 2^n; rows of some halves
        of vectors consist of these.
        """
        end = cols & -cols
        is_one = 1 < cols == end < self.lanes
        are_halves = 2 * end == self.lanes < cols < UNROLL * self.lanes
        return replace(self, lanes=end) if is_one or are_halves else self

    def allocate(self, shape: Shape, element: Attribute) -> Buffer:
        """Allocate scratch for a value; rows or columns are padded to whole vectors."""
        rows, cols = shape
        if cols == 1:
            return Buffer(self.scratch_memref([self.padded(rows)], element), shape)
        return Buffer(self.scratch_memref([rows, self.padded(cols)], element), shape)

    def room_for(self, value: SSAValue) -> Buffer:
        """Allocate scratch for a value; rows of A have the stride that AMX needs."""
        shape, element = shape_of(value), element_of(value)
        plans = [op.blocking() for op in _products_of_rows(value)]
        if not any(plan.uses_tiles for plan in plans):
            return self.allocate(shape, element)
        row = max(plan.copied_row(self.padded(shape[1])) for plan in plans)
        return Buffer(self.scratch_memref([shape[0], row], element), shape)

    def vectors_per_trip(self, extent: int) -> int:
        """Return how many vectors of a row a reduction takes at once."""
        return UNROLL if extent >= self.lanes * UNROLL else 1

    def padded(self, extent: int) -> int:
        """Return the extent rounded up to what one iteration of a loop may write."""
        step = self.lanes * self.vectors_per_trip(extent)
        return -(-extent // step) * step

    def scratch_memref(
        self, shape: list[int], element: Attribute, space: Attribute | None = None
    ) -> SSAValue:
        """Allocate uninitialised per-thread memory of static shape."""
        layout = NoneAttr()
        op = memref.AllocaOp(MemRefType(element, shape, layout, space or NoneAttr()))
        return Builder(InsertPoint.at_start(self.scratch)).insert(op)


def _products_of_rows(value: SSAValue) -> Iterator[BrgemmTileOp]:
    """Yield the products whose A is this value, not transposed."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, BrgemmTileOp) and op.a is value and op.trans_a is None:
            yield op


def shape_of(value: SSAValue) -> Shape:
    """Return rows and columns of a value; rank 1 is one row, a scalar is 1 x 1."""
    type_ = value.type
    if not is_vector(type_):
        return (1, 1)
    shape = type_.get_shape()
    if len(shape) == 2:
        return (shape[0], shape[1])
    return (1, shape[0]) if shape else (1, 1)


def element_of(value: SSAValue) -> Attribute:
    """Return the element type of a vector value."""
    return vector_type(value).element_type


def transposed_view(base: SSAValue, rows: Index, cols: Index) -> SSAValue:
    """Return the transposed view of a rank-2 memref, inserted right after it."""
    type_ = memref_type(base)
    build = Builder.after(base)
    offset, strides = view_of(base, build)
    layout = static_strides(type_)
    row_step, col_step = (
        fixed if fixed is not None else given for fixed, given in zip(layout, strides)
    )
    return reinterpret(build, base, offset, (cols, rows), (col_step, row_step))


def view_of(base: SSAValue, build: Builder) -> tuple[Index, tuple[Index, Index]]:
    """Return offset and strides of a rank-2 memref relative to its allocation."""
    owner = base.owner
    if isinstance(owner, memref.ReinterpretCastOp):
        (offset,) = owner.mixed_offsets
        row_step, col_step = owner.mixed_strides
        return offset, (row_step, col_step)
    op = memref.ExtractStridedMetadataOp(base)
    build.add(op)
    return 0, (op.results[4], op.results[5])


def reinterpret(
    build: Builder,
    base: SSAValue,
    offset: Index,
    sizes: Sequence[Index],
    strides: Sequence[Index],
) -> SSAValue:
    """Return a view of the allocation under ``base``."""
    owner = base.owner
    source = owner.operands[0] if isinstance(owner, memref.ReinterpretCastOp) else base
    return build.insert(memref.ReinterpretCastOp.of(source, offset, sizes, strides))


def matrix_of(op: xetile.InitTileOp, build: Builder) -> Matrix:
    """Return the matrix of a tile, as its ``init_tile`` describes it."""
    sizes = tile_sizes(op)
    if sizes is None:
        raise InternalError("a tile of a matrix of unknown size")
    rows, cols = sizes
    if not op.mixed_sizes:
        return Matrix(op.source, rows, cols)
    row_step, col_step = op.mixed_strides
    if not is_memref(op.source.type):
        tile = xetile.tile_type(op.result)
        base = view_address(build, op.source, tile, (rows, cols), (row_step, col_step))
        return Matrix(base, rows, cols)
    offset, (row_known, col_known) = view_of(op.source, build)
    given = (
        row_known if isinstance(row_known, int) else row_step,
        col_known if isinstance(col_known, int) else col_step,
    )
    base = reinterpret(build, op.source, offset, (rows, cols), given)
    return Matrix(base, rows, cols)


def view_address(
    build: Builder,
    address: SSAValue,
    tile: xetile.TileType,
    sizes: Sequence[Index],
    strides: Sequence[Index],
) -> SSAValue:
    """Return a view of the memory at an integer address."""
    layout = StridedLayoutAttr([v if isinstance(v, int) else None for v in strides], 0)
    shape = [v if isinstance(v, int) else DYNAMIC_INDEX for v in sizes]
    result = MemRefType(tile.element_type, shape, layout)
    extents = [build.index(v) for v in sizes]
    steps = [build.index(v) for v in strides]
    return build.insert(ViewAddressOp(address, extents, steps, result))


def leaves(state: State, value: SSAValue) -> Iterator[tuple[SSAValue, bool]]:
    """Yield the values that ``value`` is computed from: loads and values in buffers.

    Also yield whether element (i, j) of the value reads only element (i, j) of that
    one; the value occurs twice if both holds.
    """
    waiting = Worklist([(value, True)])
    for each, same_place in waiting:
        op = each.owner
        if not is_vector(each.type):
            continue
        if (
            each in state.buffers
            or not isinstance(op, Operation)
            or isinstance(op, xetile.LoadTileOp)
        ):
            yield each, same_place
            continue
        keeps = same_place and is_elementwise(op)
        waiting += [(operand, keeps) for operand in op.operands]
        if isinstance(op, xetile.LoadGatherOp):
            yield each, False
            tile = state.tiles[op.tile]
            assert isinstance(tile, ScatterTile)
            waiting += [(tile.indices, same_place)]


def is_narrow(shape: Shape, lanes: int) -> bool:
    """Whether a vector is better filled with elements of many rows than of one."""
    rows, cols = shape
    return 1 < cols <= MOST_APART and cols != 4 and cols < lanes <= rows


def has_functions(state: State, value: SSAValue) -> bool:
    """Whether a function of `math` is computed for each element."""
    values = Worklist([value])
    for each in values:
        op = each.owner
        if each in state.buffers or not isinstance(op, Operation):
            continue
        if op.name.startswith("math."):
            return True
        values += (operand for operand in op.operands if is_vector(operand.type))
    return False


def is_elementwise(op: Operation) -> bool:
    """True when element (i, j) of the result needs only elements (i, j)."""
    return op.name.startswith(("arith.", "math.", "vector.fma")) or isinstance(
        op, xetile.TileConvLayoutOp | xetile.LoadGatherOp
    )


def is_coordinate_swap(op: vector.ShapeCastOp) -> bool:
    """True for a reshape between 1xN and Nx1, or to the same shape."""
    old, new = shape_of(op.operands[0]), shape_of(op.results[0])
    return old == new or (old == (new[1], new[0]) and 1 in old)


def is_computed_where_read(op: Operation) -> bool:
    """Whether an element of the result can be computed without the others."""
    if len(op.results) != 1 or not is_vector(op.results[0].type):
        return False
    if isinstance(op, vector.ShapeCastOp):
        return is_coordinate_swap(op)
    loads = xetile.LoadTileOp, xetile.LoadGatherOp
    places = *FREE, *VIEWS, *MOVES, *loads
    return isinstance(op, places) or is_elementwise(op)


def tell_passes(state: State) -> None:
    """Add a remark to each load: how many loops do it."""
    for load, loops in state.reads.items():
        times = "once" if loops == 1 else f"{loops} times, by as many loops"
        remark(load, "passes", f"read from memory {times}")

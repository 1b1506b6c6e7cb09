"""The analysis of a kernel before the conversion.

docs/design/0005-xegpu.md and `xetl.devices` say how a product is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum, auto
from itertools import product

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    FloatTF32Type,
    IntegerType,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue, Use

from xetl.analysis.affine import divisor, joined_values
from xetl.analysis.control_flow import yielded
from xetl.analysis.memory import Root, may_alias, roots_of
from xetl.devices import PRODUCTS_OF_CODES
from xetl.dialects import base, xetile
from xetl.dialects.upstream import scf
from xetl.dialects.upstream.elementwise import bit_width
from xetl.dialects.upstream.gpu import FuncOp
from xetl.ir.builder import Builder
from xetl.worklist import Worklist
from xetl_xegpu.dialect.stage import NO_BLOCKS
from xetl_xegpu.limits import LEAST_WIDTH

from .fragments import Form, matrix_shape
from .row_gathers import row_gather


class ProductKind(Enum):
    """How a product is computed.

    MATRIX: by the matrix unit, with operands of 16 or 8 bits. TF32: there as well, of
    f32 with fewer bits. BF16X3: of f32, as three products of bf16. LANES: each lane
    multiplies and adds.
    """

    MATRIX = auto()
    TF32 = auto()
    BF16X3 = auto()
    LANES = auto()


def kind_of(op: xetile.TileMmaOp) -> ProductKind:
    """Return how a product is computed, by its element types and its precision."""
    element, result = base.element_type(op.a.type), base.element_type(op.result.type)
    precision = None if op.precision is None else op.precision.data
    return kind_of_types(element, result, precision)


def kind_of_types(
    element: Attribute, result: Attribute, precision: str | None = None
) -> ProductKind:
    """Return how a product is computed; ``element`` is the type of A and of B."""
    if isinstance(element, Float16Type | BFloat16Type):
        narrow = isinstance(result, Float16Type | BFloat16Type | Float32Type)
        return ProductKind.MATRIX if narrow else ProductKind.LANES
    if (width := base.integer_width(element)) is not None:
        exact = width == 8 and (
            base.integer_width(result) == 32 or precision in PRODUCTS_OF_CODES
        )
        return ProductKind.MATRIX if exact else ProductKind.LANES
    if isinstance(element, FloatTF32Type) and isinstance(result, Float32Type):
        return ProductKind.TF32
    if isinstance(element, Float32Type) and isinstance(result, Float32Type):
        return _PRECISIONS.get(precision or "ieee", ProductKind.LANES)
    return ProductKind.LANES


_PRECISIONS = {"tf32": ProductKind.TF32, "bf16x3": ProductKind.BF16X3}


def tile_origins(value: SSAValue) -> set[xetile.InitTileOp]:
    """Return the operations that may have made a tile, except those at address 0."""
    found, waiting = set[xetile.InitTileOp](), Worklist([value])
    for each in waiting:
        joined = joined_values(each)
        if joined is not None:
            waiting += joined
        elif isinstance(each.owner, xetile.UpdateTileOffsetOp):
            waiting += [each.owner.tile]
        elif isinstance(each.owner, xetile.InitTileOp):
            source = each.owner.source
            # No path of the program reads a tile at address 0.
            is_address = isinstance(source.type, IntegerType)
            if not (is_address and base.constant_index(source) == 0):
                found.add(each.owner)
    return found


def stays(value: BlockArgument, dim: int) -> bool:
    """Whether a tile that a loop carries is never moved along a dimension."""
    loop = value.block.parent_op()
    if not isinstance(loop, scf.ForOp):
        return False
    start, moves = xetile.unmoved(yielded(loop.body.block)[value.index - 1])
    return start is value and all(each.mixed_offsets[dim] == 0 for each in moves)


class Plan:
    """See the module docstring.

    Attributes:
        columns: a divisor of the column offset, for each load, store and prefetch of a
            tile.
        forms: the form that products need, for each load that only products read.
        transposed: loads that only transposes read, and these transposes.
        parted: sums that loops carry in `Form.PARTED`.
        folds: whether all tiles are whole rows of 64 bytes of arrays of one dimension.
            Messages then move such an array as a matrix of these rows.
        moves_rest: whether they move what is behind the last whole row as well.
        gathered: the rows that each gather loads, if it loads rows.
        loaded_again: stores after which tiles of the same memory may be loaded.
        kept: rules for operations on memory that stays in registers (`kept_memory`).
    """

    def __init__(
        self,
        kernel: FuncOp,
        kept: Mapping[Operation, Callable[..., object]],
        *,
        moves_rest: bool = False,
    ) -> None:
        self.kept = kept
        self.moves_rest = moves_rest
        _split_loads(kernel, kept)
        self.columns: dict[Operation, int] = {}
        self.forms: dict[Operation, str] = {}
        self.transposed: set[Operation] = set()
        self.parted: set[SSAValue | None] = set()
        self.loaded_again = set(_loaded_again(kernel.body.block, set()))
        gathers = base.operations_in(kernel, xetile.LoadGatherOp)
        self.gathered = {op: row_gather(op) for op in gathers}
        self.folds = NO_BLOCKS not in kernel.attributes
        for op in kernel.walk():
            if op in kept:
                continue
            if isinstance(
                op, xetile.LoadTileOp | xetile.StoreTileOp | xetile.PrefetchTileOp
            ):
                tile = op.tile.type
                if isinstance(tile, xetile.TileType) and not tile.scattered:
                    self.columns[op] = divisor(op.tile)
                    self.folds &= _is_foldable(op.tile, self.columns[op])
            if isinstance(op, xetile.LoadTileOp) and len(op.results) == 1:
                self._look_at(op)

    def _look_at(self, load: xetile.LoadTileOp) -> None:
        readers = list(_readers(load.result))
        form = _wanted(readers)
        if form is not None:
            self.forms[load] = form
            return
        if not readers or not all(
            isinstance(u, xetile.TileTransposeOp) for u, _ in readers
        ):
            return
        behind = [use for u, _ in readers for use in _readers(u.results[0])]
        if _wanted(behind) == Form.PACKED:
            self.forms[load] = Form.PACKED
        elif bit_width(base.vector_type(load.result).element_type) not in (8, 16, 32):
            return
        else:
            sums = {_sums_in_loop(*each) for each in behind}
            if sums and None not in sums:
                self.forms[load] = Form.PARTED
                self.parted |= sums
        self.transposed |= {load, *(u for u, _ in readers)}


def _is_foldable(tile: SSAValue, column: int) -> bool:
    """Whether a tile is of an array of one dimension, in rows of 64 bytes."""
    type_ = tile.type
    assert isinstance(type_, xetile.TileType)
    rows, columns = type_.shape
    per_row = 8 * LEAST_WIDTH // bit_width(type_.element_type)
    if rows > 1 or columns % per_row or column % per_row:
        return False
    found = roots_of(tile)
    return all(root and len(base.shape_of(root.type)) == 1 for root in found)


def _split_loads(kernel: FuncOp, kept: Collection[Operation]) -> None:
    """Repeat loads, and their transposes, so that all readers of one want one form.

    A message packs or transposes what it loads, and memory is near the second time;
    lanes take some 200 instructions for a transpose of 16 x 16. So the derivative of
    attention loads Q once as it is and once transposed.
    """
    for op in base.operations_in(kernel, xetile.TileTransposeOp):
        if isinstance(op.operands[0].owner, xetile.LoadTileOp):
            _repeat(op)
    for op in base.operations_in(kernel, xetile.LoadTileOp):
        if op not in kept and len(op.results) == 1 and not op.tile_type.scattered:
            _repeat(op)


def _repeat(op: Operation) -> None:
    """Repeat an operation for each form that readers of its result want."""
    uses: dict[tuple[bool, str | None], list[Use]] = {}
    for use in op.results[0].uses:
        reader, is_turned = use.operation, False
        readers = [(reader, use.index)]
        if isinstance(reader, (*_PACKING, xetile.TileTransposeOp)):
            is_turned = isinstance(reader, xetile.TileTransposeOp)
            readers = list(_readers(reader.results[0]))
        uses.setdefault((is_turned, _wanted(readers)), []).append(use)
    for some in list(uses.values())[1:]:
        copy = Builder.before(op).insert(op.clone())
        for use in some:
            use.operation.operands[use.index] = copy


def _loaded_again(block: Block, behind: set[Root]) -> Iterator[Operation]:
    """Yield the stores of `Plan.loaded_again`.

    Args:
        behind: the memory of tiles that are loaded after the block. The memory of loads
            in the block is added.
    """
    for op in reversed(list(block.ops)):
        repeated = [] if isinstance(op, scf.IfOp) else list(op.walk())
        for load in repeated:
            if isinstance(load, xetile.LoadTileOp):
                behind |= roots_of(load.tile)
        if isinstance(op, xetile.StoreTileOp):
            pairs = product(roots_of(op.tile), behind)
            if any(may_alias(*pair) for pair in pairs):
                yield op
        for inner in (each for region in op.regions for each in region.blocks):
            yield from _loaded_again(inner, behind)


_PACKING = (xetile.TilePackOp, xetile.TileUnpackOp)


def _readers(value: SSAValue) -> Iterable[tuple[Operation, int]]:
    """Yield the readers of a value, each with its operand index; skip packing."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, _PACKING):
            yield from _readers(op.result)
        else:
            yield op, use.index


def _wanted(readers: list[tuple[Operation, int]]) -> str | None:
    """Return the form that all readers need. Return None if they do not agree."""
    wanted = {_form_for(op, index) for op, index in readers}
    return wanted.pop() if len(wanted) == 1 else None


def _sums_in_loop(op: Operation, index: int) -> BlockArgument | None:
    """Return the loop-carried sums of a product of 16 bits whose A is the value.

    Return None if it is no such product, or if other operations read the sums.
    """
    if index or _form_for(op, 1) is None or not isinstance(op, xetile.TileMmaOp):
        return None
    start, a = op.c, base.vector_type(op.a)
    while isinstance(start, OpResult) and isinstance(start.op, _PACKING):
        start = start.op.operands[0]
    if not isinstance(start, BlockArgument) or list(_readers(start)) != [(op, 2)]:
        return None
    is_carried = isinstance(start.block.parent_op(), scf.ForOp)
    end = [(start.block.last_op, start.index - 1)]
    rows, _ = matrix_shape(a.get_shape())
    if not is_carried or list(_readers(op.result)) != end or rows % 16:
        return None
    return start if bit_width(a.element_type) == 16 else None


def _form_for(op: Operation, index: int) -> str | None:
    if not isinstance(op, xetile.TileMmaOp) or kind_of(op) is not ProductKind.MATRIX:
        return None
    bits = bit_width(base.vector_type(op.a).element_type)
    _, depth = matrix_shape(base.vector_type(op.a).get_shape())
    _, columns = matrix_shape(base.vector_type(op.b).get_shape())
    if depth % (256 // bits) or columns == 1:
        return None
    if index == 1:
        return Form.PACKED
    return Form.DEEP if index == 0 and bits == 8 else None

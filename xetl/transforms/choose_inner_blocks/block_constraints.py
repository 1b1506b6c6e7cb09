"""Which operations work on blocks, and the block sizes that they demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.analysis import axes
from xetl.analysis.control_flow import carried_together
from xetl.devices import Access, Block, Device
from xetl.dialects import traits, xetile
from xetl.dialects.base import around, is_vector, vector_type
from xetl.dialects.literals import splat_value
from xetl.dialects.upstream import arith, scf, vector
from xetl.dialects.upstream.elementwise import bit_width
from xetl.dialects.xetile.types import SHARED
from xetl.records import record

ACCESSES: dict[type[Operation], Access] = {
    xetile.LoadTileOp: "load",
    xetile.StoreTileOp: "store",
    xetile.PrefetchTileOp: "prefetch",
}
_PER_LOOP = 8
"""The assumed number of iterations of a loop."""


@record(frozen=True)
class Demand:
    """Blocks that one operation can use for a value, and the gain from using them.

    Attributes:
        rows: possible heights.
        columns: possible widths, each with any of the heights.
        weight: bytes that need not be packed again, over all iterations of loops.
    """

    value: SSAValue
    rows: frozenset[int]
    columns: frozenset[int]
    weight: int


@record(frozen=True)
class Product:
    """The blocks of a product: A (m, k), B (k, n), C (m, n)."""

    a: Block
    b: Block
    c: Block


def element_bits(element: Attribute) -> int:
    """Return the bits of an element in memory; an i1 takes a byte."""
    return max(8, bit_width(element))


# Products ---------------------------------------------------------------------------


def product_of(op: xetile.TileMmaOp, device: Device) -> Product | str:
    """Return the blocks of a product on a device, or the reason why it has none.

    Lanes multiply types that the matrix unit cannot (f32, f64): a row of B and of C is
    then one register, and K is cut as for the matrix unit.
    """
    unit = device.matrix
    factor = vector_type(op.a).element_type
    name = _factor_name(op, factor)
    bits = 16 if name == "bf16" else element_bits(factor)
    depth = unit.depth_bits // bits
    columns = unit.columns
    if name not in unit.results:
        accumulator = element_bits(op.result.type.element_type)
        columns = device.register_bytes * 8 // accumulator
    (m, k), (_, n) = axes.shape_of(op.a), axes.shape_of(op.b)
    for what, extent, block in (("K", k, depth), ("N", n, columns)):
        if extent % block:
            return f"{what} = {extent} of this product is no multiple of {block}"
    rows = max(r for r in unit.rows if m % r == 0)
    return Product((rows, depth), (depth, columns), (rows, columns))


def _factor_name(op: xetile.TileMmaOp, factor: Attribute) -> str:
    """Return the name of the type to multiply; for f32 the precision decides it."""
    precision = None if op.precision is None else op.precision.data
    if op.is_of_codes:
        return "f8"
    if precision is not None:
        return {"tf32": "tf32", "bf16x3": "bf16"}.get(precision, "f32")
    return f"i{factor.bitwidth}" if isinstance(factor, IntegerType) else str(factor)


# Memory -----------------------------------------------------------------------------


def legal_blocks(op: Operation, device: Device) -> list[Block]:
    """Return the blocks that a block access can have, and that divide its tile."""
    type_ = xetile.tile_type(tile_of(op))
    bits, is_shared = element_bits(type_.element_type), type_.memory_space == SHARED
    messages = device.blocks_of(ACCESSES[type(op)], bits, shared=is_shared)
    # The rows in memory are the columns of a column-major tile.
    step = 1 if type_.order == (1, 0) else -1
    blocks = [block[::step] for block in messages.blocks()]
    return [(m, n) for m, n in blocks if not (type_.shape[0] % m or type_.shape[1] % n)]


def is_block_access(op: Operation) -> bool:
    """Whether an operation accesses a tile that may be cut: rank 2, not scattered."""
    return type(op) in ACCESSES and may_be_cut(xetile.tile_type(tile_of(op)))


def may_be_cut(type_: xetile.TileType) -> bool:
    """Whether tiles of the type have rank 2, and are not scattered."""
    return len(type_.shape) == 2 and not type_.scattered


def moved_by(op: Operation) -> Sequence[SSAValue]:
    """Return the values that an access loads or stores."""
    if isinstance(op, xetile.LoadTileOp):
        return op.results
    is_store = isinstance(op, xetile.StoreTileOp | xetile.AtomicRmwTileOp)
    return (op.value,) if is_store else ()


def tile_of(op: Operation) -> SSAValue:
    """Return the tile that an operation accesses."""
    assert isinstance(
        op, xetile.LoadTileOp | xetile.StoreTileOp | xetile.PrefetchTileOp
    )
    return op.tile


# Demands ----------------------------------------------------------------------------


def demands_of(op: Operation, device: Device) -> list[Demand]:
    """Return the blocks that ``op`` demands for its values."""
    values = (*op.operands, *op.results)
    if any(is_vector(v.type) and not axes.is_matrix(v.type) for v in values):
        return []  # the user has given it blocks
    if isinstance(op, xetile.TileMmaOp):
        product = product_of(op, device)
        return [] if isinstance(product, str) else _of_product(op, product)
    if not is_block_access(op):
        return []
    given = xetile.tile_type(tile_of(op)).inner_blocks
    blocks = legal_blocks(op, device)
    if given is not None:
        blocks = [block for block in blocks if block == given]
    if not blocks:
        return []
    rows, columns = (frozenset(extents) for extents in zip(*blocks))
    return [Demand(v, rows, columns, _weight(op, v)) for v in moved_by(op)]


def _of_product(op: xetile.TileMmaOp, product: Product) -> list[Demand]:
    asked = [(op.a, product.a), (op.b, product.b), (op.result, product.c)]
    if op.c is not None:
        asked.append((op.c, product.c))
    return [
        Demand(v, frozenset([rows]), frozenset([columns]), _weight(op, v))
        for v, (rows, columns) in asked
    ]


def _weight(op: Operation, value: SSAValue) -> int:
    rows, columns = axes.shape_of(value)
    size = rows * columns * element_bits(vector_type(value).element_type) // 8
    loops = len([*around(op, scf.ForOp, scf.WhileOp)])
    return size * _PER_LOOP**loops


Chosen: TypeAlias = Callable[[SSAValue], Block | None]
"""Returns the blocks that the readers of a value share; None: the value stays plain."""
Blocks: TypeAlias = tuple[Block | None, ...]


@record(frozen=True)
class Form:
    """The blocks of each operand and result; None: it is plain, or no matrix."""

    operands: Blocks
    results: Blocks


CARRYING = scf.ForOp | scf.IfOp | scf.WhileOp
"""Operations that carry values unchanged."""


def is_uniform(op: Operation) -> bool:
    """Whether all elements of the result are equal, so that any blocks will do."""
    if not op.results or not axes.is_matrix(op.results[0].type):
        return False
    if isinstance(op, arith.ConstantOp):
        return splat_value(op.value) is not None
    return isinstance(op, vector.BroadcastOp) and not is_vector(op.source.type)


def is_elementwise(op: Operation) -> bool:
    """Whether an operation is elementwise, and all its matrices have one shape."""
    if not traits.is_elementwise(op):
        return False
    return len({axes.shape_of(value) for value in axes.matrices(op)}) == 1


def relations(op: Operation) -> Iterator[tuple[axes.Axis, axes.Axis]]:
    """Yield pairs of axes that should have the same block size for this operation."""
    for group in carried_together(op):
        if axes.is_matrix(group[0].type):
            yield from _same(group)
    if isinstance(op, axes.Slice) and axes.is_of_matrices(op):
        yield from axes.relations_of_slice(op)
    if is_elementwise(op):
        yield from _same(tuple(axes.matrices(op)))
    elif not axes.matrices(op):
        return
    elif isinstance(op, xetile.TileTransposeOp):
        yield (op.source, 0), (op.result, 1)
        yield (op.source, 1), (op.result, 0)
    elif isinstance(op, xetile.TileReduceOp | xetile.TileBroadcastOp) and _is_whole(op):
        for dim in (0, 1):
            if dim not in op.dims:
                yield (op.source, dim), (op.result, dim)


def limits_of(op: Operation) -> Iterator[tuple[axes.Axis, int]]:
    """Yield axes, each with a number that its block size must divide for ``op``."""
    if isinstance(op, axes.Slice) and axes.is_of_matrices(op):
        joined = {axis for pair in axes.relations_of_slice(op) for axis in pair}
        for axis, number in axes.limits_of_slice(op):
            if axis in joined:
                yield axis, number


def _same(values: tuple[SSAValue, ...]) -> Iterator[tuple[axes.Axis, axes.Axis]]:
    for other in values[1:]:
        yield (values[0], 0), (other, 0)
        yield (values[0], 1), (other, 1)


def _is_whole(op: xetile.TileReduceOp | xetile.TileBroadcastOp) -> bool:
    """Whether a reduction has no groups, which blocks could cut."""
    return isinstance(op, xetile.TileBroadcastOp) or op.reduction_size is None


def form_of(op: Operation, chosen: Chosen) -> Form:
    """Return the form of ``op`` for the chosen blocks; plain if it knows no blocks."""
    if is_uniform(op) or is_elementwise(op) or isinstance(op, CARRYING):
        return Form(_all(op.operands, chosen), _all(op.results, chosen))
    if isinstance(op, scf.YieldOp | scf.ConditionOp):
        inside = isinstance(op.parent_op(), CARRYING)
        return Form(_all(op.operands, chosen), ()) if inside else plain(op)
    if not any(axes.is_matrix(value.type) for value in op.operands):
        return plain(op)
    if isinstance(op, axes.Slice) and axes.is_of_matrices(op):
        # Use blocks if the part is made of whole ones, of the size its readers share.
        whole, part = map(chosen, axes.whole_and_part(op))
        if whole is None or whole != part or not axes.has_whole_blocks(op, whole):
            return plain(op)
        return Form((whole,) * len(op.operands), (whole,))
    if isinstance(op, xetile.TileTransposeOp):
        source = chosen(op.source)
        return Form((source,), (axes.transposed(source),))
    if isinstance(op, xetile.TileReduceOp) and _is_whole(op):
        source = chosen(op.source)
        return Form((source,), (axes.with_ones(source, op.dims),))
    if isinstance(op, xetile.TileBroadcastOp):
        result = chosen(op.result)
        return Form((axes.with_ones(result, op.dims),), (result,))
    return plain(op)


def plain(op: Operation) -> Form:
    """Return the form without blocks."""
    return Form((None,) * len(op.operands), (None,) * len(op.results))


def _all(values: Iterable[SSAValue], chosen: Chosen) -> Blocks:
    return tuple(chosen(v) if axes.is_matrix(v.type) else None for v in values)

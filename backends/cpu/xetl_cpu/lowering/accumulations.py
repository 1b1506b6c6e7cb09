"""Sums of products that a loop carries, and whether they can leave it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import BlockArgument, SSAValue

from xetl.analysis.affine import is_defined_outside
from xetl.dialects.base import vector_type
from xetl.dialects.memref_layout import constant_index
from xetl.dialects.upstream import scf
from xetl.dialects.xetile import (
    InitTileOp,
    LoadTileOp,
    TileMmaOp,
    TileTransposeOp,
    UpdateTileOffsetOp,
)
from xetl.records import record
from xetl_cpu.lowering.tiles import (
    is_streamable,
    loads_zero_padded,
    may_alias,
    may_write,
    tile_root,
    written_root,
)


class NotRaisedError(Exception):
    """Why a product in a loop is not a BRGEMM over all of its trips."""


@record()
class Accumulation:
    """A value that each trip adds products to, one after the other.

    Attributes:
        index: which of the carried values it is.
        products: in the order in which they are added.
        operands: a and b of each, as they are in the first trip.
    """

    index: int
    products: Sequence[TileMmaOp]
    operands: Sequence[tuple[Operand, Operand]]


def chain_of(mma: TileMmaOp, loop: scf.ForOp) -> tuple[int, list[TileMmaOp]]:
    """The carried value that ``mma`` adds to, and all products that do.

    Raises:
        NotRaisedError: nothing is carried, or it is used between the steps.
    """
    body, last = loop.body.block, loop.body.block.last_op
    assert last is not None
    products = [mma]
    while (before := _product(products[0].c, loop)) is not None:
        products.insert(0, before)
    carried = products[0].c
    if not isinstance(carried, BlockArgument) or carried.block is not body:
        raise NotRaisedError("what it adds to is computed in each step")
    while (after := _reader(products[-1].result)) is not None:
        products.append(after)
    between = [carried, *(each.result for each in products)]
    is_yielded = last.operands[carried.index - 1] is products[-1].result
    if not is_yielded or not all(_is_used_once(value) for value in between):
        raise NotRaisedError("the accumulator is used between the steps")
    return carried.index - 1, products


def accumulation_of(
    index: int, products: Sequence[TileMmaOp], loop: scf.ForOp
) -> Accumulation:
    """What the loop sums up in a carried value, if memory is all it needs.

    Raises:
        NotRaisedError: an operand is computed, or may be written in the loop.
    """
    operands = [(_operand(x, "a", loop), _operand(x, "b", loop)) for x in products]
    written = [written_root(op) for op in loop.walk() if may_write(op)]
    for one in [each for pair in operands for each in pair]:
        if any(may_alias(tile_root(one.tile), base) for base in written):
            raise NotRaisedError("the loop may write what it multiplies")
    return Accumulation(index, products, operands)


def _product(value: SSAValue | None, loop: scf.ForOp) -> TileMmaOp | None:
    """The product of the loop's body that makes a value."""
    owner = None if value is None else value.owner
    if isinstance(owner, TileMmaOp) and owner.parent is loop.body.block:
        return owner
    return None


def _reader(value: SSAValue) -> TileMmaOp | None:
    """The only reader of a value, if it is a product that adds to it."""
    readers = [use.operation for use in value.uses]
    if len(readers) != 1:
        return None
    (reader,) = readers
    return reader if isinstance(reader, TileMmaOp) and reader.c is value else None


def _is_used_once(value: SSAValue) -> bool:
    return len(list(value.uses)) == 1


def _operand(mma: TileMmaOp, name: str, loop: scf.ForOp) -> Operand:
    value, k_dim = (mma.a, 1) if name == "a" else (mma.b, 0)
    depth = vector_type(mma.a).get_shape()[1]
    found = stream_of(value, loop, depth, k_dim)
    if found is None:
        raise NotRaisedError(
            f"`{name}` is not simply loaded from a tile that moves by {depth} along k"
        )
    return found


@record()
class Operand:
    """A tile to start from (or a value), and whether its transpose is the operand."""

    tile: SSAValue
    transposed: bool


def stream_of(value: SSAValue, loop: scf.ForOp, k: int, k_dim: int) -> Operand | None:
    """The tile an operand is loaded from first, if it moves by ``k`` in each trip.

    ``k_dim``: the dimension of the operand that is summed over.
    """
    transposed = isinstance(value.owner, TileTransposeOp)
    if isinstance(value.owner, TileTransposeOp):
        value, k_dim = value.owner.source, 1 - k_dim
    load = value.owner
    if not isinstance(load, LoadTileOp) or not loads_zero_padded(load):
        return None
    if load.parent is not loop.body.block:
        return None
    tile = load.tile
    if isinstance(tile, BlockArgument):
        start = _carried_start(tile, loop, k, k_dim)
    else:
        start = _rebuilt_start(tile, loop, k, k_dim)
    if start is None or not is_streamable(start):
        return None
    return Operand(start, transposed)


def _carried_start(
    tile: BlockArgument, loop: scf.ForOp, k: int, k_dim: int
) -> SSAValue | None:
    """A tile carried by the loop and moved by ``update_tile_offset``."""
    if tile.block is not loop.body.block or tile.index == 0:
        return None
    last = loop.body.block.last_op
    assert last is not None
    update = last.operands[tile.index - 1].owner
    if not isinstance(update, UpdateTileOffsetOp) or update.tile is not tile:
        return None
    steps = [constant_index(step) for step in update.mixed_offsets]
    if steps != ([k, 0] if k_dim == 0 else [0, k]):
        return None
    return loop.init_args[tile.index - 1]


def _rebuilt_start(
    tile: SSAValue, loop: scf.ForOp, k: int, k_dim: int
) -> SSAValue | None:
    """A tile made anew in each iteration at the loop's counter."""
    init = tile.owner
    counter = loop.body.block.args[0]
    if not isinstance(init, InitTileOp) or constant_index(loop.step) != k:
        return None
    offsets = list(init.mixed_offsets)
    if len(offsets) != 2 or offsets[k_dim] is not counter:
        return None
    others: list[SSAValue | int] = [init.source, offsets[1 - k_dim]]
    others += [*init.mixed_sizes, *init.mixed_strides]
    if not all(is_defined_outside(other, loop) for other in others):
        return None
    offsets[k_dim] = loop.lower_bound
    start = InitTileOp(
        init.source,
        offsets,
        init.result.type,
        sizes=init.mixed_sizes,
        strides=init.mixed_strides,
        location=init.location,
    )
    parent = loop.parent_block()
    assert parent is not None
    parent.insert_op_before(start, loop)
    return start.result

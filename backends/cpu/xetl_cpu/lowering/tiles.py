"""Tiles as memory: the matrix behind a tile, its bounds, who may alias whom.

And what numbers them: programs' numbers and counters of loops.

How much of a value anybody reads: what a store drops need not be computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from typing import NamedTuple

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from xetl.analysis import affine, memory
from xetl.analysis.affine import dominates, is_defined_outside
from xetl.dialects.base import Index, is_memref, is_vector, vector_type
from xetl.dialects.upstream import arith, func, memref, scf
from xetl.dialects.upstream.xegpu import FenceOp
from xetl.dialects.xetile import (
    AtomicRmwTileOp,
    InitTileOp,
    LoadTileOp,
    PrefetchTileOp,
    StoreScatterOp,
    StoreTileOp,
    UpdateTileOffsetOp,
    unmoved,
)
from xetl.ir.builder import Builder, move_before
from xetl_cpu.dialect import (
    BarrierOp,
    BrgemmTileOp,
    ConstantMemoryOp,
    FibersOp,
    ViewAddressOp,
    element_name,
)
from xetl_cpu.microkernels.arithmetic import Arithmetic, choose_arithmetic
from xetl_cpu.targets import Target

PIECES = "xetl.pieces"
"""Of a loop: a task does its columns so many at a time (`trips.py`)."""

_WRITERS = (StoreTileOp, StoreScatterOp, AtomicRmwTileOp)


_VIEWS = (
    memref.ReinterpretCastOp,
    memref.CastOp,
    memref.SubviewOp,
    memref.TransposeOp,
    memref.ViewOp,
    memref.ExtractStridedMetadataOp,
)


def is_non_negative(value: Index) -> bool:
    """Whether an index is known to be 0 or more; programs' numbers and the grid are."""
    return affine.is_non_negative(value, _is_size)


def _is_size(value: BlockArgument) -> bool:
    """Programs' numbers, and sizes of the grid: the loop over programs ends there."""
    parent = value.block.parent_op()
    if isinstance(parent, func.FuncOp):
        users = [use.operation for use in value.uses]
        loops = [op for op in users if isinstance(op, scf.ParallelOp)]
        return any(value in loop.upper_bounds for loop in loops)
    return isinstance(parent, scf.ParallelOp | FibersOp)


def tile_sizes(init: InitTileOp) -> Sequence[SSAValue | int] | None:
    """Rows and columns of the matrix a tile lies in; None where nobody says them."""
    sizes = init.mixed_sizes
    if sizes:
        return sizes
    type_ = init.source.type
    if is_memref(type_) and all(n >= 0 for n in type_.get_shape()):
        return list(type_.get_shape())[-2:]
    return None


def tile_like(
    init: InitTileOp,
    *,
    source: SSAValue | None = None,
    offsets: Sequence[Index] | None = None,
    sizes: Sequence[Index] | None = None,
    strides: Sequence[Index] | None = None,
) -> InitTileOp:
    """The tile of ``init`` at other offsets, or of another matrix, of other sizes."""
    return InitTileOp(
        init.source if source is None else source,
        init.mixed_offsets if offsets is None else offsets,
        init.result.type,
        sizes=init.mixed_sizes if sizes is None else sizes,
        strides=init.mixed_strides if strides is None else strides,
        location=init.location,
    )


def origin(tile: SSAValue) -> InitTileOp | None:
    """The ``init_tile`` that made a tile, through updates of its offset."""
    owner = unmoved(tile)[0].owner
    return owner if isinstance(owner, InitTileOp) else None


def dims_moved(tile: SSAValue, by: Callable[[Index], bool]) -> set[int] | None:
    """Dimensions along which a tile moves ``by`` such steps; None: nobody knows."""
    moved, seen, pending = set[int](), set[SSAValue](), [tile]
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            user = use.operation
            if isinstance(user, LoadTileOp | StoreTileOp | PrefetchTileOp):
                continue
            if isinstance(user, UpdateTileOffsetOp):
                moved |= {n for n, step in enumerate(user.mixed_offsets) if by(step)}
                pending.append(user.result)
                continue
            carried = _carried(user, use.index)
            if carried is None:
                return None
            pending += carried
    return moved


def _carried(user: Operation, index: int) -> list[SSAValue] | None:
    """What a loop makes of the operand number ``index`` of its head or its yield."""
    loop = user.parent_op() if isinstance(user, scf.YieldOp) else user
    if not isinstance(loop, scf.ForOp):
        return None
    number = index if isinstance(user, scf.YieldOp) else index - 3
    if number < 0:
        return None
    return [loop.body.block.args[1 + number], loop.results[number]]


def task_along_n(op: BrgemmTileOp) -> tuple[SSAValue, SSAValue] | None:
    """The number of a task of several programs, and how many columns each task has.

    None: `grow-tiles` made none along n. Such a task begins at ``number * columns`` of
    b, or at a piece behind (`trips.py`), and no more than ``min(%cols, %columns)`` of
    its columns are read.
    """
    init, limit = op.b.owner, None if op.cols is None else op.cols.owner
    if not isinstance(init, InitTileOp) or not isinstance(limit, arith.MinsiOp):
        return None
    offset = init.mixed_offsets[1 if op.trans_b is None else 0]
    product = offset.owner if isinstance(offset, SSAValue) else None
    if isinstance(product, arith.AddiOp) and piece_along_n(op) is not None:
        product = product.lhs.owner
    if not isinstance(product, arith.MuliOp):
        return None
    number, columns = product.operands
    return (number, columns) if columns in limit.operands else None


def piece_along_n(op: BrgemmTileOp) -> SSAValue | None:
    """Columns of a task before those of a trip, if it does its columns in such."""
    loop = op.parent_op()
    init = op.b.owner
    if not isinstance(loop, scf.ForOp) or not isinstance(init, InitTileOp):
        return None
    offset = init.mixed_offsets[1 if op.trans_b is None else 0]
    total = offset.owner if isinstance(offset, SSAValue) else None
    counter = loop.body.block.args[0]
    is_sum = isinstance(total, arith.AddiOp) and total.rhs is counter
    return counter if is_sum and PIECES in loop.attributes else None


def on_tiles(product: BrgemmTileOp, target: Target) -> Arithmetic | None:
    """How AMX computes a product, if it does."""
    how = choose_arithmetic(target, element_name(product.a), product.unsigned)
    return how if how.instruction == "amx" else None


def is_streamable(tile: SSAValue) -> bool:
    """True for a plain tile whose offset is proven not to be negative."""
    init = origin(tile)
    if init is None or init.indices is not None or len(init.mixed_offsets) != 2:
        return False
    if tile_sizes(init) is None or not is_memref(init.source.type):
        return False
    ops = (init, *unmoved(tile)[1])
    return all(is_non_negative(offset) for op in ops for offset in op.mixed_offsets)


def loads_zero_padded(load: LoadTileOp) -> bool:
    """True for a load of one rank-2 vector whose outside reads as zero."""
    if len(load.results) != 1 or vector_type(load.results[0]).get_num_dims() != 2:
        return False
    padding = load.padding
    if padding is None:
        return True
    return isinstance(padding, FloatAttr | IntegerAttr) and padding.value.data == 0


def writes_between(first: Operation, last: Operation) -> bool:
    """True if an operation between two of one block may write memory."""
    op = first.next_op
    while op is not None and op is not last:
        if any(may_write(inner) for inner in op.walk()):
            return True
        op = op.next_op
    return op is None


def may_write(op: Operation) -> bool:
    """True for operations that write memory, or let others write it.

    ``gpu.barrier`` is none: a program is one thread here, in program order anyway.
    """
    plain = (memref.StoreOp, memref.AtomicRmwOp, BarrierOp, FenceOp)
    return isinstance(op, (*_WRITERS, *plain))


def root(base: SSAValue) -> SSAValue:
    """The memref (or address) a view was made from."""
    while isinstance(base.owner, _VIEWS):
        base = base.owner.operands[0]
    if isinstance(base.owner, ViewAddressOp):
        address = base.owner.address.owner
        while isinstance(address, arith.SelectOp | arith.AddiOp):
            # A copy, or what it is a copy of: a place in an array.
            is_sum = isinstance(address, arith.AddiOp)
            address = address.operands[0 if is_sum else 2].owner
        if isinstance(address, memref.ExtractAlignedPointerAsIndexOp):
            return root(address.source)
    return base


def tile_root(tile: SSAValue) -> SSAValue | None:
    """The array behind a tile, None when it cannot be told."""
    init = origin(tile)
    return None if init is None else root(init.source)


def written_root(op: Operation) -> SSAValue | None:
    """The array an operation writes, None when it cannot be told."""
    if isinstance(op, _WRITERS):
        return tile_root(op.tile)
    if isinstance(op, memref.StoreOp | memref.AtomicRmwOp):
        return root(op.operands[1])
    return None


def may_alias(left: SSAValue | None, right: SSAValue | None) -> bool:
    """Whether one may write what the other reads; nobody writes constants."""
    if any(each and isinstance(each.owner, ConstantMemoryOp) for each in (left, right)):
        return False
    return memory.may_alias(left, right)


_COPIED = (memref.ReinterpretCastOp, memref.ExtractStridedMetadataOp, memref.DimOp)


def sources_of(
    values: Iterable[Index],
    loop: Operation,
    is_source: Callable[[BlockArgument], bool],
    may_be_copied: Callable[[Operation], bool],
) -> set[BlockArgument] | None:
    """The block arguments of the loop's body that values depend on.

    None where they depend on what cannot be computed again elsewhere: an argument that
    ``is_source`` refuses, or an operation that ``may_be_copied`` refuses.
    """
    found, seen = set[BlockArgument](), set[SSAValue]()
    pending = [value for value in values if isinstance(value, SSAValue)]
    while pending:
        value = pending.pop()
        if value in seen or is_defined_outside(value, loop):
            continue
        seen.add(value)
        if isinstance(value, BlockArgument):
            if not is_source(value):
                return None
            found.add(value)
            continue
        op = value.owner
        assert isinstance(op, Operation)
        if not may_be_copied(op):
            return None
        pending += op.operands
    return found


def counters_of(
    values: Iterable[Index], loop: scf.ParallelOp
) -> set[BlockArgument] | None:
    """Programs' numbers and counters that index values and views depend on.

    None where they depend on what cannot be computed again elsewhere.
    """
    return sources_of(values, loop, lambda each: is_counter(each, loop), _is_copied)


def is_invariant(values: Iterable[Index], loop: Operation) -> bool:
    """Whether index values and views are the same in all trips of a loop."""
    return sources_of(values, loop, lambda _: False, _is_copied) is not None


def is_counter(value: BlockArgument, loop: scf.ParallelOp) -> bool:
    """True for a program's number, and for the counter of a loop in the program."""
    owner = value.block.parent_op()
    return owner is loop or (isinstance(owner, scf.ForOp) and value.index == 0)


def _is_copied(op: Operation) -> bool:
    return op.name.startswith("arith.") or isinstance(op, _COPIED)


class Demand(NamedTuple):
    """How many rows and columns are read; None: all of them."""

    rows: SSAValue | None = None
    cols: SSAValue | None = None


def demanded_extent(value: SSAValue, before: Operation, build: Builder) -> Demand:
    """The part of a rank-2 value that its readers use, known before ``before``.

    Elementwise operations read what their readers read; a store reads what lies
    inside its matrix; anything else reads all. ``build`` inserts before ``before``.
    """
    stores: list[StoreTileOp] = []
    if not _only_stored(value, stores) or not stores:
        return Demand()
    places: list[tuple[Sequence[Index], Sequence[Index]]] = []
    for store in stores:
        init = store.tile.owner
        if not isinstance(init, InitTileOp) or init.indices is not None:
            return Demand()
        sizes, offsets = tile_sizes(init), init.mixed_offsets[-2:]
        if sizes is None or not _stand_before((*sizes, *offsets), before):
            return Demand()
        places.append((sizes, offsets))
    # How far each matrix reaches into the tile.
    limits = [
        [build.pure(arith.SubiOp, *pair) for pair in zip(*place)] for place in places
    ]
    return Demand(
        *(reduce(partial(build.pure, arith.MaxsiOp), x) for x in zip(*limits))
    )


def _stand_before(values: Iterable[Index], place: Operation) -> bool:
    """Let index values stand before ``place``, if what computes them may."""
    late = set[Operation]()
    waiting = [value for value in values if isinstance(value, SSAValue)]
    while waiting:
        value = waiting.pop()
        op = value.owner
        if dominates(value, place) or op in late:
            continue
        if not isinstance(op, Operation) or op.parent is not place.parent:
            return False
        if not memory.is_pure(op):
            return False
        late.add(op)
        waiting += op.operands
    if late and place.parent is not None:
        move_before([op for op in place.parent.ops if op in late], place)
    return True


def _only_stored(value: SSAValue, stores: list[StoreTileOp]) -> bool:
    for use in value.uses:
        op = use.operation
        if isinstance(op, StoreTileOp) and use.index == 0:
            stores.append(op)
        elif not _is_elementwise(op, value) or not _only_stored(op.results[0], stores):
            return False
    return True


def _is_elementwise(op: Operation, value: SSAValue) -> bool:
    if not op.name.startswith(("arith.", "math.")) or len(op.results) != 1:
        return False
    old, new = value.type, op.results[0].type
    assert is_vector(old)
    return is_vector(new) and new.get_shape() == old.get_shape()


def way_to_store(product: BrgemmTileOp) -> tuple[list[Operation], StoreTileOp] | None:
    """A product, perhaps a cast, and the store behind them, if nobody else reads."""
    way: list[Operation] = [product]
    reader = only_reader(product.result)
    if isinstance(reader, arith.TruncfOp):
        way.append(reader)
        reader = only_reader(reader.results[0])
    return (way, reader) if isinstance(reader, StoreTileOp) else None


def only_reader(value: SSAValue) -> Operation | None:
    """What reads a value, if that is one operation, once."""
    readers = [use.operation for use in value.uses]
    return readers[0] if len(readers) == 1 else None

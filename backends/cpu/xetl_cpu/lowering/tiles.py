"""Facts about tiles: the matrix behind a tile, its bounds, aliases of its memory.

Also facts about indices (the numbers of programs, the counters of loops), and how much
of a value its readers need: elements that a store drops need not be computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from typing import NamedTuple

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from xetl.analysis import affine, memory
from xetl.analysis.affine import dominates, is_defined_outside
from xetl.analysis.control_flow import targets
from xetl.dialects import xetile
from xetl.dialects.base import Index, is_memref, is_vector, vector_type
from xetl.dialects.upstream import arith, func, memref, scf
from xetl.dialects.upstream.xegpu import FenceOp
from xetl.ir.builder import Builder, move_before
from xetl.worklist import Worklist
from xetl_cpu import dialect
from xetl_cpu.microkernels.arithmetic import Arithmetic, choose_arithmetic
from xetl_cpu.targets import Target

PIECES = "xetl.pieces"
"""Marks a loop in which a task computes its columns in pieces (`trips.py`)."""

_WRITERS = (xetile.StoreTileOp, xetile.StoreScatterOp, xetile.AtomicRmwTileOp)


_VIEWS = (
    memref.ReinterpretCastOp,
    memref.CastOp,
    memref.SubviewOp,
    memref.TransposeOp,
    memref.ViewOp,
    memref.ExtractStridedMetadataOp,
)


def is_non_negative(value: Index) -> bool:
    """Whether an index is known to be 0 or more, as programs' numbers are."""
    return affine.is_non_negative(value, _is_size)


def _is_size(value: BlockArgument) -> bool:
    """Whether this is the number of a program or a size of the grid."""
    parent = value.block.parent_op()
    if isinstance(parent, func.FuncOp):
        users = [use.operation for use in value.uses]
        loops = [op for op in users if isinstance(op, scf.ParallelOp)]
        return any(value in loop.upper_bounds for loop in loops)
    return isinstance(parent, scf.ParallelOp | dialect.FibersOp)


def tile_sizes(init: xetile.InitTileOp) -> Sequence[SSAValue | int] | None:
    """Return the rows and columns of the matrix of a tile; None if they are unknown."""
    sizes = init.mixed_sizes
    if sizes:
        return sizes
    type_ = init.source.type
    if is_memref(type_) and all(n >= 0 for n in type_.get_shape()):
        return list(type_.get_shape())[-2:]
    return None


def tile_like(
    init: xetile.InitTileOp,
    *,
    source: SSAValue | None = None,
    offsets: Sequence[Index] | None = None,
    sizes: Sequence[Index] | None = None,
    strides: Sequence[Index] | None = None,
) -> xetile.InitTileOp:
    """Return a tile like ``init``, with other offsets, or of another matrix or size."""
    return xetile.InitTileOp(
        init.source if source is None else source,
        init.mixed_offsets if offsets is None else offsets,
        init.result.type,
        sizes=init.mixed_sizes if sizes is None else sizes,
        strides=init.mixed_strides if strides is None else strides,
        location=init.location,
    )


def origin(tile: SSAValue) -> xetile.InitTileOp | None:
    """Return the ``init_tile`` that made a tile before any updates of its offset."""
    owner = xetile.unmoved(tile)[0].owner
    return owner if isinstance(owner, xetile.InitTileOp) else None


def dims_moved(tile: SSAValue, by: Callable[[Index], bool]) -> set[int] | None:
    """Return the dimensions whose update steps pass ``by``; None if that is unknown."""
    moved, waiting = set[int](), Worklist([tile])
    for value in waiting:
        for use in value.uses:
            user = use.operation
            if isinstance(
                user, xetile.LoadTileOp | xetile.StoreTileOp | xetile.PrefetchTileOp
            ):
                continue
            if isinstance(user, xetile.UpdateTileOffsetOp):
                moved |= {n for n, step in enumerate(user.mixed_offsets) if by(step)}
                waiting += [user.result]
                continue
            carried = targets(user, use.index)
            if not carried:
                return None
            waiting += carried
    return moved


def task_along_n(op: dialect.BrgemmTileOp) -> tuple[SSAValue, SSAValue] | None:
    """Return the number of a task of several programs, and the columns of each task.

    Return None if `grow-tiles` made no such tasks along n. The task starts at column
    ``number * columns`` of b, or at a piece behind that (`trips.py`). At most
    ``min(%cols, %columns)`` of its columns are read.
    """
    init, limit = op.b.owner, None if op.cols is None else op.cols.owner
    if not isinstance(init, xetile.InitTileOp) or not isinstance(limit, arith.MinsiOp):
        return None
    offset = init.mixed_offsets[1 if op.trans_b is None else 0]
    product = offset.owner if isinstance(offset, SSAValue) else None
    if isinstance(product, arith.AddiOp) and piece_along_n(op) is not None:
        product = product.lhs.owner
    if not isinstance(product, arith.MuliOp):
        return None
    number, columns = product.operands
    return (number, columns) if columns in limit.operands else None


def piece_along_n(op: dialect.BrgemmTileOp) -> SSAValue | None:
    """Return the columns before this piece, if a task goes through its columns so."""
    loop = op.parent_op()
    init = op.b.owner
    if not isinstance(loop, scf.ForOp) or not isinstance(init, xetile.InitTileOp):
        return None
    offset = init.mixed_offsets[1 if op.trans_b is None else 0]
    total = offset.owner if isinstance(offset, SSAValue) else None
    counter = loop.body.block.args[0]
    is_sum = isinstance(total, arith.AddiOp) and total.rhs is counter
    return counter if is_sum and PIECES in loop.attributes else None


def on_tiles(product: dialect.BrgemmTileOp, target: Target) -> Arithmetic | None:
    """Return how AMX computes a product; None if AMX does not compute it."""
    how = choose_arithmetic(target, dialect.element_name(product.a), product.unsigned)
    return how if how.instruction == "amx" else None


def is_streamable(tile: SSAValue) -> bool:
    """True for a plain tile whose offset is proven not to be negative."""
    init = origin(tile)
    if init is None or init.indices is not None or len(init.mixed_offsets) != 2:
        return False
    if tile_sizes(init) is None or not is_memref(init.source.type):
        return False
    ops = (init, *xetile.unmoved(tile)[1])
    return all(is_non_negative(offset) for op in ops for offset in op.mixed_offsets)


def loads_zero_padded(load: xetile.LoadTileOp) -> bool:
    """True for a load of one rank-2 vector whose outside reads as zero."""
    if len(load.results) != 1 or vector_type(load.results[0]).get_num_dims() != 2:
        return False
    padding = load.padding
    if padding is None:
        return True
    return isinstance(padding, FloatAttr | IntegerAttr) and padding.value.data == 0


def writes_between(first: Operation, last: Operation) -> bool:
    """True if an operation between two operations of one block may write memory."""
    op = first.next_op
    while op is not None and op is not last:
        if any(may_write(inner) for inner in op.walk()):
            return True
        op = op.next_op
    return op is None


def may_write(op: Operation) -> bool:
    """True for operations that write memory, or let other threads write it.

    ``gpu.barrier`` is not among them: here a program is one thread, and its accesses
    are in program order anyway.
    """
    plain = (memref.StoreOp, memref.AtomicRmwOp, dialect.BarrierOp, FenceOp)
    return isinstance(op, (*_WRITERS, *plain))


def root(base: SSAValue) -> SSAValue:
    """Return the memref (or address) that a view was made from."""
    while isinstance(base.owner, _VIEWS):
        base = base.owner.operands[0]
    if isinstance(base.owner, dialect.ViewAddressOp):
        address = base.owner.address.owner
        while isinstance(address, arith.SelectOp | arith.AddiOp):
            # A select of a copy or its source, or a place in an array.
            is_sum = isinstance(address, arith.AddiOp)
            address = address.operands[0 if is_sum else 2].owner
        if isinstance(address, memref.ExtractAlignedPointerAsIndexOp):
            return root(address.source)
    return base


def tile_root(tile: SSAValue) -> SSAValue | None:
    """Return the array behind a tile; None if it is unknown."""
    init = origin(tile)
    return None if init is None else root(init.source)


def written_root(op: Operation) -> SSAValue | None:
    """Return the array that an operation writes; None if it is unknown."""
    if isinstance(op, _WRITERS):
        return tile_root(op.tile)
    if isinstance(op, memref.StoreOp | memref.AtomicRmwOp):
        return root(op.operands[1])
    return None


def may_alias(left: SSAValue | None, right: SSAValue | None) -> bool:
    """Whether a write to one may change the other; constants are never written."""
    if any(
        each and isinstance(each.owner, dialect.ConstantMemoryOp)
        for each in (left, right)
    ):
        return False
    return memory.may_alias(left, right)


_COPIED = (memref.ReinterpretCastOp, memref.ExtractStridedMetadataOp, memref.DimOp)


def sources_of(
    values: Iterable[Index],
    loop: Operation,
    is_source: Callable[[BlockArgument], bool],
    may_be_copied: Callable[[Operation], bool],
) -> set[BlockArgument] | None:
    """Return the block arguments in the loop that values depend on.

    Return None if the values cannot be computed again elsewhere, because they depend on
    an argument that ``is_source`` refuses or an operation that ``may_be_copied``
    refuses.
    """
    found = set[BlockArgument]()
    waiting = Worklist(value for value in values if isinstance(value, SSAValue))
    for value in waiting:
        if is_defined_outside(value, loop):
            continue
        if isinstance(value, BlockArgument):
            if not is_source(value):
                return None
            found.add(value)
            continue
        op = value.owner
        assert isinstance(op, Operation)
        if not may_be_copied(op):
            return None
        waiting += op.operands
    return found


def counters_of(
    values: Iterable[Index], loop: scf.ParallelOp
) -> set[BlockArgument] | None:
    """Return the programs' numbers and counters that index values and views depend on.

    Return None if the values cannot be computed again elsewhere.
    """
    return sources_of(values, loop, lambda each: is_counter(each, loop), _is_copied)


def is_invariant(values: Iterable[Index], loop: Operation) -> bool:
    """Whether index values and views are the same in all iterations of a loop."""
    return sources_of(values, loop, lambda _: False, _is_copied) is not None


def is_counter(value: BlockArgument, loop: scf.ParallelOp) -> bool:
    """True for the number of a program and for the counter of a loop in the program."""
    owner = value.block.parent_op()
    return owner is loop or (isinstance(owner, scf.ForOp) and value.index == 0)


def _is_copied(op: Operation) -> bool:
    return op.name.startswith("arith.") or isinstance(op, _COPIED)


class Demand(NamedTuple):
    """The numbers of rows and columns that are read; None: all."""

    rows: SSAValue | None = None
    cols: SSAValue | None = None


def demanded_extent(value: SSAValue, before: Operation, build: Builder) -> Demand:
    """Return the part of a rank-2 value that its readers use, as known at ``before``.

    Elementwise operations read the elements that their readers read. A store reads the
    elements inside its matrix. All other operations read all elements. ``build``
    inserts before ``before``.
    """
    stores = _only_stored(value)
    if not stores:
        return Demand()
    places: list[tuple[Sequence[Index], Sequence[Index]]] = []
    for store in stores:
        init = store.tile.owner
        if not isinstance(init, xetile.InitTileOp) or init.indices is not None:
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
    """Move the code of index values before ``place`` if it can stand there."""
    late = set[Operation]()
    waiting = Worklist(value for value in values if isinstance(value, SSAValue))
    for value in waiting:
        op = value.owner
        if dominates(value, place):
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


def _only_stored(value: SSAValue) -> list[xetile.StoreTileOp]:
    """Return the stores of what is computed of a value; none if others read it."""
    stores, waiting = dict[xetile.StoreTileOp, None](), Worklist([value])
    for each in waiting:
        for use in each.uses:
            op = use.operation
            if isinstance(op, xetile.StoreTileOp) and use.index == 0:
                stores[op] = None
            elif _is_elementwise(op, each):
                waiting += op.results
            else:
                return []
    return [*stores]


def _is_elementwise(op: Operation, value: SSAValue) -> bool:
    if not op.name.startswith(("arith.", "math.")) or len(op.results) != 1:
        return False
    old, new = value.type, op.results[0].type
    assert is_vector(old)
    return is_vector(new) and new.get_shape() == old.get_shape()


_MOST_FUSED = 32
"""Operations between a product and its store that a micro-kernel computes, at most."""


def way_to_store(
    product: dialect.BrgemmTileOp, *, on_tiles: bool
) -> tuple[list[Operation], xetile.StoreTileOp] | None:
    """Return a product, what is computed of it, and the store, if nothing else reads.

    A micro-kernel can only convert its sums, but with AMX (``on_tiles``) it can compute
    any elementwise operations of them.
    """
    stores = _only_stored(product.result)
    if len(stores) != 1 or stores[0].parent is not product.parent:
        return None
    (store,) = stores
    known, way = set[SSAValue]([product.result]), list[Operation]([product])
    op = product.next_op
    while op is not None and op is not store:
        if not known.isdisjoint(op.operands):
            way.append(op)
            known |= {*op.results}
        op = op.next_op
    readers = {use.operation for value in known for use in value.uses}
    is_cast = [type(op) for op in way[1:]] in ([], [arith.TruncfOp])
    fits = is_cast or (on_tiles and len(way) <= _MOST_FUSED)
    return (way, store) if fits and readers <= {*way, store} else None


def only_reader(value: SSAValue) -> Operation | None:
    """Return the operation that reads a value, if the value has exactly one use."""
    readers = [use.operation for use in value.uses]
    return readers[0] if len(readers) == 1 else None

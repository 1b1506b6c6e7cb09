"""How values are computed into a buffer; what they depend on.

A load is evaluated where its value is read, which may be after a store that the program
puts behind it.  Loads that a later store would change are done before the store.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue

from xetl.dialects import xetile
from xetl.dialects.upstream import arith
from xetl.transforms.diagnostics import remark
from xetl_cpu.dialect import BrgemmTileOp
from xetl_cpu.lowering.loops.reductions import reduce_rows
from xetl_cpu.lowering.loops.state import Buffer, State, element_of, leaves, shape_of
from xetl_cpu.lowering.loops.stores import write
from xetl_cpu.lowering.tiles import may_alias, may_write, tile_root, written_root


def materialize(state: State, value: SSAValue, op: Operation) -> Buffer:
    """Compute a value in front of ``op`` into a buffer.

    A sum over its rows that is wanted too is taken in the same loop: what is in a
    register need not be read again. A value of an outer block is not remembered: what
    follows a branch or a loop without trips would read what was never written.
    """
    found = state.buffers.get(value)
    if found is not None:
        return found
    buffer = state.room_for(value)
    owner = value.owner
    if isinstance(owner, Operation):
        rows, cols = shape_of(value)
        remark(owner, "memory", f"its {rows} x {cols} elements are kept in scratch")
    if isinstance(owner, Operation) and owner.parent is not op.parent:
        write(state, value, buffer, op)
        return buffer
    reduction = _row_reduction(value)
    if reduction is None:
        write(state, value, buffer, op)
    else:
        _reduce_and_keep(state, reduction, (value, buffer), op)
    state.buffers[value] = buffer
    return buffer


def materialize_cast(state: State, value: SSAValue, op: Operation) -> bool:
    """Compute a cast of a value and the reduction of its rows in front of ``op``.

    Only if nothing else reads the value (in attention, sums of probabilities and the
    next product do): then it never stands in memory in its own, wider type.
    """
    reduction, cast = _row_reduction(value), _cast(value)
    if reduction is None or cast is None or len(list(value.uses)) != 2:
        return False
    result = cast.results[0]
    buffer = state.room_for(result)
    _reduce_and_keep(state, reduction, (result, buffer), op)
    state.buffers[result] = buffer
    return True


def _reduce_and_keep(
    state: State,
    reduction: xetile.TileReduceOp,
    keep: tuple[SSAValue, Buffer],
    op: Operation,
) -> None:
    """Reduce rows into a buffer of its own, and keep elements on the way."""
    result = reduction.results[0]
    to = state.allocate((shape_of(reduction.source)[0], 1), element_of(result))
    reduce_rows(state, reduction, reduction.source, to, op, keep=keep)
    state.buffers[result] = to


def _cast(value: SSAValue) -> Operation | None:
    """A cast of the value to a narrower type, in the same block, for a product.

    Back from there, if it is multiplied as the wider type.
    """
    owner = value.owner
    for use in value.uses:
        cast = use.operation
        if not isinstance(cast, arith.TruncfOp) or not isinstance(owner, Operation):
            continue
        readers = [other.operation for other in cast.results[0].uses]
        if len(readers) == 1 and isinstance(readers[0], arith.ExtfOp):
            (cast,) = readers
            readers = [other.operation for other in cast.results[0].uses]
        if cast.parent is owner.parent and all(
            isinstance(reader, BrgemmTileOp) and reader.parent is owner.parent
            for reader in readers
        ):
            return cast
    return None


def _row_reduction(value: SSAValue) -> xetile.TileReduceOp | None:
    """A reduction of the value's rows in the same block, if there is one."""
    owner = value.owner
    if shape_of(value)[1] == 1 or not isinstance(owner, Operation):
        return None
    for use in value.uses:
        reader = use.operation
        if (
            isinstance(reader, xetile.TileReduceOp)
            and reader.dims == (1,)
            and reader.parent is owner.parent
        ):
            return reader
    return None


_TILE_MAKERS = (xetile.InitTileOp, xetile.UpdateTileOffsetOp)


def snapshot_loads_before(
    state: State, writer: Operation, *, at: Operation | None = None
) -> None:
    """Do now the loads that ``writer`` may change and that are still to be read.

    ``at``: in front of which operation, if not of the writer itself.
    """
    place = writer if at is None else at
    writers = [op for op in writer.walk() if may_write(op)]
    roots = [written_root(op) for op in writers]
    block = writer.parent
    assert block is not None
    pending = state.pending_loads.get(block, [])
    # What is not awaited now never will be: it is dropped, so that many loads and
    # stores in one block take linear time.
    pending[:] = [op for op in pending if _is_awaited(state, op.results[0])]
    for op in list(pending):
        value = op.results[0]
        if value in state.buffers:  # of another load that was done meanwhile
            continue
        if not any(may_alias(tile_root(op.tile), root) for root in roots):
            continue
        if not _is_update_in_place(state, op, writer):
            materialize(state, value, place)


def _is_awaited(state: State, value: SSAValue) -> bool:
    """True if a load has not been done and something not yet lowered will read it."""
    return value not in state.buffers and any(
        _acts(reader) for reader in _readers(state, value, None)
    )


def _readers(
    state: State, value: SSAValue, end: Operation | None
) -> Iterator[Operation]:
    """Who will read a value, or what is computed of it; but for ``end``."""
    waiting, seen = [value], {value}
    while waiting:
        for use in waiting.pop().uses:
            reader = use.operation
            # The indices of a scatter tile are read where the tile is.
            is_done = reader in state.lowered and not isinstance(reader, _TILE_MAKERS)
            if is_done or reader is end:
                continue
            yield reader
            results = {r for r in reader.results if r not in state.buffers} - seen
            seen |= results
            waiting += results


def _acts(reader: Operation) -> bool:
    """True for what is done whoever reads its results: an atomic has some, too."""
    return bool(reader.regions) or not reader.results or may_write(reader)


def _is_update_in_place(
    state: State, load: xetile.LoadTileOp | xetile.LoadGatherOp, store: Operation
) -> bool:
    """``store(f(load(t)), t)``, and nobody else reads the load any more.

    Each element is then read right before it is written.
    """
    if not isinstance(store, xetile.StoreTileOp) or store.tile is not load.tile:
        return False
    value = load.results[0]
    reads = [same for leaf, same in leaves(state, store.value) if leaf is value]
    return all(reads) and _only_reader(state, value, store)


def _only_reader(state: State, value: SSAValue, store: Operation) -> bool:
    return not any(_acts(reader) for reader in _readers(state, value, store))


def reads_elsewhere(
    state: State, value: SSAValue, own: Buffer, targets: list[Buffer]
) -> bool:
    """True if writing ``value`` to ``own`` element by element could go wrong.

    That is: it reads another buffer that is being assigned, or its own at other
    elements than the one it writes.
    """
    for leaf, same_place in leaves(state, value):
        buffer = state.buffers.get(leaf)
        if buffer is None:
            continue
        for target in targets:
            if buffer.memref is target.memref and (target is not own or not same_place):
                return True
    return False

"""Computation of values into buffers, and what such values depend on.

A load is computed where its value is read, which may be after a store that follows it
in the program.  Loads that a later store would change are done before the store.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from xdsl.ir import Operation, SSAValue

from xetl.dialects import xetile
from xetl.dialects.upstream import arith
from xetl.transforms.diagnostics import remark
from xetl.worklist import Worklist
from xetl_cpu.dialect import BrgemmTileOp
from xetl_cpu.lowering.loops.reductions import reduce_rows
from xetl_cpu.lowering.loops.state import Buffer, State, element_of, leaves, shape_of
from xetl_cpu.lowering.loops.stores import write
from xetl_cpu.lowering.tiles import may_alias, may_write, tile_root, written_root


def materialize(state: State, value: SSAValue, op: Operation) -> Buffer:
    """Compute a value into a buffer in front of ``op``.

    If a reduction of its rows exists, the same loop computes it: elements in registers
    need not be read again. A buffer for a value of an outer block is not recorded: code
    behind a branch or a loop without iterations would read memory that was never
    written.
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
    """Compute a cast of a value, and the reduction of its rows, in front of ``op``.

    This is done only if nothing else reads the value (in attention, sums of
    probabilities and the next product read it): then memory never holds the value in
    its wider type.
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
    """Reduce rows into a new buffer, and store elements in the same loop."""
    result = reduction.results[0]
    to = state.allocate((shape_of(reduction.source)[0], 1), element_of(result))
    reduce_rows(state, reduction, reduction.source, to, op, keep=keep)
    state.buffers[result] = to


def _cast(value: SSAValue) -> Operation | None:
    """Return a cast of the value to a narrower type, for a product in the same block.

    If the product multiplies the wider type, return the cast back to that.
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
    """Do the pending loads that ``writer`` may change, before it.

    ``at``: the operation in front of which they are done, instead of the writer.
    """
    place = writer if at is None else at
    together = [*state.joined, writer]
    writers = [op for each in together for op in each.walk() if may_write(op)]
    roots = [written_root(op) for op in writers]
    block = writer.parent
    assert block is not None
    pending = state.pending_loads.get(block, [])
    # A load without pending readers never gets one: it is dropped, so that many loads
    # and stores in one block take linear time.
    pending[:] = [op for op in pending if _is_awaited(state, op.results[0])]
    for op in list(pending):
        value = op.results[0]
        if value in state.buffers:  # of another load that was done meanwhile
            continue
        if not any(may_alias(tile_root(op.tile), root) for root in roots):
            continue
        if not _is_update_in_place(state, op, together):
            materialize(state, value, place)


def _is_awaited(state: State, value: SSAValue) -> bool:
    """True if a load is not done yet, and an operation not yet lowered reads it."""
    return value not in state.buffers and any(
        _acts(reader) for reader in _readers(state, value, ())
    )


def _readers(
    state: State, value: SSAValue, ends: Container[Operation]
) -> Iterator[Operation]:
    """Yield operations that will read a value or results of it, except ``ends``."""
    waiting = Worklist([value])
    for each in waiting:
        for use in each.uses:
            reader = use.operation
            # The indices of a scatter tile are read where the tile is accessed.
            is_done = reader in state.lowered and not isinstance(reader, _TILE_MAKERS)
            if is_done or reader in ends:
                continue
            yield reader
            waiting += [r for r in reader.results if r not in state.buffers]


def _acts(reader: Operation) -> bool:
    """True for operations with effects: an atomic has results as well."""
    return bool(reader.regions) or not reader.results or may_write(reader)


def _is_update_in_place(
    state: State,
    load: xetile.LoadTileOp | xetile.LoadGatherOp,
    writers: Sequence[Operation],
) -> bool:
    """Whether this is ``store(f(load(t)), t)``, and nothing else reads the load later.

    Each element is then read right before it is written, or before the first of several
    stores.
    """
    stores = [op for op in writers if isinstance(op, xetile.StoreTileOp)]
    if len(stores) < len(writers) or load.tile not in [op.tile for op in stores]:
        return False
    value = load.results[0]
    found = [each for op in stores for each in leaves(state, op.value)]
    in_place = all(same for leaf, same in found if leaf is value)
    others = _readers(state, value, writers)
    return in_place and not any(map(_acts, others))


def reads_elsewhere(
    state: State, value: SSAValue, own: Buffer, targets: list[Buffer]
) -> bool:
    """True if writing ``value`` to ``own`` element by element may be wrong.

    It is wrong if the value reads another buffer that is being assigned, or ``own`` at
    other elements than the one that is written.
    """
    for leaf, same_place in leaves(state, value):
        buffer = state.buffers.get(leaf)
        if buffer is None:
            continue
        for target in targets:
            if buffer.memref is target.memref and (target is not own or not same_place):
                return True
    return False

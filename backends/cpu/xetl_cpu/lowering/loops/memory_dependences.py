"""Loads that a later store would change, and what a value reads.

A load is evaluated where its value is read, which may be after a store that the program
puts behind it. Such loads are done before the store.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue

from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.xetile import (
    InitTileOp,
    LoadGatherOp,
    LoadTileOp,
    StoreTileOp,
    TileConvLayoutOp,
    UpdateTileOffsetOp,
)
from xetl_cpu.lowering.loops.materialization import materialize
from xetl_cpu.lowering.loops.state import Buffer, ScatterTile, State
from xetl_cpu.lowering.tiles import may_alias, may_write, tile_root, written_root

_TILE_MAKERS = (InitTileOp, UpdateTileOffsetOp)


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
    state: State, load: LoadTileOp | LoadGatherOp, store: Operation
) -> bool:
    """``store(f(load(t)), t)``, and nobody else reads the load any more.

    Each element is then read right before it is written.
    """
    if not isinstance(store, StoreTileOp) or store.tile is not load.tile:
        return False
    value = load.results[0]
    reads = [same for leaf, same in leaves(state, store.value) if leaf is value]
    return all(reads) and _only_reader(state, value, store)


def _only_reader(state: State, value: SSAValue, store: Operation) -> bool:
    return not any(_acts(reader) for reader in _readers(state, value, store))


def leaves(state: State, value: SSAValue) -> Iterator[tuple[SSAValue, bool]]:
    """Values read to compute ``value``: loads and values in buffers.

    With each: whether its element (i, j) is read only for element (i, j); twice if both
    is the case.
    """
    waiting = [(value, True)]
    seen = set(waiting)
    while waiting:
        each, same_place = waiting.pop()
        op = each.owner
        if not is_vector(each.type):
            continue
        if each in state.buffers or not isinstance(op, Operation):
            yield each, same_place
            continue
        if isinstance(op, LoadTileOp):
            yield each, same_place
            continue
        keeps = same_place and _is_elementwise(op)
        parts = [(operand, keeps) for operand in op.operands]
        if isinstance(op, LoadGatherOp):
            yield each, False
            tile = state.tiles[op.tile]
            assert isinstance(tile, ScatterTile)
            parts.append((tile.indices, same_place))
        parts = [part for part in parts if part not in seen]
        seen.update(parts)
        waiting += parts


def _is_elementwise(op: Operation) -> bool:
    return op.name.startswith(("arith.", "math.", "vector.fma")) or isinstance(
        op, TileConvLayoutOp | LoadGatherOp
    )


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

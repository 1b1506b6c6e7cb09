"""Loads that would see a store which the program put behind them."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from xetl.dialects.xetile import (
    InitTileOp,
    LoadGatherOp,
    LoadTileOp,
    StoreTileOp,
    UpdateTileOffsetOp,
)
from xetl_cpu.lowering.loops.materialize import materialize
from xetl_cpu.lowering.loops.reads import leaves
from xetl_cpu.lowering.loops.state import State
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
    for op in list(block.ops):
        if op is place:
            return
        if not isinstance(op, LoadTileOp | LoadGatherOp):
            continue
        value = op.results[0]
        if value in state.buffers or not _is_awaited(state, value):
            continue
        if not any(may_alias(tile_root(op.tile), root) for root in roots):
            continue
        if not _is_update_in_place(state, op, writer):
            materialize(state, value, place)


def _is_awaited(state: State, value: SSAValue) -> bool:
    """True if something not yet lowered will read the value."""
    for use in value.uses:
        reader = use.operation
        # The indices of a scatter tile are read where the tile is.
        if reader in state.lowered and not isinstance(reader, _TILE_MAKERS):
            continue
        results = [r for r in reader.results if r not in state.buffers]
        if _acts(reader):
            return True
        if any(_is_awaited(state, result) for result in results):
            return True
    return False


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
    for use in value.uses:
        reader = use.operation
        if reader is store:
            continue
        if reader in state.lowered and not isinstance(reader, _TILE_MAKERS):
            continue
        results = [r for r in reader.results if r not in state.buffers]
        if _acts(reader):
            return False
        if not all(_only_reader(state, result, store) for result in results):
            return False
    return True

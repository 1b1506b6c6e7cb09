"""Stores that share one loop, and values that only such a loop reads.

Why: an optimiser step stores the momentum, and the parameters that are computed from
it; one random number has four words that are stored. A value that two loops read would
be in scratch; in one loop it stays in registers.

A loop joins consecutive stores of a block: single rows with equally many columns, where
no store changes elements that another store reads or writes. Each element is loaded,
computed and stored before the next, so an array may be updated in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeGuard

from xdsl.ir import Block, Operation, SSAValue

from xetl.analysis.affine import constant_distance
from xetl.analysis.memory import is_pure
from xetl.dialects.base import is_vector
from xetl.dialects.upstream import arith, vector
from xetl.dialects.xetile import (
    InitTileOp,
    LoadGatherOp,
    LoadTileOp,
    StoreTileOp,
    UpdateTileOffsetOp,
    tile_type,
)
from xetl.worklist import Worklist
from xetl_cpu.lowering.loops import state
from xetl_cpu.lowering.tiles import is_non_negative, may_alias, tile_root

JOINED = "cpu.joined"
"""The attribute of a store that the loop of a later store executes."""

_MOST = 96
"""The largest number of operations for a vector, so that processors have two in flight:
otherwise a row of dependent operations is not hidden ([measured] Zen 3: `dropout`, 250,
takes 1.3 times as long in one loop)."""

_COST = {"arith.divf": 4, "math.sqrt": 5, "math.rsqrt": 8}
_LOADS = (LoadTileOp, LoadGatherOp)
_Load: TypeAlias = LoadTileOp | LoadGatherOp


def operations_of(op: Operation) -> int:
    """Return the number of simple vector operations for one vector of a result."""
    if isinstance(op, LoadTileOp):
        return 2
    if isinstance(
        op, (arith.ConstantOp, vector.ShapeCastOp, *state.FREE, *state.VIEWS)
    ):
        return 0
    return _COST.get(op.name, 10 if op.name.startswith("math.") else 1)


def joined_stores(block: Block) -> dict[Operation, StoreTileOp]:
    """Map stores of a block to the last store of their loop, unless it is too long."""
    groups: list[list[StoreTileOp]] = []
    since: list[_Load] = []  # behind the last group's first store
    is_open = False
    for op in block.ops:
        if isinstance(op, StoreTileOp):
            if is_open and _may_join(groups[-1], since, op):
                groups[-1].append(op)
            else:
                groups.append([op])
                since = []
            is_open = True
        elif isinstance(op, _LOADS):
            since.append(op)
            is_open = is_open and not _overlaps_any(op.tile, groups[-1])
        elif not (is_pure(op) or isinstance(op, InitTileOp | UpdateTileOffsetOp)):
            is_open = False
        elif any(is_vector(each.type) for each in op.results):
            is_open = is_open and state.is_computed_where_read(op)
    return {store: group[-1] for group in filter(_is_short, groups) for store in group}


def read_by_one(
    block: Block, last: Mapping[Operation, StoreTileOp]
) -> dict[SSAValue, StoreTileOp]:
    """Map values that only one loop of stores reads, at equal places, to this loop."""
    found: dict[SSAValue, StoreTileOp] = {}

    def loop_of(reader: Operation) -> StoreTileOp | None:
        is_followed = _keeps_places(reader) and reader.parent is block
        return found.get(reader.results[0]) if is_followed else last.get(reader)

    for op in reversed([*block.ops] if last else []):
        for value in op.results:
            loops = {loop_of(use.operation) for use in value.uses}
            if len(loops) == 1 and (loop := loops.pop()):
                found[value] = loop
    return found


def _may_join(
    group: Sequence[StoreTileOp],
    since: Sequence[_Load],
    store: StoreTileOp,
) -> bool:
    """Whether a store may be done element by element together with those before it."""
    if not _is_short(group):  # it will not be joined
        return False
    stores = [*group, store]
    if not all(map(_is_row, stores)) or state.shape_of(store.value) != state.shape_of(
        group[0].value
    ):
        return False
    if _overlaps_any(store.tile, [*group, *since]):
        return False
    # Pairs of those before it were asked about when they joined.
    pairs = [(store, each) for each in stores] + [(each, store) for each in group]
    return not any(
        _overlap(load.tile, to.tile) and not (load.tile is to.tile and same_place)
        for one, to in pairs
        for load, same_place in _loads(one.value)
    )


def _is_row(store: StoreTileOp) -> bool:
    """Whether the tile is a row of several columns that starts in its matrix."""
    init = store.tile.owner
    rows, cols = state.shape_of(store.value)
    if rows > 1 or cols == 1 or not _is_plain(init):
        return False
    return all(map(is_non_negative, init.mixed_offsets))


def _is_plain(op: Operation | Block) -> TypeGuard[InitTileOp]:
    return isinstance(op, InitTileOp) and op.indices is None


def _overlap(one: SSAValue, other: SSAValue) -> bool:
    """Whether two tiles may have elements in common."""
    if not may_alias(tile_root(one), tile_root(other)):
        return False
    here, there = one.owner, other.owner
    if not _is_plain(here) or not _is_plain(there):
        return True
    views = [(x.source, *x.mixed_sizes, *x.mixed_strides) for x in (here, there)]
    if views[0] != views[1]:
        return True
    shapes = zip(tile_type(one).shape[::-1], tile_type(other).shape[::-1])
    places = zip(here.mixed_offsets[::-1], there.mixed_offsets[::-1], map(max, shapes))
    apart = ((constant_distance(a, b), extent) for a, b, extent in places)
    return not any(d is not None and abs(d) >= extent for d, extent in apart)


def _overlaps_any(tile: SSAValue, others: Iterable[StoreTileOp | _Load]) -> bool:
    return any(_overlap(tile, each.tile) for each in others)


def _is_short(group: Sequence[StoreTileOp]) -> bool:
    """Whether the loop of a group has at most `_MOST` operations for a vector."""
    found: set[Operation] = set()
    count = 0
    for op in (op for store in group for op, _ in _sources(store.value)):
        if op not in found:
            found.add(op)
            count += operations_of(op)
        if count > _MOST:
            return False
    return True


def _loads(value: SSAValue) -> Iterator[tuple[_Load, bool]]:
    """Yield the loads behind a value, and whether they are of the same place."""
    for op, same_place in _sources(value):
        if isinstance(op, _LOADS):
            yield op, same_place and isinstance(op, LoadTileOp)


def _sources(value: SSAValue) -> Iterator[tuple[Operation, bool]]:
    """Yield operations computed with a value, and whether at the same place."""
    waiting = Worklist([(value, True)])
    for each, same_place in waiting:
        op = each.owner
        if not isinstance(op, Operation) or not state.is_computed_where_read(op):
            continue
        yield op, same_place
        if isinstance(op, LoadTileOp):
            continue
        keeps = same_place and _keeps_places(op)
        waiting += [(operand, keeps) for operand in op.operands]
        if isinstance(op, LoadGatherOp):
            init = op.tile.owner
            waiting += [(operand, False) for operand in getattr(init, "operands", ())]


def _keeps_places(op: Operation) -> bool:
    """Whether element (i, j) of the result needs only elements (i, j)."""
    if isinstance(op, vector.ShapeCastOp):
        return state.shape_of(op.operands[0]) == state.shape_of(op.results[0])
    gathers = isinstance(op, LoadGatherOp)
    return state.is_computed_where_read(op) and state.is_elementwise(op) and not gathers

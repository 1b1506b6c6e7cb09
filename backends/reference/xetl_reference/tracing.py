"""Writes down the tiles that a program touches, for `xetl.TileTrace`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xetl.dialects.xetile.types import TileType
from xetl.runtime.trace import TileAccess, TileTrace
from xetl_reference.memory import Memory
from xetl_reference.op_locations import line_of
from xetl_reference.plan import BLOCK_ID, Frame, Guard, Plan, Step
from xetl_reference.tiles import Tile

_KINDS = {
    "xetile.load_tile": "load",
    "xetile.store_tile": "store",
    "xetile.prefetch_tile": "prefetch",
    "xetile.atomic_rmw_tile": "atomic",
}
_SHARED = "shared memory"


def recorder(
    trace: TileTrace, names: Mapping[Memory, str], guard: Guard | None
) -> Guard:
    """What notes the tiles of a program, around the checks of ``guard``.

    Args:
        trace: where they are noted.
        names: of the arrays.
        guard: what else goes around steps.
    """

    def note(plan: Plan, op: Any, step: Step) -> Step:
        inner = step if guard is None else guard(plan, op, step)
        kind = _KINDS.get(op.name)
        tiles = [each for each in op.operands if isinstance(each.type, TileType)]
        if kind is None or not tiles:
            return inner
        slot, shape, line = plan.slot(tiles[0]), tiles[0].type.shape, line_of(op)

        def run(frame: Frame) -> None:
            tile = frame[slot]
            here = tuple(frame[BLOCK_ID : BLOCK_ID + 3])
            if here == trace.program and isinstance(tile, Tile):
                trace.accesses.append(
                    TileAccess(
                        kind,
                        names.get(tile.memory, _SHARED),
                        int(tile.base),
                        (int(tile.sizes[0]), int(tile.sizes[1])),
                        int(tile.row),
                        int(tile.column),
                        (shape[0], shape[1]),
                        line,
                    )
                )
            inner(frame)

        return run

    return note

"""Blocks that the user wrote are kept, if the device can move them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import Operation

from xetl.devices import Device
from xetl.dialects.xetile import TileType
from xetl.errors import TileShapeError
from xetl.frames import at_frames, frame_at
from xetl.transforms.blocks.demands import ACCESSES, legal_blocks
from xetl.transforms.remarks import positions_of


def check_given(type_: TileType, accesses: Iterable[Operation], device: Device) -> None:
    """Check the `inner_blocks` of a tile against all that access it.

    Raises:
        TileShapeError: an access cannot be done in such blocks; with the legal ones.
    """
    given = type_.inner_blocks
    if given is None:
        return
    for op in accesses:
        access = ACCESSES.get(type(op))
        if access is None:
            continue
        legal = legal_blocks(type_, access, device)
        if given not in legal:
            raise _illegal(op, type_, given, legal, device)


def _illegal(
    op: Operation,
    type_: TileType,
    given: Sequence[int],
    legal: Sequence[tuple[int, int]],
    device: Device,
) -> TileShapeError:
    name = op.name.removeprefix("xetile.")
    block = f"({given[0]}, {given[1]})"
    error = TileShapeError(
        f"`{name}` cannot move blocks of {block} {type_.element_type} on {device.name}",
        code="X0212",
        help=_advice(legal),
    )
    places = positions_of(op.location)
    frames = [frame_at(p.filename.data, p.line.data, p.column.data) for p in places]
    return at_frames(error, frames)


def _advice(legal: Sequence[tuple[int, int]]) -> str:
    if not legal:
        return "no block fits this tile: leave out `inner_blocks`"
    rows, columns = (sorted(set(extents)) for extents in zip(*legal))
    return f"blocks of this tile: {_any_of(rows)} rows, {_any_of(columns)} columns"


def _any_of(numbers: Sequence[int]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} or {last}" if most else last

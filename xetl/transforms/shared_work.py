"""Tell the user where a kernel does all of its work several times.

A map may be larger than its tile: several subgroups then hold the same data.  That is
how operands are shared; where the products themselves (or, without any, what is
stored) are shared, all the work behind them is repeated, and most likely not meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation

from xetl.dialects.base import vector_type
from xetl.dialects.xetile import (
    AtomicRmwTileOp,
    StoreTileOp,
    TileMmaOp,
    WorkgroupMap,
    layout_of,
    tile_type,
)
from xetl.language.distribution import Layout, problem_with, rounds
from xetl.transforms.remarks import remark


def report_shared_work(kernel: Operation) -> None:
    """A remark and a warning, if all of what counts is shared."""
    products = [op for op in kernel.walk() if isinstance(op, TileMmaOp)]
    stores = [
        op for op in kernel.walk() if isinstance(op, StoreTileOp | AtomicRmwTileOp)
    ]
    spread = [_spread(op) for op in products or stores]
    repeats = [1 if each is None else _repeats(*each) for each in spread]
    if min(repeats, default=1) == 1:
        return
    first = repeats.index(min(repeats))
    found = spread[first]
    assert found is not None
    _report((products or stores)[first], repeats[first], *found)


def _spread(
    op: TileMmaOp | StoreTileOp | AtomicRmwTileOp,
) -> tuple[Sequence[int], Layout] | None:
    """The shape that an operation gives or stores, and its map; None without one."""
    map_: WorkgroupMap | None
    if isinstance(op, TileMmaOp):
        shape, map_ = vector_type(op.result).get_shape(), op.wg_map
    else:
        type_ = tile_type(op.tile)
        shape, map_ = type_.shape, type_.wg_map
    if map_ is None or len(shape) != 2 or problem_with(shape, layout_of(map_)):
        return None
    return shape, layout_of(map_)


def _repeats(shape: Sequence[int], layout: Layout) -> int:
    """How many subgroups hold each element."""
    parts = prod(extent // size for extent, size in zip(shape, layout.sg_data))
    return layout.subgroups * prod(rounds(shape, layout)) // parts


def _report(op: Operation, repeats: int, shape: Sequence[int], layout: Layout) -> None:
    text = (
        f"{repeats} subgroups each do the same work: wg_map({list(layout.sg_layout)}, "
        f"{list(layout.sg_data)}) is larger than what it spreads, {tuple(shape)}; use "
        "fewer subgroups, less sg_data or a larger tile"
    )
    remark(op, "maps", text, is_warning=True)

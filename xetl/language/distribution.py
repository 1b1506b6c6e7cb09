"""The distribution rule: which subgroup, and which lane, owns an element of a tile.

This module works on plain numbers, not on IR. The verifiers, the passes and the
pictures of maps all use it.
Source: XeTile RFC, "wg_map"; the RFC on layouts that reach down to lanes, "distribution
rule" (n dimensions, ``inst_data``, ``order``); docs/xetile.md, section 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod

from xetl.records import record


@record(frozen=True)
class Layout:
    """How a tile of n dimensions is distributed; all lists have n entries.

    Attributes:
        sg_layout: subgroups along each dimension.
        sg_data: the part that one subgroup takes at a time, in elements.
        inst_data: the part of ``sg_data`` that one instruction takes; None: not given.
        lane_layout: lanes of a subgroup along each dimension; None: not given.
        lane_data: neighbours that one lane takes at a time; None: not given.
        order: the dimensions from the one along which ids count fastest; by default
            (n-1, ..., 0), which is row-major.
    """

    sg_layout: tuple[int, ...]
    sg_data: tuple[int, ...]
    inst_data: tuple[int, ...] | None = None
    lane_layout: tuple[int, ...] | None = None
    lane_data: tuple[int, ...] | None = None
    order: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.order:
            object.__setattr__(self, "order", row_major(len(self.sg_layout)))

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.sg_layout)

    @property
    def subgroups(self) -> int:
        """The number of subgroups that the tile is distributed over."""
        return prod(self.sg_layout)

    def coordinates(self, sg: int) -> tuple[int, ...]:
        """Return the coordinates of the subgroup with id ``sg`` in ``sg_layout``."""
        found = [0] * self.rank
        for dim in self.order:
            sg, found[dim] = divmod(sg, self.sg_layout[dim])
        return tuple(found)


def row_major(rank: int) -> tuple[int, ...]:
    """Return the order in which the last dimension is the fastest."""
    return tuple(reversed(range(rank)))


def whole(shape: Sequence[int], subgroups_layout: Sequence[int]) -> Layout:
    """Return the layout in which every subgroup owns all of a tile of ``shape``."""
    return Layout(tuple(subgroups_layout), tuple(shape))


def spreads(extent: int, count: int, size: int) -> bool:
    """Whether ``count`` subgroups can take ``extent`` elements ``size`` at a time.

    They take all elements in full rounds, or all parts have equally many owners.
    """
    unit = count * size
    return extent % size == 0 and (extent % unit == 0 or unit % extent == 0)


def problem_in(layout: Layout) -> str | None:
    """Return why ``layout`` is wrong for every shape. Return None if it is not."""
    for name in ("sg_layout", "sg_data", "inst_data", "lane_layout", "lane_data"):
        values: tuple[int, ...] | None = getattr(layout, name)
        if values is not None and len(values) != layout.rank:
            return (
                f"`{name}` must have {layout.rank} entries as `sg_layout` has, "
                f"found {list(values)}"
            )
        if values is not None and min(values, default=0) < 1:
            return f"entries of `{name}` must be positive, found {list(values)}"
    if sorted(layout.order) != list(range(layout.rank)):
        return (
            f"`order` must name each of the {layout.rank} dimensions once, "
            f"found {list(layout.order)}"
        )
    return _problem_below_subgroups(layout)


def _problem_below_subgroups(layout: Layout) -> str | None:
    """Return why instructions or lanes do not split a part evenly, or None."""
    if (layout.lane_layout is None) != (layout.lane_data is None):
        return "`lane_layout` and `lane_data` are given together or not at all"
    block, name = layout.sg_data, "sg_data"
    for dim, (data, part) in enumerate(zip(block, layout.inst_data or block)):
        if data % part:
            return (
                f"`inst_data` {part} does not divide `sg_data` {data} of "
                f"dimension {dim}"
            )
    if layout.inst_data is not None:
        block, name = layout.inst_data, "inst_data"
    lanes = zip(block, layout.lane_layout or (), layout.lane_data or ())
    for dim, (data, count, size) in enumerate(lanes):
        if data % (count * size):
            return (
                f"lane_layout * lane_data = {count} * {size} = {count * size} does "
                f"not divide `{name}` {data} of dimension {dim}"
            )
    return None


def problem_with(shape: Sequence[int], layout: Layout) -> str | None:
    """Return why ``layout`` cannot distribute ``shape``. Return None if it can."""
    if len(shape) != layout.rank:
        return f"it has {layout.rank} dimensions, the shape {list(shape)} {len(shape)}"
    for dim, extent in enumerate(shape):
        count, size = layout.sg_layout[dim], layout.sg_data[dim]
        if spreads(extent, count, size):
            continue
        if extent % size:
            return f"sg_data {size} does not divide extent {extent} of dimension {dim}"
        return (
            f"sg_layout * sg_data = {count} * {size} = {count * size} and "
            f"extent {extent} of dimension {dim}: neither divides the other"
        )
    return None


def rounds(shape: Sequence[int], layout: Layout) -> tuple[int, ...]:
    """Return how many sub-tiles a subgroup owns along each dimension."""
    return tuple(
        max(1, parts // count)
        for parts, count in zip(_parts(shape, layout), layout.sg_layout)
    )


def origins(shape: Sequence[int], layout: Layout, sg: int) -> list[tuple[int, ...]]:
    """Return where the sub-tiles of subgroup ``sg`` begin, dimension 0 outermost.

    Subgroups take sub-tiles round-robin. If there are more subgroups than sub-tiles,
    they wrap around and share.
    """
    starts = [
        [
            (turn * count + place) % parts * size
            for turn in range(max(1, parts // count))
        ]
        for parts, count, size, place in zip(
            _parts(shape, layout),
            layout.sg_layout,
            layout.sg_data,
            layout.coordinates(sg),
        )
    ]
    return list(itertools.product(*starts))


def _parts(shape: Sequence[int], layout: Layout) -> tuple[int, ...]:
    """Return how many sub-tiles there are along each dimension."""
    return tuple(extent // size for extent, size in zip(shape, layout.sg_data))

"""Layouts as the passes compare and change them: rank 2, subgroups only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from xetl.language.distribution import Layout, origins, row_major

COLUMN_MAJOR = (0, 1)


def plain(layout: Layout) -> Layout:
    """What a layout says about subgroups, in the one form that `==` compares.

    With one row or one column of subgroups both ways of counting ids are the same.
    """
    order = layout.order
    if 1 in layout.sg_layout:
        order = row_major(layout.rank)
    return Layout(layout.sg_layout, layout.sg_data, order=order)


def counted(layout: Layout, down_columns: bool) -> Layout:
    """The same sg_layout and sg_data, with ids counting down columns or along rows."""
    order = COLUMN_MAJOR if down_columns else row_major(2)
    return plain(Layout(layout.sg_layout, layout.sg_data, order=order))


def transposed(layout: Layout) -> Layout:
    """The layout of the transposed value when nothing changes hands."""
    order = tuple(1 - dim for dim in layout.order)
    swapped = Layout(layout.sg_layout[::-1], layout.sg_data[::-1], order=order)
    return plain(swapped)


def with_data(layout: Layout, dims: Sequence[int], sizes: Sequence[int]) -> Layout:
    """The same with other ``sg_data`` in some dimensions."""
    data = list(layout.sg_data)
    for dim, size in zip(dims, sizes):
        data[dim] = size
    return replace(layout, sg_data=tuple(data))


def is_whole(shape: Sequence[int], layout: Layout) -> bool:
    """Whether every subgroup owns all of the value."""
    return tuple(shape) == layout.sg_data


@lru_cache(maxsize=4096)
def same_owners(shape: tuple[int, ...], one: Layout, other: Layout) -> bool:
    """Whether each subgroup holds the same parts in the same order under both."""
    if one == other:
        return True
    if one.sg_data != other.sg_data or one.subgroups != other.subgroups:
        return False
    return all(
        origins(shape, one, sg) == origins(shape, other, sg)
        for sg in range(one.subgroups)
    )

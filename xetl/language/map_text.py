"""A map as a table for the eye: which subgroup, or which work item, holds what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from xetl.language.distribution import Layout, origins, rounds

_MOST_ROWS, _MOST_COLUMNS = 32, 12
"""More sub-tiles than these are left out in the middle."""

Owners = dict[tuple[int, ...], list[int]]


def owners(shape: tuple[int, int], layout: Layout) -> Owners:
    """All who hold a sub-tile, by the place where it begins; lowest id first."""
    found: Owners = {}
    for number in range(layout.subgroups):
        for origin in origins(shape, layout, number):
            found.setdefault(origin, []).append(number)
    return dict(sorted(found.items()))


def ids(numbers: Sequence[int]) -> str:
    """Ascending numbers in short: ``0-3``, ``0,4,..,28`` or ``2,5,6``."""
    steps = {b - a for a, b in pairwise(numbers)}
    if len(numbers) > 1 and steps == {1}:
        return f"{numbers[0]}-{numbers[-1]}"
    if len(numbers) > 3 and len(steps) == 1:
        return f"{numbers[0]},{numbers[1]},..,{numbers[-1]}"
    return ",".join(map(str, numbers))


def headline(shape: tuple[int, int], layout: Layout, who: str = "subgroup") -> str:
    """How many there are, and what each of them holds."""
    turns = rounds(shape, layout)
    parts = turns[0] * turns[1]
    size = " x ".join(map(str, layout.sg_data))
    return (
        f"{shape[0]} x {shape[1]} over {layout.subgroups} {who}s as "
        f"{list(layout.sg_layout)}: each holds {parts} sub-tile{'s' * (parts > 1)} "
        f"of {size}"
    )


def sharing(found: Owners, who: str = "subgroup") -> str | None:
    """A sentence about data that several hold; None if there is none."""
    sharers = len(next(iter(found.values())))
    if sharers == 1:
        return None
    return f"shared: every sub-tile is held by {sharers} {who}s, the first one stores"


def table(shape: tuple[int, int], layout: Layout, who: str = "subgroup") -> str:
    """The lines of a table with a row and a column for each sub-tile.

    Args:
        shape: of what is spread.
        layout: a legal one for it, of two dimensions.
        who: what its ids count.
    """
    found = owners(shape, layout)
    spans = [
        [f"{start}-{start + size - 1}" if size > 1 else f"{start}" for start in starts]
        for starts, size in zip(_starts(found), layout.sg_data)
    ]
    rows, columns = spans
    grid = [ids(each) for each in found.values()]
    cells = [grid[i : i + len(columns)] for i in range(0, len(grid), len(columns))]
    body = [["rows", *_shortened(columns, _MOST_COLUMNS)]]
    body += [[name, *_shortened(row, _MOST_COLUMNS)] for name, row in zip(rows, cells)]
    lines = [
        headline(shape, layout, who),
        *_aligned(_shortened_rows(body)),
        sharing(found, who),
    ]
    return "\n".join(line for line in lines if line is not None)


def _starts(found: Owners) -> list[list[int]]:
    return [sorted({origin[dim] for origin in found}) for dim in (0, 1)]


def _shortened(cells: list[str], most: int) -> list[str]:
    return cells if len(cells) <= most else [*cells[: most - 2], "...", cells[-1]]


def _shortened_rows(body: list[list[str]]) -> list[list[str]]:
    if len(body) <= _MOST_ROWS + 1:
        return body
    return [*body[: _MOST_ROWS - 1], ["..."] * len(body[0]), body[-1]]


def _aligned(body: list[list[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*body)]
    for first, *rest in body:
        cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:])]
        yield f"  {first.ljust(widths[0])} | {'  '.join(cells)}"

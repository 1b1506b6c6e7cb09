"""Maps as tables of text, and as SVG pictures in which each subgroup has a colour.

Sub-tiles of one colour belong to one subgroup; sub-tiles of several subgroups are
striped. The SVG is written without a library, to avoid a dependency.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from xetl.errors import TileMapError
from xetl.language.distribution import Layout, origins, rounds

_MOST_ROWS, _MOST_COLUMNS = 32, 12
"""The most sub-tiles of a table; if there are more, the middle is left out."""

Owners = dict[tuple[int, ...], list[int]]


def owners(shape: tuple[int, int], layout: Layout) -> Owners:
    """Return the ids of a sub-tile's owners, ascending, by the sub-tile's origin."""
    found: Owners = {}
    for number in range(layout.subgroups):
        for origin in origins(shape, layout, number):
            found.setdefault(origin, []).append(number)
    return dict(sorted(found.items()))


def ids(numbers: Sequence[int]) -> str:
    """Abbreviate ascending numbers: ``0-3``, ``0,4,..,28`` or ``2,5,6``."""
    steps = {b - a for a, b in pairwise(numbers)}
    if len(numbers) > 1 and steps == {1}:
        return f"{numbers[0]}-{numbers[-1]}"
    if len(numbers) > 3 and len(steps) == 1:
        return f"{numbers[0]},{numbers[1]},..,{numbers[-1]}"
    return ",".join(map(str, numbers))


def headline(shape: tuple[int, int], layout: Layout, who: str = "subgroup") -> str:
    """Return a line with the number of subgroups and the sub-tiles of each."""
    turns = rounds(shape, layout)
    parts = turns[0] * turns[1]
    size = " x ".join(map(str, layout.sg_data))
    return (
        f"{shape[0]} x {shape[1]} over {layout.subgroups} {who}s as "
        f"{list(layout.sg_layout)}: each holds {parts} sub-tile{'s' * (parts > 1)} "
        f"of {size}"
    )


def sharing(found: Owners, who: str = "subgroup") -> str | None:
    """Return a sentence about shared sub-tiles, or None if no sub-tile is shared."""
    sharers = len(next(iter(found.values())))
    if sharers == 1:
        return None
    return f"shared: every sub-tile is held by {sharers} {who}s, the first one stores"


def table(shape: tuple[int, int], layout: Layout, who: str = "subgroup") -> str:
    """Return the text of a table of all sub-tiles and their owners, called ``who``.

    The layout has two dimensions, and is legal for the shape.
    """
    found = owners(shape, layout)
    all_starts = [sorted({origin[dim] for origin in found}) for dim in (0, 1)]
    spans = [
        [f"{start}-{start + size - 1}" if size > 1 else f"{start}" for start in starts]
        for starts, size in zip(all_starts, layout.sg_data)
    ]
    rows, columns = spans
    grid = [ids(each) for each in found.values()]
    cells = [grid[i : i + len(columns)] for i in range(0, len(grid), len(columns))]
    body = [["rows", *_shortened(columns, _MOST_COLUMNS)]]
    body += [[name, *_shortened(row, _MOST_COLUMNS)] for name, row in zip(rows, cells)]
    if len(body) > _MOST_ROWS + 1:
        body[_MOST_ROWS - 1 : -1] = [["..."] * len(body[0])]
    lines = [headline(shape, layout, who), *_aligned(body), sharing(found, who)]
    return "\n".join(line for line in lines if line is not None)


def _shortened(cells: list[str], most: int) -> list[str]:
    return cells if len(cells) <= most else [*cells[: most - 2], "...", cells[-1]]


def _aligned(body: list[list[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*body)]
    for first, *rest in body:
        cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:])]
        yield f"  {first.ljust(widths[0])} | {'  '.join(cells)}"


_MOST = 64
"""The most sub-tiles that are drawn along a dimension."""
_LEFT, _TOP = 56, 64
_TURN = 137.508
"""Degrees between the hues of neighbouring ids: the golden angle keeps them apart."""

_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" \
viewBox="0 0 {width} {height}" font-family="sans-serif">
<defs><pattern id="shared" width="7" height="7" patternUnits="userSpaceOnUse" \
patternTransform="rotate(45)"><rect width="2" height="7" fill="#000" \
fill-opacity="0.13"/></pattern></defs>
<rect width="100%" height="100%" fill="#fff"/>"""


def picture(
    shape: tuple[int, int], layout: Layout, title: str, who: str = "subgroup"
) -> str:
    """Return the text of an SVG picture of what `table` tells."""
    found = owners(shape, layout)
    counts = [extent // size for extent, size in zip(shape, layout.sg_data)]
    rows, columns = (min(count, _MOST) for count in counts)
    height, width = _cell(layout, rows, columns)
    notes = [headline(shape, layout, who), sharing(found, who)]
    if [rows, columns] != counts:
        notes.append(f"drawn: the first {rows} x {columns} sub-tiles")
    lines = [note for note in notes if note is not None]
    bottom = _TOP + rows * height
    total_width = max(_LEFT + columns * width + 16, 8 * max(map(len, lines)), 320)
    total_height = bottom + 20 * len(lines) + 12
    parts = [
        _HEAD.format(width=total_width, height=total_height),
        _text(12, 24, title, size=15, anchor="start", weight="bold"),
        *_axes(layout, (rows, columns), (height, width)),
    ]
    for (row, column), held_by in found.items():
        y, x = row // layout.sg_data[0], column // layout.sg_data[1]
        if y < rows and x < columns:
            corner = _LEFT + x * width, _TOP + y * height
            parts += _sub_tile(corner, (height, width), held_by)
    parts += [
        _text(12, bottom + 22 + 20 * i, line, anchor="start")
        for i, line in enumerate(lines)
    ]
    return "\n".join([*parts, "</svg>", ""])


def show_layout(
    layout: Layout,
    shape: tuple[int, int],
    title: str,
    path: str | Path | None,
    who: str = "subgroup",
) -> None:
    """Print a table of a layout, or write an SVG; a TileMapError for other files."""
    if path is None:
        print(table(shape, layout, who))  # noqa: T201 - asked for
        return
    if Path(path).suffix.lower() != ".svg":
        problem = f"a map is drawn as an SVG, not as `{Path(path).suffix or path}`"
        help_ = f'write path="{Path(path).with_suffix(".svg")}"'
        raise TileMapError(problem, "X0506", help_)
    Path(path).write_text(picture(shape, layout, title, who), encoding="utf-8")


def _cell(layout: Layout, rows: int, columns: int) -> tuple[int, int]:
    """Return height and width of a sub-tile in pixels: to scale, within limits."""
    high, wide = layout.sg_data
    scale = min(560 / (high * rows), 720 / (wide * columns))
    return (
        round(min(max(high * scale, 26), 120)),
        round(min(max(wide * scale, 44), 200)),
    )


def _axes(
    layout: Layout, counts: tuple[int, int], cell: tuple[int, int]
) -> Iterator[str]:
    """Yield labels: the first row and the first column of each sub-tile."""
    for i in range(counts[0]):
        y = _TOP + i * cell[0] + cell[0] / 2 + 4
        yield _text(_LEFT - 6, y, str(i * layout.sg_data[0]), anchor="end", grey=True)
    for i in range(counts[1]):
        x = _LEFT + i * cell[1] + cell[1] / 2
        yield _text(x, _TOP - 8, str(i * layout.sg_data[1]), grey=True)


def _sub_tile(
    corner: tuple[int, int], cell: tuple[int, int], held_by: list[int]
) -> Iterator[str]:
    (x, y), (height, width) = corner, cell
    box = f'x="{x}" y="{y}" width="{width}" height="{height}"'
    hue = held_by[0] * _TURN % 360
    yield f'<rect {box} fill="hsl({hue:.0f}, 65%, 82%)" stroke="#555"/>'
    if len(held_by) > 1:
        yield f'<rect {box} fill="url(#shared)"/>'
    label = ids(held_by)
    size = min(13, int((width - 4) / (0.6 * len(label))))
    yield _text(x + width / 2, y + height / 2 + size * 0.35, label, size=size)


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 12,
    anchor: str = "middle",
    weight: str = "normal",
    grey: bool = False,
) -> str:
    from html import escape  # noqa: PLC0415 - only for pictures

    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" '
        f'font-weight="{weight}" fill="{"#666" if grey else "#111"}">'
        f"{escape(text)}</text>"
    )

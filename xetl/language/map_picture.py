"""A map as a picture: an SVG in which each subgroup has its colour.

Equal colours are of one subgroup, all over the tile; striped is what several hold.
Written by hand, so that nobody needs a library for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from xetl.errors import TileMapError
from xetl.language.distribution import Layout
from xetl.language.map_text import headline, ids, owners, sharing, table

_MOST = 64
"""Sub-tiles that are drawn along a dimension."""
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
    """The text of an SVG.

    Args:
        shape: of what is spread.
        layout: a legal one for it, of two dimensions.
        title: the first line.
        who: what its ids count.
    """
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
    """Print a layout as a table, or write its picture.

    Raises:
        TileMapError: ``path`` does not end in ``.svg``.
    """
    if path is None:
        print(table(shape, layout, who))  # noqa: T201 - asked for
        return
    if Path(path).suffix.lower() != ".svg":
        raise TileMapError(
            f"a map is drawn as an SVG, not as `{Path(path).suffix or path}`",
            code="X0506",
            help=f'write path="{Path(path).with_suffix(".svg")}"',
        )
    Path(path).write_text(picture(shape, layout, title, who), encoding="utf-8")


def _cell(layout: Layout, rows: int, columns: int) -> tuple[int, int]:
    """Height and width of a sub-tile in pixels: to scale, within what is legible."""
    high, wide = layout.sg_data
    scale = min(560 / (high * rows), 720 / (wide * columns))
    return (
        round(min(max(high * scale, 26), 120)),
        round(min(max(wide * scale, 44), 200)),
    )


def _axes(
    layout: Layout, counts: tuple[int, int], cell: tuple[int, int]
) -> Iterator[str]:
    """The number of the first row and column of each sub-tile."""
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
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" '
        f'font-weight="{weight}" fill="{"#666" if grey else "#111"}">'
        f"{escape(text)}</text>"
    )

"""A `xetl.TileTrace` as a figure of matplotlib; loaded when one is drawn."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from xetl.runtime.trace import TileAccess

_SIDE = 3.6
_MOST_NUMBERS = 24
_EDGES = {"load": "-", "store": "-", "prefetch": ":", "atomic": "--"}


def draw(program: tuple[int, int, int], accesses: Sequence[TileAccess]) -> Any:
    """The figure: a panel for each matrix, tiles numbered and coloured by time."""
    figures: Any = importlib.import_module("matplotlib.figure")
    colours: Any = importlib.import_module("matplotlib").colormaps["viridis"]
    matrices = list(dict.fromkeys((a.array, a.panel, a.matrix) for a in accesses))
    figure = figures.Figure(figsize=(_SIDE * len(matrices), _SIDE + 0.6), dpi=120)
    axes = figure.subplots(1, len(matrices), squeeze=False)[0]
    for axis, (array, panel, matrix) in zip(axes, matrices):
        named = f"{array} + {panel}" if panel else array
        axis.set_title(f"{named}, {matrix[0]} x {matrix[1]}", fontsize=9)
        _frame(axis, matrix)
        for number, access in enumerate(accesses):
            if (access.array, access.panel, access.matrix) == (array, panel, matrix):
                colour = colours(number / max(len(accesses) - 1, 1))
                _tile(axis, access, number, colour, len(accesses))
    figure.suptitle(
        f"program {program}: dark first, bright last; filled: stored, dotted: "
        "prefetched",
        fontsize=9,
    )
    figure.tight_layout()
    return figure


def _frame(axis: Any, matrix: tuple[int, int]) -> None:
    patches: Any = importlib.import_module("matplotlib.patches")
    rows, columns = matrix
    outline = patches.Rectangle((0, 0), columns, rows, fill=False, ec="black", lw=1.2)
    axis.add_patch(outline)
    margin = 0.04 * max(rows, columns, 1)
    axis.set_xlim(-margin, columns + margin)
    axis.set_ylim(rows + margin, -margin)
    axis.set_aspect("equal" if max(rows, columns) < 8 * min(rows, columns) else "auto")
    axis.tick_params(labelsize=7)


def _tile(axis: Any, access: TileAccess, number: int, colour: Any, count: int) -> None:
    patches: Any = importlib.import_module("matplotlib.patches")
    rows, columns = access.shape
    corner = access.column, access.row
    fill = 0.55 if access.kind in ("store", "atomic") else 0.16
    axis.add_patch(
        patches.Rectangle(
            corner,
            columns,
            rows,
            facecolor=(*colour[:3], fill),
            edgecolor=colour,
            linestyle=_EDGES[access.kind],
            lw=1.4,
        )
    )
    if count <= _MOST_NUMBERS:
        middle = access.column + columns / 2, access.row + rows / 2
        axis.text(*middle, str(number), ha="center", va="center", fontsize=7)

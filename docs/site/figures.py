"""Pictures for the sections of the language page: small kernels are run and drawn.

Each function returns what it ran on and what the kernel gave, on the reference backend;
`draw` makes an SVG of them. Cells of equal colour belong together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xetl import xetile
from xetl.language.distribution import Layout
from xetl.language.map_picture import owners
from xetl.xetile import cdiv, constexpr, f32, i32

CELL, GAP, TOP, EDGE = 32, 56, 30, 16
WIDEST = 560  # pixels: on the narrow page of a phone the numbers can still be read
COLOURS = ("#ffd166", "#8ecae6", "#b7e4c7", "#f4acb7", "#cdb4db", "#f3d9b1")
PLAIN = "#f4f4f4"


@dataclass
class Panel:
    """An array in a picture.

    Attributes:
        title: the text above the array.
        values: one or two dimensions; bool is drawn as . and x.
        colours: the number of a colour for each element; negative numbers mean none.
    """

    title: str
    values: Any
    colours: Any = -1


Figure = Callable[[], list[Panel]]
FIGURES: dict[str, tuple[str, Figure]] = {}
"""For the start of each heading of docs/language.md: the caption and the function."""


def figure(heading: str, caption: str) -> Callable[[Figure], Figure]:
    """Declare the picture of a section."""

    def declare(function: Figure) -> Figure:
        FIGURES[heading] = caption, function
        return function

    return declare


def text_of(value: Any) -> str:
    """Return a number as a short text."""
    if isinstance(value, np.bool_):
        return "x" if value else "."
    return f"{float(value):.3g}" if isinstance(value, np.floating) else str(value)


def draw(panels: list[Panel]) -> str:
    """Return panels in lines, as SVG on a white card, readable on dark pages too."""
    parts: list[str] = []
    x, y, right, bottom = EDGE, 0, 0, 0
    for panel in panels:
        values = np.atleast_2d(panel.values)
        colours = np.broadcast_to(np.atleast_2d(panel.colours), values.shape)
        width = max(CELL * values.shape[1], 8 * len(panel.title))
        if x > EDGE and x + width > WIDEST:
            x, y = EDGE, bottom + EDGE
        parts.append(f'<text x="{x}" y="{y + 20}" class="title">{panel.title}</text>')
        for (row, column), value in np.ndenumerate(values):
            number = int(colours[row, column])
            colour = PLAIN if number < 0 else COLOURS[number % len(COLOURS)]
            left, upper = x + CELL * column, y + TOP + CELL * row
            parts.append(
                f'<rect x="{left}" y="{upper}" width="{CELL}" height="{CELL}"'
                f' fill="{colour}" stroke="#888"/><text x="{left + CELL // 2}"'
                f' y="{upper + 21}" text-anchor="middle">{text_of(value)}</text>'
            )
        right = max(right, x + width)
        bottom = max(bottom, y + TOP + CELL * values.shape[0])
        x += width + GAP
    width, height = right + EDGE, bottom + EDGE
    style = "text{font:13px sans-serif;fill:#222}.title{font-weight:bold}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}"><style>{style}</style>'
        f'<rect width="{width}" height="{height}" rx="6" fill="#fff"/>'
        f"{''.join(parts)}</svg>"
    )


def write(folder: Path) -> dict[str, str]:
    """Draw all pictures into a folder. Return the Markdown for each heading."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, str] = {}
    for heading, (caption, function) in FIGURES.items():
        name = f"{function.__name__}.svg"
        (folder / name).write_text(draw(function()), "utf-8")
        found[heading] = f"![{caption}]({folder.name}/{name})\n\n*{caption}*\n"
    return found


def run(kernel: Any, grid: Any, *arrays: Any, **constants: Any) -> None:
    """Run a kernel in NumPy, on the reference backend."""
    kernel[grid](*arrays, **constants, backend="reference")


@xetile.function
def load(X: Any, shape: constexpr) -> Any:  # noqa: N803
    """Load a whole array."""
    return xetile.load_tile(xetile.init_tile(X, [0, 0], shape))


@xetile.function
def store(v: Any, X: Any) -> None:  # noqa: N803
    """Store to the corner of an array."""
    xetile.store_tile(v.to(X.dtype), xetile.init_tile(X, [0, 0], v.shape))


def matrix(rows: int, columns: int) -> Any:
    """Return a matrix whose elements are their positions."""
    return np.add.outer(10 * np.arange(rows), np.arange(columns)).astype(np.int32)


def marked(values: Any, found: Any) -> Any:
    """Return colour 0 for elements that occur in others."""
    return np.where(np.isin(values, found), 0, -1)


@xetile.kernel
def who(Z, BLOCK: constexpr):  # noqa: N803
    """Each program writes its number on its elements."""
    me = xetile.program_id(0)
    tile = xetile.init_tile(Z, [me * BLOCK], (BLOCK,))
    xetile.store_tile(xetile.full((BLOCK,), me, i32), tile)


@figure("1.", "A grid of 3 programs with 4 elements each, on an array of 10 elements.")
def programs() -> list[Panel]:
    """Show which program wrote which element."""
    found = np.full(10, -1, np.int32)
    run(who, cdiv(10, 4), found, BLOCK=4)
    return [Panel("program_id(0) of the program that writes it", found, found)]


@xetile.kernel
def look(X, Y, row, column):  # noqa: N803
    """Load a tile."""
    tile = xetile.init_tile(X, [row, column], (2, 3))
    store(xetile.load_tile(tile, padding=-1), Y)


@figure("2.", "`load_tile` of a 2 x 3 tile; elements outside read as the padding, -1.")
def tiles() -> list[Panel]:
    """A tile inside of an array, and one that hangs over its edge."""
    x, inside, outside = matrix(4, 6), *np.zeros((2, 2, 3), np.int32)
    run(look, 1, x, inside, 1, 2)
    run(look, 1, x, outside, 3, 4)
    colours = np.where(np.isin(x, outside), 1, marked(x, inside))
    second = np.where(outside < 0, -1, 1)
    return [
        Panel("X", x, colours),
        Panel("tile at [1, 2]", inside, 0),
        Panel("tile at [3, 4], padding=-1", outside, second),
    ]


@xetile.kernel
def add(X, Y, Z):  # noqa: N803
    """A column and a row."""
    store(load(X, (3, 1)) + load(Y, (1, 4)), Z)


@figure("3.", "Shapes broadcast: a column of 3 and a row of 4 make 3 x 4.")
def broadcast() -> list[Panel]:
    """A column plus a row."""
    x, y = matrix(3, 1), matrix(1, 4)
    z = np.zeros((3, 4), np.int32)
    run(add, 1, x, y, z)
    return [Panel("x", x), Panel("y", y), Panel("x + y", z, 0)]


@xetile.kernel
def block(A, B, C):  # noqa: N803
    """A block of a product, in two steps of k."""
    acc = xetile.zeros((2, 2), f32)
    for k in range(0, 4, 2):
        a = xetile.load_tile(xetile.init_tile(A, [2, k], (2, 2)))
        b = xetile.load_tile(xetile.init_tile(B, [k, 0], (2, 2)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [2, 0], (2, 2)))


@figure("4.", "One program: a 2 x 2 block of C = A @ B, in two steps along k.")
def products() -> list[Panel]:
    """Show the operands of a block of a product, with a colour for each step of k."""
    a, b = (np.arange(16, dtype=np.float32) % n for n in (5, 3))
    a, b, c = a.reshape(4, 4), b.reshape(4, 4), np.zeros((4, 4), np.float32)
    run(block, 1, a, b, c)
    first, step = np.indices((4, 4)) // 2
    of_a, of_b = np.where(first == 1, step, -1), np.where(step == 0, first, -1)
    of_c = np.where((first == 1) & (step == 0), 2, -1)
    return [Panel("A", a, of_a), Panel("B", b, of_b), Panel("C", c, of_c)]


@xetile.kernel
def reduce(X, S, T, U):  # noqa: N803
    """Sums along both dimensions, and running sums."""
    x = load(X, (3, 4))
    store(x.sum(1, keepdims=True), S)
    store(x.sum(0, keepdims=True), T)
    store(xetile.cumsum(x, 1), U)


@figure("5.", "A reduction makes one element of a row or a column; a scan keeps all.")
def reductions() -> list[Panel]:
    """Sums and running sums."""
    x = (np.arange(12, dtype=np.int32) % 5).reshape(3, 4)
    shapes = ((3, 1), (1, 4), (3, 4))
    rows, columns, running = (np.zeros(shape, np.int32) for shape in shapes)
    run(reduce, 1, x, rows, columns, running)
    by_row = np.arange(3)[:, None]
    return [
        Panel("v", x, by_row),
        Panel("v.sum(1)", rows, by_row),
        Panel("v.sum(0)", columns),
        Panel("cumsum(v, 1)", running, by_row),
    ]


@xetile.kernel
def pick(X, Rows, Y, Z):  # noqa: N803
    """Gather rows; scatter them."""
    rows = xetile.load_tile(xetile.init_tile(Rows, [0], (3,)))
    columns = xetile.arange(3)
    picked = X[rows[:, None], columns[None, :]]
    store(picked, Y)
    Z[rows[:, None], columns[None, :]] = picked


@figure("6.", "`X[rows, columns]` gathers; an assignment to it scatters.")
def indices() -> list[Panel]:
    """Rows by index."""
    x, rows = matrix(4, 3), np.array([2, 0, 3], np.int32)
    y, z = np.zeros((3, 3), np.int32), np.zeros((4, 3), np.int32)
    run(pick, 1, x, rows, y, z)
    used = np.where(np.isin(np.arange(4), rows), np.arange(4), -1)[:, None]
    return [
        Panel("X", x, used),
        Panel("rows", rows[:, None], rows[:, None]),
        Panel("v = X[rows, columns]", y, rows[:, None]),
        Panel("Z[rows, columns] = v", z, used),
    ]


@xetile.kernel
def move(X, T, F, S, G, I):  # noqa: N803, E741
    """Transpose, flip, sort, argsort, interleave."""
    x = load(X, (2, 4))
    store(x.T, T)
    store(xetile.flip(x, 1), F)
    store(xetile.sort(x, 1), S)
    store(xetile.argsort(x, 1), G)
    store(xetile.interleave(x, -x), I)


@figure("7.", "Elements keep their colours where they go.")
def moves() -> list[Panel]:
    """Show the operations that move elements."""
    x = np.array([[3, 1, 4, 2], [7, 8, 5, 6]], np.int32)
    shapes = ((4, 2), *[(2, 4)] * 3, (2, 8))
    made = [np.zeros(shape, np.int32) for shape in shapes]
    run(move, 1, x, *made)
    names = ("v.T", "flip(v, 1)", "sort(v)", "argsort(v)", "interleave(v, -v)")
    colours = [abs(each) - 1 for each in made]
    colours[3] = np.take_along_axis(x, made[3], 1) - 1
    panels = [Panel(*each) for each in zip(names, made, colours)]
    return [Panel("v", x, x - 1), *panels]


@xetile.kernel
def drop(X, Y, seed):  # noqa: N803
    """Dropout."""
    keep = xetile.rand(seed, xetile.arange(12)) >= 0.25
    x = xetile.load_tile(xetile.init_tile(X, [0], (12,)))
    xetile.store_tile(xetile.where(keep, x, 0), xetile.init_tile(Y, [0], (12,)))


@figure("8.", "Dropout: the same seed keeps the same elements, everywhere.")
def random() -> list[Panel]:
    """Show the elements that two seeds keep."""
    x = np.arange(1, 13, dtype=np.int32)
    found = np.zeros((2, 12), np.int32)
    for seed, to in enumerate(found):
        run(drop, 1, x, to, seed)
    keep = "where(rand(seed, arange(12)) &gt;= 0.25, x, 0) for two seeds"
    return [Panel(keep, found, np.where(found > 0, 0, -1))]


@xetile.kernel
def count(X, Bins):  # noqa: N803
    """Count values."""
    v = xetile.load_tile(xetile.init_tile(X, [xetile.program_id(0) * 4], (4,)))
    one = xetile.full((4,), 1, i32)
    xetile.atomic_rmw_tile("add", one, xetile.init_tile(Bins, [v]))


@figure("9.", "Two programs count values: an atomic adds where indices are equal.")
def atomics() -> list[Panel]:
    """Show values and their counts."""
    x, bins = np.array([0, 2, 2, 1, 3, 2, 0, 2], np.int32), np.zeros(4, np.int32)
    run(count, 2, x, bins)
    return [Panel("X", x, x), Panel("Bins", bins, np.arange(4))]


@figure("10.", "`wg_map([2, 2], [2, 2])` on a tile of 4 x 8: blocks go round.")
def subgroups() -> list[Panel]:
    """Show which subgroup owns which element."""
    found = np.zeros((4, 8), np.int32)
    for (row, column), who in owners((4, 8), Layout((2, 2), (2, 2))).items():
        found[row : row + 2, column : column + 2] = who[0]
    return [Panel("the subgroup that owns it", found, found)]

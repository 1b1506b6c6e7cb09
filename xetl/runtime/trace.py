"""The tiles that one program of a kernel accesses, in order: a list, and a picture.

```
with xetl.TileTrace(program=(1, 0)) as trace:
    gemm.interpret(A, B, C)
trace.picture("gemm.png")
```
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextvars import ContextVar, Token
from importlib import import_module
from os import PathLike
from typing import Any, NamedTuple

from xetl.errors import LaunchError
from xetl.runtime.call_site import at_caller, errors_at_caller

_DIMS = 3
_SHOWN = 40


class TileAccess(NamedTuple):
    """An access to a tile.

    Attributes:
        kind: ``load``, ``store``, ``prefetch`` or ``atomic``.
        array: the name of the argument, or ``shared memory``.
        panel: the offset of the matrix in an array of higher rank, in elements.
        matrix: the rows and columns of the matrix.
        row: the row of the tile's first element; it may lie outside of the matrix.
        column: its column, likewise.
        shape: the rows and columns of the tile.
        line: the line in the user's file.
    """

    kind: str
    array: str
    panel: int
    matrix: tuple[int, int]
    row: int
    column: int
    shape: tuple[int, int]
    line: int | None

    def __str__(self) -> str:
        rows, columns = self.shape
        where = f"rows {self.row}-{self.row + rows - 1}, "
        where += f"columns {self.column}-{self.column + columns - 1}"
        return f"line {self.line}: {self.kind} {self.array} {where}"


class TileTrace:
    """The tile accesses of a program, in kernels interpreted inside of ``with``.

    Attributes:
        program: x, y and z of the program.
        accesses: its accesses, in order; scatter tiles are left out.
    """

    def __init__(self, program: int | Sequence[int] = (0, 0, 0)) -> None:
        """Trace the program at a position; missing coordinates are 0.

        Raises:
            LaunchError: ``program`` is no position.
        """
        given = [program] if isinstance(program, int) else list(program)
        if not 1 <= len(given) <= _DIMS or any(type(n) is not int for n in given):
            problem = f"`program=` is {program!r}, but must be up to three ints"
            help_ = "write xetl.TileTrace(program=(0, 0))"
            raise at_caller(LaunchError(problem, "X0817", help_)) from None
        x, y, z = [*given, 0, 0][:_DIMS]
        self.program = (x, y, z)
        self.accesses: list[TileAccess] = []
        self._token: Token[TileTrace | None] | None = None

    def __enter__(self) -> TileTrace:
        self._token = _current.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _current.reset(self._token)

    def __str__(self) -> str:
        x, y, z = self.program
        lines = [f"program ({x}, {y}, {z}): {len(self.accesses)} tiles"]
        lines += map(str, self.accesses[:_SHOWN])
        rest = len(self.accesses) - _SHOWN
        return "\n".join([*lines, *([f"and {rest} more"] if rest > 0 else [])])

    @errors_at_caller
    def picture(self, path: str | PathLike[str]) -> None:
        """Draw each matrix with the tiles on it, coloured from first to last.

        Args:
            path: a file; its suffix is PNG, SVG or another format of matplotlib.

        Raises:
            LaunchError: matplotlib is not installed, or nothing was traced.
        """
        self._figure().savefig(path, bbox_inches="tight")

    def _repr_svg_(self) -> str:
        """Return the picture as SVG, for notebooks."""
        stream = io.StringIO()
        self._figure().savefig(stream, format="svg", bbox_inches="tight")
        return stream.getvalue()

    def _figure(self) -> Any:
        if not self.accesses:
            help_ = (
                "call kernel.interpret(...) inside of `with`, with a grid that "
                f"has program {self.program}"
            )
            raise LaunchError("no tile was traced", code="X0817", help=help_)
        try:
            return draw(self.program, self.accesses)
        except ModuleNotFoundError:
            problem = "pictures need matplotlib, which is not installed"
            help_ = "pip install matplotlib; print(trace) needs nothing"
            raise LaunchError(problem, "X0817", help_) from None


_current: ContextVar[TileTrace | None] = ContextVar("trace", default=None)


def current_trace() -> TileTrace | None:
    """Return the active trace, or None."""
    return _current.get()


_SIDE = 3.6
_MOST_NUMBERS = 24
_EDGES = {"load": "-", "store": "-", "prefetch": ":", "atomic": "--"}


def draw(program: tuple[int, int, int], accesses: Sequence[TileAccess]) -> Any:
    """Return a figure: a panel for each matrix, tiles numbered and coloured by time."""
    figures: Any = import_module("matplotlib.figure")
    colours: Any = import_module("matplotlib").colormaps["viridis"]
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
    patches: Any = import_module("matplotlib.patches")
    rows, columns = matrix
    outline = patches.Rectangle((0, 0), columns, rows, fill=False, ec="black", lw=1.2)
    axis.add_patch(outline)
    margin = 0.04 * max(rows, columns, 1)
    axis.set_xlim(-margin, columns + margin)
    axis.set_ylim(rows + margin, -margin)
    axis.set_aspect("equal" if max(rows, columns) < 8 * min(rows, columns) else "auto")
    axis.tick_params(labelsize=7)


def _tile(axis: Any, access: TileAccess, number: int, colour: Any, count: int) -> None:
    patches: Any = import_module("matplotlib.patches")
    rows, columns = access.shape
    corner = access.column, access.row
    fill = 0.55 if access.kind in ("store", "atomic") else 0.16
    style = {"fc": (*colour[:3], fill), "ec": colour, "ls": _EDGES[access.kind]}
    axis.add_patch(patches.Rectangle(corner, columns, rows, lw=1.4, **style))
    if count <= _MOST_NUMBERS:
        middle = access.column + columns / 2, access.row + rows / 2
        axis.text(*middle, str(number), ha="center", va="center", fontsize=7)

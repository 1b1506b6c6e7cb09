"""Which tile of the result a program makes, and how many programs there are."""

from __future__ import annotations

from typing import NamedTuple

from xetl.language import cdiv

# Elements of tables, not computed: a compiled kernel knows its constants by identity.
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_COLUMNS = (16, 32, 64, 128, 256)
_WIDE = 1024
STREAMED = 4
"""Up to so many rows the cpu reads B where it is, without packing it."""

_ENOUGH = 8
"""Programs that keep a few threads busy to the end."""

_LEAST = 64
"""Smaller tiles than this are not made just to have more programs."""


class Tiles(NamedTuple):
    """The tile of a program, and the grid."""

    rows: int
    columns: int
    depth: int
    grid: tuple[int, int, int]


def choose_tiles(
    m: int, n: int, matrices: int = 1, b_by_columns: bool = False
) -> Tiles:
    """The tile for products (m, k) by (k, n).

    * Up to 4 rows: all of them, by 1024 columns (128 if B is contiguous along k): B is
      read once, in pieces of its rows that are long enough for memory to stream.
    * Few columns: no wider than they are, in powers of two from 16; M is split.
    * Otherwise 256 x 256, less for smaller matrices; then halved, rows first and not
      below 64, until there are 8 programs. On a CPU the tile is not what registers and
      caches see, so this only balances the load; columns are kept longest, for B is
      packed by tiles of columns and packs are shared between kernels whose tiles are
      equally wide (`xetl.ops.prepack`).

    Args:
        m: rows of the result.
        n: its columns.
        matrices: how many results there are.
        b_by_columns: whether B's columns are contiguous, not its rows.
    """
    rows = _smallest(_ROWS, m)
    if rows <= STREAMED:
        widest = (*_COLUMNS[:-1],) if b_by_columns else (*_COLUMNS, 512, _WIDE)
        columns = _smallest(widest, n)
    else:
        columns = _smallest(_COLUMNS, n)
        rows, columns = _balanced(m, n, matrices, rows, columns)
    grid = (cdiv(m, rows), cdiv(n, columns), matrices)
    return Tiles(rows, columns, 32, grid)


def _balanced(
    m: int, n: int, matrices: int, rows: int, columns: int
) -> tuple[int, int]:
    while cdiv(m, rows) * cdiv(n, columns) * matrices < _ENOUGH:
        if rows > _LEAST:
            rows = _ROWS[_ROWS.index(rows) - 1]
        elif columns > _LEAST:
            columns = _COLUMNS[_COLUMNS.index(columns) - 1]
        else:
            break
    return rows, columns


def _smallest(sizes: tuple[int, ...], extent: int) -> int:
    """The first that is large enough, else the last."""
    return next((size for size in sizes if size >= extent), sizes[-1])

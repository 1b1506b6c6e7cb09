"""Which tile of the result a program makes, and how many programs there are."""

from __future__ import annotations

from typing import NamedTuple

from xetl.language.ops import cdiv

# Elements of tables, not computed: a compiled kernel knows its constants by identity.
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_COLUMNS = (16, 32, 64, 128, 256, 512, 1024)
STREAMED = 4
"""Up to so many rows the cpu reads B where it is, without packing it."""

_LOW = 32
"""Up to so many rows it does so where nobody else packs B; then wider pieces of its
rows are better, as long as the tile stays in the first cache or little more."""

_ENOUGH = 8
"""Programs that keep a few threads busy to the end."""

_LEAST = 64
"""Smaller tiles than this are not made just to have more programs."""

_LEAST_LOW = 128
"""Nor narrower ones where B is streamed: shorter pieces of f32 are packed."""


class Tiles(NamedTuple):
    """The tile of a program, and the grid."""

    rows: int
    columns: int
    depth: int
    grid: tuple[int, int, int]


def choose_tiles(
    m: int,
    n: int,
    matrices: int = 1,
    b_by_columns: bool = False,
    b_is_packed: bool = False,
) -> Tiles:
    """The tile for products (m, k) by (k, n).

    * Up to 4 rows: all of them, by 1024 columns (128 if B is contiguous along k): B is
      read once, in pieces of its rows that are long enough for memory to stream.
    * Up to 32 rows: all of them, by 512 columns (128 at least), if B's rows are
      contiguous and it is not packed: then its rows are streamed as well.
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
        b_is_packed: whether it may come prepacked, for tiles of 256 columns.
    """
    rows = _smallest(_ROWS, m)
    if rows <= STREAMED:
        columns = _smallest(_up_to(128 if b_by_columns else 1024), n)
    else:
        is_low = rows <= _LOW and not b_by_columns and not b_is_packed
        columns = _smallest(_up_to(512 if is_low else 256), n)
        least = _LEAST_LOW if is_low else _LEAST
        rows, columns = _balanced(m, n, matrices, rows, columns, least)
    grid = (cdiv(m, rows), cdiv(n, columns), matrices)
    return Tiles(rows, columns, 32, grid)


def _balanced(
    m: int, n: int, matrices: int, rows: int, columns: int, least_columns: int
) -> tuple[int, int]:
    while cdiv(m, rows) * cdiv(n, columns) * matrices < _ENOUGH:
        if rows > _LEAST:
            rows = _ROWS[_ROWS.index(rows) - 1]
        elif columns > least_columns:
            columns = _COLUMNS[_COLUMNS.index(columns) - 1]
        else:
            break
    return rows, columns


def _up_to(widest: int) -> tuple[int, ...]:
    return _COLUMNS[: _COLUMNS.index(widest) + 1]


def _smallest(sizes: tuple[int, ...], extent: int) -> int:
    """The first that is large enough, else the last."""
    return next((size for size in sizes if size >= extent), sizes[-1])

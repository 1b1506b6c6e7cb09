"""Tiles of products on a CPU; `device_tiles.py` chooses those of GPUs."""

from __future__ import annotations

import os
from typing import NamedTuple

from xetl.language.ops import cdiv
from xetl.ops.calling.views import width_of

_ROWS = (1, 2, 4, 64, 128, 256)
"""Rows of tiles, but for 5 to 32 rows: these are an eighth of a power of two apart."""
_COLUMNS = (8, 16, 32, 64, 128, 256, 512, 1024)
STREAMED = 4
"""With up to 4 rows, the cpu backend reads B in place, without packing it."""

LOW = 32
"""With up to 32 rows, it does so too if B is not prepacked. Wider pieces of B's rows
are faster then, as long as the tile stays in L1 or is little larger."""

ENOUGH = 8
"""The number of programs that keep a few threads busy to the end."""

CORES = len(os.sched_getaffinity(0))
"""The processors of this process."""

_LEAST = 64
"""The least tile that is chosen in order to have more programs."""

_SHORTEST, _LARGE = 16, 1 << 20
"""The steps of k by 512 columns that stay in L1, and elements of a result beyond L2.

[measured] Sapphire Rapids, f32, 4000 x 5 x 4000: 7.9 ms by 256 columns, 5.2 by 512.
"""

_EVEN_COLUMNS = (128, 160, 192, 256, 288, 384, 512)
"""Tiles whose halves are as fast on a CPU: panels of 48, 64 or 80 columns."""

_IN_PLACE, _WIDE, _WIDE_LOW = 256, 384, 480
"""Rows up to which the cpu backend reads a B of f32 or f64 in place, and the most
columns of tiles there, of few rows as well: whole panels of 48, or of 48 and 64.

[measured] Emerald Rapids, f32, 128 x 512 x 5000: 108 GFLOP/s by 256 columns, 131 by
384.
"""

_LEAST_LOW = 128
"""The least columns of a tile if B is streamed: shorter pieces of f32 are packed."""


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
    cores: int = CORES,
    k: int | None = None,
    b_may_stay: bool = False,
) -> Tiles:
    """Return the tile for products (m, k) by (k, n).

    * Up to 4 rows: all rows by 1024 columns (128 if B is contiguous along k). B is read
      once, in pieces of its rows that are long enough for memory to stream. They are
      halved until each core has a program, but not below 128.
    * Up to 32 rows: all rows by 512 columns (at least 128), if B's rows are contiguous
      and B is not prepacked. Then its rows are streamed as well.
    * Otherwise 256 x 256, less for smaller matrices: whole vectors of 16 columns, or 8.
      The tile is halved until there are 8 programs, and one for each core: rows first,
      not below 64 (`_even_rows`). On a CPU this only balances the load, because the
      backend blocks the tile again for registers and caches. Columns are kept longest:
      B is packed by tiles of columns, and kernels with tiles of the same width share
      the packed copy (`xetl.ops.prepack`).
    * If B may stay in place, all of up to 256 rows by panels of 48 columns.
    * With up to 16 steps of k and a large result, 512 columns: writing long pieces of
      rows matters most.

    Args:
        m: rows of the result.
        n: columns of the result.
        matrices: the number of results.
        b_by_columns: whether B's columns are contiguous, not its rows.
        b_is_packed: whether B may be prepacked, for tiles of 256 columns.
        cores: of the processor.
        k: steps of k, if known.
        b_may_stay: whether B is of f32 or f64: other types are packed.
    """
    rows = width_of(m, 1) if STREAMED < m <= LOW else smallest(_ROWS, m)
    may_stay = b_may_stay and not (b_by_columns or b_is_packed)
    if rows <= STREAMED:
        columns = min(smallest(_COLUMNS, n), 128 if b_by_columns else 1024)
        while cdiv(n, columns) * matrices < cores and columns > _LEAST_LOW:
            columns //= 2
    elif may_stay and (found := _in_place(m, n, matrices, cores)) is not None:
        rows, columns = found
    else:
        is_low = rows <= LOW and not b_by_columns and not b_is_packed
        columns = min(smallest(_COLUMNS, n), 512) if is_low else _width(n)
        if is_low and may_stay and n > _LEAST_LOW:
            columns = _wide(n, 96, cdiv(n, _WIDE_LOW))
        if k is not None and k <= _SHORTEST and m * n >= _LARGE and n > columns:
            columns = 512
        least = _LEAST_LOW if is_low else _LEAST
        rows, columns = _smaller(rows, columns, least, (m, n, matrices), cores)
    grid = (cdiv(m, rows), cdiv(n, columns), matrices)
    return Tiles(rows, columns, 32, grid)


def _smaller(
    rows: int, columns: int, least: int, product: tuple[int, int, int], cores: int
) -> tuple[int, int]:
    """Return rows and columns that are halved until there are enough programs.

    Args:
        rows: of a tile.
        columns: of a tile.
        least: the least columns.
        product: rows, columns and matrices of the result.
        cores: of the processor.
    """
    m, n, matrices = product
    enough = max(ENOUGH, cores)
    while cdiv(m, rows) * cdiv(n, columns) * matrices < enough:
        if rows > _LEAST:
            rows //= 2
        elif columns // 2 >= least and columns in _EVEN_COLUMNS:
            columns //= 2
        else:
            rows = _even_rows(m, cores) if m > LOW else rows
            break
    while cdiv(m, rows) * cdiv(n, columns) * matrices < cores:
        if columns // 2 < least:
            break
        columns = _width(columns // 2)
    return rows, columns


def _width(n: int) -> int:
    """Return the columns of a tile, at most 256: vectors of 16, or half of one."""
    return min(16 * cdiv(n, 16), 256) if n > 8 else 8


def _wide(n: int, step: int, tiles: int) -> int:
    """Return the columns of about so many tiles, in steps."""
    return step * cdiv(n, step * tiles)


def _in_place(m: int, n: int, matrices: int, cores: int) -> tuple[int, int] | None:
    """Return rows and columns of tiles whose B stays in place; None: it is packed.

    Rows are split only for the cores: each tile of rows reads all of B.
    """
    if not LOW < m <= _IN_PLACE or n <= 512:
        return None
    enough = cdiv(max(ENOUGH, cores), matrices)
    tiles = max(cdiv(n, _WIDE), min(enough, n // _LEAST_LOW))
    columns = _wide(n, 48, tiles)
    parts = cdiv(cores, cdiv(n, columns) * matrices)
    # [measured] 65 x 526 x 2000: 152 GFLOP/s by 128 rows, 132 by 80, whose strips of 9
    # rows prefetch nothing.
    return smallest(_ROWS, cdiv(m, parts)), columns


def _even_rows(m: int, cores: int) -> int:
    """Return the rows of tiles if there are few: each core gets as many.

    Up to 96 rows are one tile: two threads gain nothing yet.

    [measured] 144 cubed in f32 on two threads of Sapphire Rapids, tiles of 48, 64 and
    72 rows: 42, 40 and 32 us; 200 cubed, tiles of 56, 72 and 104 rows: 94, 100, 84. 96
    cubed on one and two threads: 14.8, 15.6.
    """
    most = 2 * _LEAST
    tiles = cores * cdiv(m, most * cores) if m > most - LOW else 1
    return max(LOW + 8, 8 * cdiv(m, 8 * tiles))


def smallest(sizes: tuple[int, ...], extent: int) -> int:
    """Return the first size that holds the extent, or else the last one."""
    return next((size for size in sizes if size >= extent), sizes[-1])

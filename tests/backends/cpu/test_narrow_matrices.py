"""Tiles of a few columns: pixels, points, pairs. Vectors go down their rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from launching import agree, same
from native_harness import fenced

from xetl import xetile
from xetl.xetile import constexpr


@xetile.kernel
def reduced(X, Sums, Most, Second, place: int, ROWS: constexpr, COLUMNS: constexpr):
    tile = xetile.init_tile(X, [place, place], (ROWS, COLUMNS))
    v = xetile.load_tile(tile, padding=3)
    xetile.store_tile((v + v).sum(1), xetile.init_tile(Sums, [0], (ROWS,)))
    xetile.store_tile(v.max(1), xetile.init_tile(Most, [0], (ROWS,)))
    xetile.store_tile(v[:, 1] + v[:, 0], xetile.init_tile(Second, [0], (ROWS,)))


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("columns", [2, 3, 4, 7])
def test_rows_are_reduced(dtype: str, columns: int) -> None:
    for x, _, place in _matrices(dtype, columns):
        made = np.zeros((3, 40), dtype)
        agree(reduced, 1, x, *made, place, ROWS=40, COLUMNS=columns)


def _matrices(dtype: str, columns: int) -> Iterator[tuple[np.ndarray, int, int]]:
    """Yield matrices, how much wider their memory is, and where a tile begins."""
    for rows, wider in (1, 0), (15, 1), (40, 0), (41, 0), (70, 2):
        numbers = np.arange(rows * (columns + wider)) * 7 % 11
        for place in (0, -1, 3):
            yield numbers.reshape(rows, -1).astype(dtype)[:, :columns], wider, place


@xetile.kernel
def halved(X, Y, place: int, ROWS: constexpr, COLUMNS: constexpr):
    tile = xetile.init_tile(X, [place, place], (ROWS, COLUMNS))
    v = xetile.load_tile(tile, padding=3)
    low = xetile.floor(v / 2 - v.max(1, keepdims=True))
    found = low - low.min(1, keepdims=True)
    xetile.store_tile(found, xetile.init_tile(Y, [place, place], (ROWS, COLUMNS)))


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("columns", [2, 3, 4, 7])
def test_functions_of_rows(dtype: str, columns: int) -> None:
    """What lies between the rows of the result stays as it is."""
    for x, wider, place in _matrices(dtype, columns):
        y = np.ones((len(x), columns + wider), dtype)
        how = {"ROWS": 40, "COLUMNS": columns}
        wanted = agree(halved, 1, x, y[:, :columns], place, **how)[1]
        halved[1](x, y[:, :columns], place, **how)
        same(y[:, :columns], wanted)
        assert (y[:, columns:] == 1).all()


@pytest.mark.usefixtures("target")
@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize("columns", [2, 3, 5, 7])
def test_nothing_outside_is_touched(columns: int, at_end: bool) -> None:
    """There are no pages beside the array."""
    numbers = np.arange(64 * columns, dtype=np.float32).reshape(64, columns)
    x, y = (fenced(each, at_end=at_end) for each in (numbers, numbers))
    halved[1](x, y, 0, ROWS=64, COLUMNS=columns)
    low = np.floor(x / 2 - x.max(1, keepdims=True))
    same(y, low - low.min(1, keepdims=True))
    sums, *others = np.zeros((3, 64), np.float32)
    reduced[1](x, sums, *others, 0, ROWS=64, COLUMNS=columns)
    same(sums, 2 * x.sum(1))


@pytest.mark.parametrize("columns", [3, 7])
def test_neighbours_are_loaded_and_shuffled(columns: int) -> None:
    x, made = np.zeros((64, columns), np.float32), np.zeros((3, 64), np.float32)
    constants: Any = {"ROWS": 64, "COLUMNS": columns, "target": "avx512"}
    shown = reduced.ir("loops", x, *made, 0, **constants)
    before = shown.partition("vector.gather")[0].rpartition("scf.if")[2]
    assert before.count("vector.load ") == columns, before
    assert before.count("vector.shuffle") == columns - 1, before

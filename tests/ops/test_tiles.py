"""Which tiles products of some shapes are cut into."""

from __future__ import annotations

import pytest

from xetl.ops.plans import choose_device_tiles, choose_tiles


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_few_rows_are_one_wide_tile(rows: int) -> None:
    tiles = choose_tiles(rows, 4096)
    assert rows <= tiles.rows <= 4
    assert tiles.columns >= 512
    assert tiles.grid == (1, 4096 // tiles.columns, 1)


@pytest.mark.parametrize("rows", [5, 16, 32])
def test_low_tiles_are_wide_unless_b_is_packed_for_others(rows: int) -> None:
    assert choose_tiles(rows, 4096).columns == 512
    assert choose_tiles(rows, 1024).grid == (1, 8, 1)
    assert choose_tiles(rows, 512).columns == 128
    tall = choose_tiles(4096, 4096).columns
    assert choose_tiles(rows, 4096, b_is_packed=True).columns == tall
    assert choose_tiles(rows, 4096, b_by_columns=True).columns == tall


@pytest.mark.parametrize("rows", [1, 8, 16, 1024, 4096])
def test_a_gpu_has_two_programs_for_each_core(rows: int) -> None:
    tiles = choose_device_tiles(rows, 4096)
    x, y, z = tiles.grid
    assert x * y * z >= 128
    assert tiles.rows >= min(rows, 64)
    assert tiles.columns >= 32
    assert choose_device_tiles(4096, 4096)[:2] == (256, 256)


def test_few_columns_are_no_wider_than_they_are() -> None:
    tiles = choose_tiles(4096, 16)
    assert tiles.columns == 16
    assert tiles.grid[0] >= 8


@pytest.mark.parametrize(("m", "n"), [(128, 4096), (512, 512), (1024, 1024)])
def test_there_are_programs_for_several_threads(m: int, n: int) -> None:
    x, y, z = choose_tiles(m, n).grid
    assert x * y * z >= 8


def test_large_products_have_large_tiles() -> None:
    assert choose_tiles(2048, 2048)[:2] == (256, 256)
    assert choose_tiles(300, 300, matrices=64)[:2] == (256, 256)


@pytest.mark.parametrize("m", [1, 5, 17, 100, 1000])
@pytest.mark.parametrize("n", [1, 5, 17, 100, 1000])
@pytest.mark.parametrize("by_columns", [False, True])
def test_the_grid_covers_the_result(m: int, n: int, by_columns: bool) -> None:
    tiles = choose_tiles(m, n, 3, by_columns)
    x, y, z = tiles.grid
    assert (x - 1) * tiles.rows < m <= x * tiles.rows
    assert (y - 1) * tiles.columns < n <= y * tiles.columns
    assert z == 3

"""Which tiles products of some shapes are cut into."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest

from xetl.backend import find_backend
from xetl.language.dtypes import DType, bf16, f16, f32, i8
from xetl.ops import matmul
from xetl.ops.products.device_tiles import (
    DeviceTiles,
    Gpu,
    Product,
    choose_device_tiles,
    find_gpu,
    seconds,
)
from xetl.ops.products.host_tiles import choose_tiles
from xetl.ops.products.plans import make_plan
from xetl.runtime.executables import choose_target


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_few_rows_are_one_wide_tile(rows: int) -> None:
    tiles = choose_tiles(rows, 4096, cores=2)
    assert rows <= tiles.rows <= 4
    assert tiles.columns >= 512
    assert tiles.grid == (1, 4096 // tiles.columns, 1)


@pytest.mark.parametrize("rows", [1, 4, 16, 32, 512])
@pytest.mark.parametrize("columns", [4096, 11008])
def test_each_of_many_cores_has_a_program(rows: int, columns: int) -> None:
    tiles = choose_tiles(rows, columns, cores=32)
    assert prod(tiles.grid) >= 32
    assert tiles.columns >= 64


@pytest.mark.parametrize("rows", [5, 16, 32])
def test_low_tiles_are_wide_unless_b_is_packed_for_others(rows: int) -> None:
    assert choose_tiles(rows, 4096, cores=2).columns == 512
    assert choose_tiles(rows, 1024, cores=2).grid == (1, 8, 1)
    assert choose_tiles(rows, 512, cores=2).columns == 128
    tall = choose_tiles(4096, 4096, cores=2).columns
    assert choose_tiles(rows, 4096, b_is_packed=True, cores=2).columns == tall
    assert choose_tiles(rows, 4096, b_by_columns=True, cores=2).columns == tall


PVC, STACK, BMG = find_gpu("pvc", 128), find_gpu("pvc", 64), find_gpu("bmg", 20)
GPUS = {"pvc": PVC, "stack": STACK, "bmg": BMG, "generic": find_gpu("opencl", 32)}


def cut(
    m: int, n: int, k: int, gpu: Gpu, dtype: DType = bf16
) -> tuple[DeviceTiles, int]:
    """How a product is cut, and how many programs make it."""
    product = Product(m, n, k, 1, dtype)
    tiles = choose_device_tiles(product, gpu)
    return tiles, product.programs(tiles)


@pytest.mark.parametrize("rows", [1, 8, 16, 1024, 4096])
def test_a_gpu_has_two_programs_for_each_core(rows: int) -> None:
    for gpu in (STACK, BMG):
        tiles, programs = cut(rows, 4096, 4096, gpu)
        assert programs >= 2 * gpu.cores
        assert tiles.rows >= min(rows, 64)
        assert tiles.columns >= 32
        assert tiles.part >= 4096
    assert cut(4096, 4096, 4096, PVC)[0][:2] == (256, 256)


@pytest.mark.parametrize("name", GPUS)
@pytest.mark.parametrize("m", [1, 16, 100, 256])
def test_few_tiles_and_a_long_k_are_cut_along_it(m: int, name: str) -> None:
    gpu = GPUS[name]
    tiles, programs = cut(m, 256, 65536, gpu)
    assert tiles.part < 65536
    assert programs > gpu.cores / 2
    whole = Product(m, 256, 65536, 1, bf16)
    alone = choose_device_tiles(whole, gpu, may_split=False)
    assert whole.parts(alone) == 1
    assert seconds(whole, tiles, gpu) < 0.7 * seconds(whole, alone, gpu)


@pytest.mark.parametrize(
    ("m", "n", "k", "parts"), [(256, 256, 16384, 16), (512, 512, 8192, 8)]
)
def test_parts_of_k_on_all_cores(m: int, n: int, k: int, parts: int) -> None:
    tiles, programs = cut(m, n, k, PVC)
    assert -(-k // tiles.part) == parts
    assert programs == 2 * PVC.cores


@pytest.mark.parametrize("name", ["pvc", "stack", "bmg"])
def test_rows_are_not_padded_to_a_power_of_two(name: str) -> None:
    """77 rows are a tile of 96, 257 are three: by the model up to 1.3 times as fast."""
    gpu, gains = GPUS[name], list[float]()
    for m, dtype in product((77, 96, 180, 257), (bf16, f32)):
        whole = Product(m, 4096, 4096, 1, dtype)
        taken = choose_device_tiles(whole, gpu)
        if dtype == f32:  # what memory limits may be padded
            assert -(-m // taken.rows) * taken.rows < 1.3 * m
        before = [time_with_rows(whole, rows, gpu) for rows in (64, 128, 256)]
        gains.append(min(before) / seconds(whole, taken, gpu))
    assert min(gains) > 0.95  # of equals a tile of more rows is taken
    assert max(gains) > 1.25


def time_with_rows(whole: Product, rows: int, gpu: Gpu) -> float:
    """The least time with tiles of so many rows."""
    parts = [whole.k // n for n in (1, 2, 4, 8, 16)]
    tiles = product((rows,), (32, 64, 128, 256), parts)
    return min(seconds(whole, DeviceTiles(*each), gpu) for each in tiles)


@pytest.mark.parametrize("dtype", [f16, i8])
def test_where_the_cores_are_busy_k_is_left_whole(dtype: DType) -> None:
    for m, n, k in ((4096, 4096, 4096), (512, 512, 512), (16, 8192, 4096)):
        for gpu in GPUS.values():
            assert cut(m, n, k, gpu, dtype)[0].part == k


SIDES = (64, 384, 640, 1280, 1792, 2560, 3072, 5120, 8192)
MAX_1100 = Gpu(PVC.device, PVC.device.cards[1], 56)


@pytest.mark.parametrize("gpu", [PVC, STACK, MAX_1100, BMG])
def test_a_last_round_of_its_own_gains_little(gpu: Gpu) -> None:
    """Stream-K: whole rounds of tiles, and the rest cut anew, in one launch.

    What is left over is a strip of the result, cut by the same model; that there is no
    second launch is taken for free.
    """
    gains: list[float] = []
    for m, n, k in product(SIDES, SIDES, (1024, 4096, 16384)):
        whole = Product(m, n, k, 1, bf16)
        alone = seconds(whole, choose_device_tiles(whole, gpu), gpu)
        gains += [alone / each for each in _in_two(whole, gpu)]
    assert len(gains) > 100
    assert max(gains) < 1.08


def _in_two(whole: Product, gpu: Gpu) -> Iterator[float]:
    """The times of whole rounds and the rest."""
    for rows, columns in ((64, 64), (64, 128), (128, 128), (256, 256)):
        tiles = DeviceTiles(rows, columns, whole.k)
        programs, beside = whole.programs(tiles), -(-whole.n // columns)
        kept = programs // gpu.cores * gpu.cores // beside * rows
        if not 0 < kept < whole.m:
            continue
        rest = replace(whole, m=whole.m - kept)
        cut = choose_device_tiles(rest, gpu)
        yield seconds(replace(whole, m=kept), tiles, gpu) + seconds(rest, cut, gpu)


def test_few_columns_are_no_wider_than_they_are() -> None:
    tiles = choose_tiles(4096, 16, cores=2)
    assert tiles.columns == 16
    assert tiles.grid[0] >= 8


@pytest.mark.parametrize("n", [9, 40, 72, 80, 96, 144, 200, 240])
@pytest.mark.parametrize("cores", [1, 2])
def test_small_tiles_compute_no_vector_of_padding(n: int, cores: int) -> None:
    tiles = choose_tiles(100, n, cores=cores)
    assert tiles.columns * tiles.grid[1] - n < 16


@pytest.mark.parametrize("m", [136, 144, 200, 240])
@pytest.mark.parametrize("cores", [2, 4])
def test_each_core_has_as_many_rows_of_a_small_product(m: int, cores: int) -> None:
    tiles = choose_tiles(m, m, cores=cores)
    assert prod(tiles.grid) == cores
    assert m - (cores - 1) * tiles.rows > tiles.rows // 3


@pytest.mark.parametrize("m", [5, 7, 9, 13, 20, 31])
@pytest.mark.parametrize("by_columns", [False, True])
def test_few_rows_have_few_rows_of_padding(m: int, by_columns: bool) -> None:
    tiles = choose_tiles(m, 300, b_by_columns=by_columns, cores=2)
    assert m <= tiles.rows < m + max(1, m / 4)


def test_short_steps_have_long_pieces_of_rows() -> None:
    assert choose_tiles(4000, 4000, cores=2, k=5).columns == 512
    assert choose_tiles(4000, 200, cores=2, k=5).columns == 208


def test_of_few_columns_a_large_matrix_is_not_packed() -> None:
    """They become rows only if they are rows in memory: then it is read in place."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype("f4") for shape in ((90, 70), (70, 3)))
    for each, swaps in ((b, False), (np.asfortranarray(b), True)):
        plan = make_plan(a, each, None, None, None, False, is_packed=False)
        assert plan.method.swaps == swaps
        assert np.array_equal(matmul(a, each), a.astype(np.float64) @ each)


def test_few_columns_of_a_table_that_is_turned_become_rows() -> None:
    """``X.T @ Y``: X is read as it lies, and not turned first."""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, (500, n)).astype("f4") for n in (200, 20))
    assert make_plan(x.T, y, None, None, None, False, is_packed=False).method.swaps
    assert np.array_equal(matmul(x.T, y), x.T.astype(np.float64) @ y)


@pytest.mark.parametrize("dtype", ["f4", "f8", bf16.numpy])
@pytest.mark.parametrize(
    ("m", "k", "n", "swaps"),
    [
        (16, 128, 320, True),
        (64, 128, 320, True),
        (4, 128, 320, False),  # streamed
        (64, 32, 320, False),  # storing columns takes longer than packing
        (320, 512, 512, False),  # all of a does not stay in a cache
        (64, 128, 48, False),  # a is larger
    ],
)
def test_a_large_weight_is_read_in_place(
    dtype: object, m: int, k: int, n: int, swaps: bool
) -> None:
    """Of layers: `linear` packs its few rows, not the weight."""
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((m, k), (n, k)))
    cpu = find_backend("cpu")
    multiplied = cpu.products(choose_target(cpu), "bf16")[0]
    is_there = dtype != bf16.numpy or multiplied == "bf16"
    plan = make_plan(x, w.T, None, None, None, False, is_packed=False)
    assert plan.method.swaps == (swaps and is_there)
    assert not make_plan(x, w.T, None, None, None, False, is_packed=True).method.swaps
    bias = rng.integers(-3, 4, n).astype("f4")
    expected = x.astype(np.float64) @ w.T.astype(np.float64) + bias
    found = matmul(x, w.T, bias=bias, activation="relu")
    assert np.array_equal(found, np.maximum(expected, 0).astype(dtype))


def test_of_two_transposes_the_product_is_transposed() -> None:
    rng = np.random.default_rng(0)
    a, b = (
        rng.integers(-3, 4, shape).astype("f4") for shape in ((128, 320), (64, 128))
    )
    assert make_plan(a.T, b.T, None, None, None, False, is_packed=False).method.swaps
    assert np.array_equal(matmul(a.T, b.T), a.T.astype(np.float64) @ b.T)


@pytest.mark.parametrize("m", [40, 64, 80, 96])
def test_a_product_too_small_for_threads_is_one_tile(m: int) -> None:
    assert choose_tiles(m, m, cores=4).grid == (1, 1, 1)


@pytest.mark.parametrize(("m", "n"), [(128, 4096), (512, 512), (1024, 1024)])
def test_there_are_programs_for_several_threads(m: int, n: int) -> None:
    x, y, z = choose_tiles(m, n, cores=2).grid
    assert x * y * z >= 8


def test_large_products_have_large_tiles() -> None:
    assert choose_tiles(2048, 2048, cores=2)[:2] == (256, 256)
    assert choose_tiles(300, 300, matrices=64, cores=2)[:2] == (256, 256)


@pytest.mark.parametrize("m", [1, 5, 17, 100, 1000])
@pytest.mark.parametrize("n", [1, 5, 17, 100, 1000])
@pytest.mark.parametrize("by_columns", [False, True])
def test_the_grid_covers_the_result(m: int, n: int, by_columns: bool) -> None:
    tiles = choose_tiles(m, n, 3, by_columns, cores=2)
    x, y, z = tiles.grid
    assert (x - 1) * tiles.rows < m <= x * tiles.rows
    assert (y - 1) * tiles.columns < n <= y * tiles.columns
    assert z == 3


@pytest.mark.parametrize("n", [129, 377, 512, 1000, 4096, 5000])
@pytest.mark.parametrize("rows", [5, 28, 33, 256])
def test_a_b_that_may_stay_in_place_has_whole_panels(n: int, rows: int) -> None:
    """Of 48 and of 64 columns: the last panel of a tile is computed in full."""
    tiles = choose_tiles(rows, n, cores=1, b_may_stay=True)
    if n > 512 or rows <= 32:
        assert tiles.columns % 48 == 0
        assert tiles.columns <= 480
    if n > 512:
        assert tiles.grid[0] == 1, "B is read once"
        many = choose_tiles(rows, n, cores=32, b_may_stay=True)
        assert rows < 256 or np.prod(many.grid) >= 20
    assert (tiles.grid[1] - 1) * tiles.columns < n <= tiles.grid[1] * tiles.columns
    packed = choose_tiles(rows, n, cores=1, b_is_packed=True)
    assert choose_tiles(rows, n, cores=1, b_is_packed=True, b_may_stay=True) == packed

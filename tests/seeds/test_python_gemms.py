"""The GEMMs of the RFC's appendix 2 as kernels of the language, maps and all.

A program is a workgroup: the document's loops over blocks of C are the grid.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.seeds.examples import HERE, f16, numbers, unset, wide
from xetl import xetile
from xetl.dialects.text import functions_of, read_module
from xetl.dialects.xetile.used_maps import used_maps
from xetl.xetile import cdiv, constexpr, f32, wg_map
from xetl.xetile import f16 as half

BACKENDS = ("reference", "cpu")

A_MAP = wg_map(sg_layout=[8, 4], sg_data=[32, 32])
B_MAP = wg_map(sg_layout=[8, 4], sg_data=[32, 64])
C_MAP = wg_map(sg_layout=[8, 4], sg_data=[32, 64])
ROWS_AHEAD = wg_map(sg_layout=[32, 1], sg_data=[8, 32])
COLUMNS_AHEAD = wg_map(sg_layout=[4, 8], sg_data=[8, 32])
ACROSS = wg_map(sg_layout=[4, 8], sg_data=[64, 32])
IN_REGISTERS = wg_map(sg_layout=[32, 1], sg_data=[64, 32])
BIAS_MAP = wg_map(sg_layout=[8, 4], sg_data=[1, 64])
WHOLE_ROWS = wg_map(sg_layout=[32, 1], sg_data=[8, 256])
SUMS_MAP = wg_map(sg_layout=[32, 1], sg_data=[8, 1])


def blocks(rows: int, columns: int) -> Any:
    """The grid of blocks of C."""
    return lambda m: (cdiv(m.C.shape[0], rows), cdiv(m.C.shape[1], columns))


# 2.1 --------------------------------------------------------------------------------


@xetile.kernel(grid=blocks(256, 256))
def prefetching(A, B, C):
    i, j = xetile.program_id(0) * 256, xetile.program_id(1) * 256
    a = xetile.init_tile(A, [i, 0], (256, 32), wg_map=A_MAP)
    b = xetile.init_tile(B, [0, j], (32, 256), wg_map=B_MAP)
    a_ahead = xetile.init_tile(A, [i, 96], (256, 32), wg_map=ROWS_AHEAD)
    b_ahead = xetile.init_tile(B, [96, j], (32, 256), wg_map=COLUMNS_AHEAD)
    acc = xetile.zeros((256, 256), f32)
    for _ in range(0, A.shape[1], 32):
        va, vb = xetile.load_tile(a), xetile.load_tile(b)
        xetile.prefetch_tile(a_ahead)
        xetile.prefetch_tile(b_ahead)
        acc = xetile.tile_mma(va, vb, acc, wg_map=C_MAP)
        a = xetile.update_tile_offset(a, [0, 32])
        b = xetile.update_tile_offset(b, [32, 0])
        a_ahead = xetile.update_tile_offset(a_ahead, [0, 32])
        b_ahead = xetile.update_tile_offset(b_ahead, [32, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [i, j], (256, 256), wg_map=C_MAP))


# 2.2 and 2.3 ------------------------------------------------------------------------


@xetile.kernel(grid=lambda m: cdiv(m.A.shape[0], 256))
def row_sums(A, BT, BIAS, SUMS, BT_MAP: constexpr = ACROSS):
    i = xetile.program_id(0) * 256
    sums = xetile.zeros((256, 1), f32)
    for j in range(0, BT.shape[0], 256):
        a = xetile.init_tile(A, [i, 0], (256, 32), wg_map=A_MAP)
        bt = xetile.init_tile(BT, [j, 0], (256, 32), wg_map=BT_MAP)
        a_ahead = xetile.init_tile(A, [i, 192], (256, 32), wg_map=ROWS_AHEAD)
        bt_ahead = xetile.init_tile(BT, [j, 192], (256, 32), wg_map=ROWS_AHEAD)
        acc = xetile.zeros((256, 256), f32)
        for _ in range(0, A.shape[1], 32):
            vbt = xetile.load_tile(bt)
            vb = xetile.tile_transpose(vbt, [1, 0], wg_map=B_MAP)
            xetile.prefetch_tile(a_ahead)
            xetile.prefetch_tile(bt_ahead)
            acc = xetile.tile_mma(xetile.load_tile(a), vb, acc, wg_map=C_MAP)
            a = xetile.update_tile_offset(a, [0, 32])
            bt = xetile.update_tile_offset(bt, [0, 32])
            a_ahead = xetile.update_tile_offset(a_ahead, [0, 32])
            bt_ahead = xetile.update_tile_offset(bt_ahead, [0, 32])
        bias = xetile.load_tile(
            xetile.init_tile(BIAS, [0, j], (1, 256), wg_map=BIAS_MAP)
        )
        c = acc + xetile.tile_broadcast(bias, [0], (256, 256), wg_map=C_MAP)
        by_rows = xetile.tile_conv_layout(c, WHOLE_ROWS, C_MAP)
        sums = sums + xetile.tile_reduce("add", by_rows, [1], wg_map=SUMS_MAP)
    xetile.store_tile(sums, xetile.init_tile(SUMS, [i, 0], (256, 1), wg_map=SUMS_MAP))


# 2.4 --------------------------------------------------------------------------------

BLOCK = wg_map(sg_layout=[8, 8], sg_data=[32, 32])
A_SHARE = wg_map(sg_layout=[64, 1], sg_data=[4, 32])
B_SHARE = wg_map(sg_layout=[8, 8], sg_data=[4, 32])


@xetile.kernel(grid=blocks(256, 256))
def cooperative(A, B, C):
    i, j = xetile.program_id(0) * 256, xetile.program_id(1) * 256
    a_shared = xetile.slm((256, 4 * 32), half)
    b_shared = xetile.slm((4 * 32, 256), half)
    a = xetile.init_tile(A, [i, 0], (256, 32), wg_map=A_SHARE)
    b = xetile.init_tile(B, [0, j], (32, 256), wg_map=B_SHARE)
    for stage in xetile.static_range(0, 96, 32):
        a_stage = xetile.init_tile(a_shared, [0, stage], (256, 32), wg_map=A_SHARE)
        b_stage = xetile.init_tile(b_shared, [stage, 0], (32, 256), wg_map=B_SHARE)
        xetile.store_tile(xetile.load_tile(a), a_stage)
        xetile.store_tile(xetile.load_tile(b), b_stage)
        a = xetile.update_tile_offset(a, [0, 32])
        b = xetile.update_tile_offset(b, [32, 0])
    xetile.barrier()
    a_read = xetile.init_tile(a_shared, [0, 0], (256, 32), wg_map=BLOCK)
    b_read = xetile.init_tile(b_shared, [0, 0], (32, 256), wg_map=BLOCK)
    a_write = xetile.init_tile(a_shared, [0, 0], (256, 32), wg_map=A_SHARE)
    b_write = xetile.init_tile(b_shared, [0, 0], (32, 256), wg_map=B_SHARE)
    acc = xetile.zeros((256, 256), f32)
    for k in range(0, A.shape[1], 32):
        here, free = k % 128, (k + 96) % 128
        a_next, b_next = xetile.load_tile(a), xetile.load_tile(b)
        va = xetile.load_tile(xetile.update_tile_offset(a_read, [0, here]))
        vb = xetile.load_tile(xetile.update_tile_offset(b_read, [here, 0]))
        acc = xetile.tile_mma(va, vb, acc, wg_map=BLOCK)
        xetile.barrier()
        xetile.store_tile(a_next, xetile.update_tile_offset(a_write, [0, free]))
        xetile.store_tile(b_next, xetile.update_tile_offset(b_write, [free, 0]))
        a = xetile.update_tile_offset(a, [0, 32])
        b = xetile.update_tile_offset(b, [32, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [i, j], (256, 256), wg_map=BLOCK))


# 2.5 --------------------------------------------------------------------------------

TALL_A = wg_map(sg_layout=[8, 4], sg_data=[64, 32])
TALL_C = wg_map(sg_layout=[8, 4], sg_data=[64, 64])
A_L2 = wg_map(sg_layout=[32, 1], sg_data=[16, 128])
B_L2 = wg_map(sg_layout=[16, 2], sg_data=[8, 128])
A_L1 = wg_map(sg_layout=[32, 1], sg_data=[16, 32])
B_L1 = wg_map(sg_layout=[4, 8], sg_data=[8, 32])


@xetile.kernel(grid=blocks(512, 256))
def two_caches(A, B, C):
    i, j = xetile.program_id(0) * 512, xetile.program_id(1) * 256
    a_l2 = xetile.init_tile(A, [i, 0], (512, 128), wg_map=A_L2)
    b_l2 = xetile.init_tile(B, [0, j], (128, 256), wg_map=B_L2)
    for _ in xetile.static_range(2):
        xetile.prefetch_tile(a_l2, locality=2)
        xetile.prefetch_tile(b_l2, locality=2)
        a_l2 = xetile.update_tile_offset(a_l2, [0, 128])
        b_l2 = xetile.update_tile_offset(b_l2, [128, 0])
    a_l1 = xetile.init_tile(A, [i, 0], (512, 32), wg_map=A_L1)
    b_l1 = xetile.init_tile(B, [0, j], (32, 256), wg_map=B_L1)
    for _ in xetile.static_range(4):
        xetile.prefetch_tile(a_l1, locality=3)
        xetile.prefetch_tile(b_l1, locality=3)
        a_l1 = xetile.update_tile_offset(a_l1, [0, 32])
        b_l1 = xetile.update_tile_offset(b_l1, [32, 0])
    a = xetile.init_tile(A, [i, 0], (512, 32), wg_map=TALL_A)
    b = xetile.init_tile(B, [0, j], (32, 256), wg_map=B_MAP)
    acc = xetile.zeros((512, 256), f32)
    for k in range(0, A.shape[1], 32):
        if k % 128 == 0:
            xetile.barrier()
            xetile.prefetch_tile(a_l2, locality=2)
            xetile.prefetch_tile(b_l2, locality=2)
            a_l2 = xetile.update_tile_offset(a_l2, [0, 128])
            b_l2 = xetile.update_tile_offset(b_l2, [128, 0])
        xetile.prefetch_tile(a_l1, locality=3)
        xetile.prefetch_tile(b_l1, locality=3)
        a_l1 = xetile.update_tile_offset(a_l1, [0, 32])
        b_l1 = xetile.update_tile_offset(b_l1, [32, 0])
        va, vb = xetile.load_tile(a), xetile.load_tile(b)
        acc = xetile.tile_mma(va, vb, acc, wg_map=TALL_C)
        a = xetile.update_tile_offset(a, [0, 32])
        b = xetile.update_tile_offset(b, [32, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [i, j], (512, 256), wg_map=TALL_C))


# Tests ------------------------------------------------------------------------------


def name(kernel: Any) -> str:
    return kernel.__name__


SIZES = [(512, 512, 256), (300, 520, 100)]
"""M, N and K: whole tiles, and tiles that reach over every edge."""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("kernel", [prefetching, cooperative, two_caches], ids=name)
def test_product(kernel: Any, sizes: tuple[int, int, int], backend: str) -> None:
    m, n, k = sizes
    a, b, c = f16(m, k), f16(k, n, seed=1), unset(numbers(1), m, n)
    kernel(a, b, c, backend=backend)
    assert np.array_equal(c.astype(np.float64), wide(a) @ wide(b))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("mapped", [ACROSS, IN_REGISTERS], ids=["2.2", "2.3"])
def test_row_sums(mapped: Any, sizes: tuple[int, int, int], backend: str) -> None:
    m, n, k = sizes
    a, bt, bias = f16(m, k), f16(n, k, seed=1), numbers(1, n)
    sums = unset(numbers(1), m, 1)
    row_sums(a, bt, bias, sums, BT_MAP=mapped, backend=backend)
    expected = (wide(a) @ wide(bt).T + wide(bias)).sum(1, keepdims=True)
    assert np.array_equal(sums.astype(np.float64), expected)


@pytest.mark.parametrize("kernel", [prefetching, cooperative, two_caches], ids=name)
def test_interpret_finds_nothing_wrong(kernel: Any) -> None:
    m, n, k = 300, 260, 100
    a, b, c = f16(m, k), f16(k, n, seed=1), unset(numbers(1), m, n)
    kernel.interpret(a, b, c, check="oob,uninit,race")
    assert np.array_equal(c.astype(np.float64), wide(a) @ wide(b))


def maps_in(text: str) -> set[Any]:
    return {map_ for f in functions_of(read_module(text)) for map_ in used_maps(f)}


@pytest.mark.parametrize(
    ("kernel", "section"),
    [(prefetching, 1), (row_sums, 2), (cooperative, 4), (two_caches, 5)],
    ids=["2.1", "2.2", "2.4", "2.5"],
)
def test_maps_are_those_of_the_document(kernel: Any, section: int) -> None:
    arrays = [f16(512, 512), f16(512, 512), numbers(512, 512)]
    if kernel is row_sums:
        arrays = [*arrays[:2], numbers(1, 512), numbers(512, 1)]
    document = (HERE / f"appendix_2_{section}.mlir").read_text("utf-8")
    assert maps_in(kernel.ir("xetile", *arrays)) == maps_in(document)

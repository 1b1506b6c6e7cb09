"""A of a product of bytes comes in one message of two blocks: 32 x 64 a subgroup."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.xegpu.launch.launched import aligned
from xetl import xetile
from xetl.xetile import Array, i32

MAP = xetile.wg_map(sg_layout=[2, 1], sg_data=[32, 64])


@xetile.kernel
def product(A: Array, B: Array, C: Array) -> None:
    m, n = xetile.program_id(0) * 64, xetile.program_id(1) * 64
    acc = xetile.zeros((64, 64), i32)
    for k in range(0, A.shape[1], 64):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (64, 64)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (64, 64)))
        acc = xetile.tile_mma(a, b, acc, wg_map=MAP)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (64, 64)))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_two_blocks_side_by_side(dtype: type) -> None:
    rng, info = np.random.default_rng(7), np.iinfo(dtype)
    a, b = (aligned(shape, dtype) for shape in ((70, 192), (192, 128)))
    for each in (a, b):
        each[...] = rng.integers(info.min, info.max + 1, each.shape)
    c = aligned((70, 128), np.int32)
    product[2, 2](a, b, c)
    assert np.array_equal(c, a.astype(np.int64) @ b.astype(np.int64))


def test_the_messages() -> None:
    types = "i8[M,K] i8[K,N] i32[M,N]"
    text = product.ir("lanes", types, target="pvc").split("_unaligned")[0]
    assert text.count("rows = 32 : i64, columns = 32 : i64, count = 2") == 1

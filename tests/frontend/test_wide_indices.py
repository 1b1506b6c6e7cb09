"""Indices of gathers do not overflow, whatever the dtype they are computed in.

The arrays are zeros that nobody touches: they cost no memory.
"""

import numpy as np
import pytest

from xetl import xetile
from xetl.xetile import constexpr

BACKENDS = ["reference", "cpu"]
FAR = 2**31


@pytest.fixture(scope="module")
def table():
    found = np.zeros(FAR + 8192, np.int8)
    found[FAR : FAR + 64] = np.arange(64)
    return found


@xetile.kernel
def embed(W, IDX, OUT, D: constexpr):
    r = xetile.load_tile(xetile.init_tile(IDX, [0], (4,)))
    i = r[:, None] * D + xetile.arange(D)[None, :]
    out = xetile.load_gather(xetile.init_tile(W, i))
    xetile.store_tile(out, xetile.init_tile(OUT, [0, 0], (4, D)))


@pytest.mark.parametrize("backend", [*BACKENDS, "xegpu"])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64])
def test_rows_of_a_large_table(table, dtype, backend):
    out = np.full((4, 64), -1, np.int8)
    rows = np.array([FAR // 64, 0, FAR // 64, 1], dtype)
    embed[1](table, rows, out, D=64, backend=backend)
    wanted = table[rows.astype(np.int64)[:, None] * 64 + np.arange(64)]
    assert np.array_equal(out, wanted)


@pytest.mark.parametrize("backend", [*BACKENDS, "xegpu"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
def test_narrow_rows(dtype, backend):
    table = np.arange(40000, dtype=np.float32)
    out = np.zeros((4, 16), np.float32)
    most = min(np.iinfo(dtype).max, 2000)
    rows = np.array([most, 0, most - 1, 1], dtype)
    embed[1](table, rows, out, D=16, backend=backend)
    wanted = table[rows.astype(np.int64)[:, None] * 16 + np.arange(16)]
    assert np.array_equal(out, wanted)


@xetile.kernel
def block(X, OUT, N: int, SIZE: constexpr):
    i = N * SIZE + xetile.arange(SIZE)
    i = xetile.where(i < 0, i, i)
    i = xetile.maximum(i, 0 - i)
    y = xetile.load_gather(xetile.init_tile(X, i))
    xetile.store_tile(y, xetile.init_tile(OUT, [0], (SIZE,)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_block_far_away(table, backend):
    out = np.full(64, -1, np.int8)
    block[1](table, out, FAR // 64, SIZE=64, backend=backend)
    assert np.array_equal(out, np.arange(64))


@xetile.kernel
def put(X, V, BASE: int, SIZE: constexpr):
    v = xetile.load_tile(xetile.init_tile(V, [0], (SIZE,)))
    tile = xetile.init_tile(X, xetile.arange(SIZE) + BASE)
    tile = xetile.update_tile_offset(tile, xetile.arange(SIZE) * 0 + BASE)
    xetile.store_scatter(v, xetile.arange(SIZE) >= 0, tile)


@pytest.mark.parametrize("backend", BACKENDS)
def test_scatters_and_moves(backend):
    x = np.zeros(FAR + 64, np.int8)
    put[1](x, np.arange(1, 17, dtype=np.int8), FAR // 2, SIZE=16, backend=backend)
    assert np.array_equal(x[FAR : FAR + 16], np.arange(1, 17))
    assert not x[:64].any()


@xetile.kernel
def hashed(X, KEYS, OUT, WHERE, N: constexpr):
    keys = xetile.load_tile(xetile.init_tile(KEYS, [0], (16,)))
    h = (keys * 40503) % N
    xetile.store_tile(h, xetile.init_tile(WHERE, [0], (16,)))
    x = xetile.load_gather(xetile.init_tile(X, h))
    xetile.store_tile(x, xetile.init_tile(OUT, [0], (16,)))


@pytest.mark.parametrize("backend", [*BACKENDS, "xegpu"])
def test_numbers_that_wrap_elsewhere_stay_what_they_are(backend):
    x = np.arange(97, dtype=np.float32)
    keys = np.arange(1, 17, dtype=np.int32) * 123456789
    out, where = np.zeros(16, np.float32), np.zeros(16, np.int32)
    hashed[1](x, keys, out, where, N=97, backend=backend)
    assert np.array_equal(where, (keys * np.int32(40503)) % 97)
    assert np.array_equal(out, x[where])

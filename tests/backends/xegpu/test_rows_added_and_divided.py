"""A row added to products is a multiply-add; powers of two divide by products."""

from __future__ import annotations

import numpy as np

from tests.backends.xegpu import device
from xetl import xetile
from xetl.ops.rows.normalization import norm_rows
from xetl.xetile import Array, f32


@xetile.kernel
def scaled(X: Array, W: Array, B: Array, Y: Array) -> None:
    """``Y = X * W + B / 4``, and a product that is read twice."""
    x = xetile.load_tile(xetile.init_tile(X, [0, 0], (16, 32)))
    w = xetile.load_tile(xetile.init_tile(W, [0, 0], (1, 32)))
    b = xetile.load_tile(xetile.init_tile(B, [0, 0], (1, 32)))
    xetile.store_tile(x * w + b / 4.0, xetile.init_tile(Y, [0, 0], (16, 32)))
    product = x * x
    y = (product + b) / 3.0 + product
    xetile.store_tile(y, xetile.init_tile(Y, [16, 0], (16, 32)))


def test_what_is_made_of_it() -> None:
    types = "f32[M,N] f32[M,N] f32[M,N] f32[M,N]"
    text = scaled.ir("xegpu", types, backend="xegpu", target="pvc")
    fast = text.split("_unaligned")[0]
    assert fast.count("math.fma") == 4  # 16 x 32 are four fragments
    assert fast.count("arith.divf") == 4  # by three
    halves = scaled.ir("xegpu", types.replace("f32", "f16"), backend="xegpu")
    assert "math.fma" not in halves  # each operation rounds


def test_the_numbers() -> None:
    device.require()
    rng = np.random.default_rng(3)
    x, w, b = (rng.random((n, 32), np.float32) for n in (16, 1, 1))
    y = np.zeros((32, 32), np.float32)
    scaled[1](x, w, b, y, backend="xegpu")
    a, c, d = (each.astype(np.float64) for each in (x, w, b))
    wanted = np.concatenate([a * c + d / 4, (a * a + d) / 3 + a * a])
    np.testing.assert_allclose(y, wanted, rtol=1e-6)


def test_rows_with_gaps_are_normed_by_four_subgroups() -> None:
    device.require()
    rng = np.random.default_rng(4)
    x = rng.standard_normal((16, 1100)).astype(np.float32)[:, 20:1044]
    w, b = (rng.standard_normal(1024).astype(np.float32) for _ in range(2))
    y = np.zeros((16, 1024), np.float32)
    wide = xetile.wg_map(sg_layout=[1, 4], sg_data=[8, 256])
    how = {"ACC": f32, "WIDTH": 1024, "ROWS": 8, "MAP": wide, "IS_FULL": True}
    norm_rows[2, 1](x, w, b, y, 1e-5, CENTERED=True, **how, backend="xegpu")
    v = x.astype(np.float64)
    v -= v.mean(1, keepdims=True)
    wanted = v / np.sqrt((v * v).mean(1, keepdims=True) + 1e-5) * w + b
    np.testing.assert_allclose(y, wanted, rtol=2e-6, atol=2e-6)

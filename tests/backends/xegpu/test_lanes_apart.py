"""Slow operations on what all lanes hold: each lane computes one element for all."""

from __future__ import annotations

import numpy as np

from tests.backends.xegpu import device
from xetl import xetile
from xetl.xetile import Array, f32


@xetile.kernel
def rows_over_sums(X: Array, Y: Array) -> None:
    """``Y = X / sqrt(sum(X))`` of eight rows."""
    tile = xetile.init_tile(X, [xetile.program_id(0) * 8, 0], (8, 32))
    v = xetile.load_tile(tile).to(f32)
    y = v * (2.0 / xetile.sqrt(v.sum(1, keepdims=True)))
    to = xetile.init_tile(Y, [xetile.program_id(0) * 8, 0], (8, 32))
    xetile.store_tile(y, to)


def test_a_lane_divides_for_all():
    types = "f32[M,N] f32[M,N]"
    text = rows_over_sums.ir("lanes", types, backend="xegpu", target="pvc")
    fast = text.split("_unaligned")[0].splitlines()
    slow = [line for line in fast if "divf" in line or "math.sqrt" in line]
    assert [line.split(" : ")[1] for line in slow] == ["f32"] * 2
    # Lane l has the sum of row l already: no lane chooses one of eight.
    assert sum("simt.reduce_rows" in line for line in fast) == 1
    assert not any("arith.select" in line for line in fast)


def test_the_numbers():
    device.require()
    x = np.random.default_rng(3).random((16, 32), np.float32)
    y = np.zeros_like(x)
    rows_over_sums[2](x, y, backend="xegpu")
    wanted = 2 * x / np.sqrt(x.sum(1, keepdims=True, dtype=np.float32))
    np.testing.assert_allclose(y, wanted, rtol=1e-6)

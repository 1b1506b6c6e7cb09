"""Slow operations on what all lanes hold: each lane computes one element for all."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.backends.xegpu import device
from tests.backends.xegpu.offline.hand_made import HAS_OCLOC, REASON
from xetl import xetile
from xetl.xetile import Array, bf16, f32, i32


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


@xetile.kernel
def rows_by_signs(X: Array, Y: Array) -> None:
    """What is chosen, rounded and counted by sums and extrema of eight rows."""
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (8, 48)))
    total, largest = v.sum(1, keepdims=True), v.max(1, keepdims=True)
    least = v.min(1, keepdims=True, propagate_nan=False)
    y = xetile.where(total > 0.0, v, -v) + total.to(bf16).to(f32)
    whole = (total * 4.0).to(i32) + 3
    y = y * (largest - least) + (whole & 7).to(f32)
    xetile.store_tile(y, xetile.init_tile(Y, [0, 0], (8, 48)))


def test_comparisons_and_conversions_of_rows() -> None:
    device.require()
    x = np.random.default_rng(5).integers(-8, 9, (8, 48)).astype(np.float32)
    y = np.zeros_like(x)
    rows_by_signs[1](x, y, backend="xegpu")
    total = x.sum(1, keepdims=True)
    rounded = total.astype(ml_dtypes.bfloat16).astype(np.float32)
    wanted = np.where(total > 0, x, -x) + rounded
    wanted = wanted * np.ptp(x, 1, keepdims=True) + ((total * 4).astype(int) + 3 & 7)
    assert np.array_equal(y, wanted)


@pytest.mark.skipif(not HAS_OCLOC, reason=REASON)
@pytest.mark.parametrize("target", ["pvc", "bmg"])
def test_intels_compiler_takes_them(target: str) -> None:
    found = rows_by_signs.stats("f32[M,N] f32[M,N]", backend="xegpu", target=target)
    assert found.spill_bytes == 0

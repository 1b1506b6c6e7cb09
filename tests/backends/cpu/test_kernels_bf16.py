"""bf16 that is computed in f32: rounding, and elements in their places.

Where a register of bf16 becomes two of f32, elements at even places and those at odd
ones are kept apart. It shows in nothing that is computed.
"""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launching import launch, same

from xetl import xetile
from xetl.xetile import bf16, constexpr, f32

pytestmark = pytest.mark.usefixtures("target")
BF16 = np.dtype(ml_dtypes.bfloat16)
WIDTHS = [1, 15, 16, 17, 40, 511, 512, 513, 777]


@xetile.kernel
def times(X, Y, number, W: constexpr):
    i = xetile.program_id(0)
    x = xetile.load_tile(xetile.init_tile(X, [i, 0], (1, W))).to(f32)
    xetile.store_tile((x * number).to(bf16), xetile.init_tile(Y, [i, 0], (1, W)))


@xetile.kernel
def doubled(X, Y, W: constexpr):
    i = xetile.program_id(0)
    x = xetile.load_tile(xetile.init_tile(X, [i, 0], (1, W)))
    xetile.store_tile(x + x, xetile.init_tile(Y, [i, 0], (1, W)))


@xetile.kernel
def by_columns(X, V, Y, Sums, W: constexpr):
    i = xetile.program_id(0) * 4
    x = xetile.load_tile(xetile.init_tile(X, [i, 0], (4, W))).to(f32)
    v = xetile.load_tile(xetile.init_tile(V, [0], (W,))).to(f32)
    # Computed once for four rows, and kept in memory.
    v = v * v * v - 2.0 * v * v + xetile.abs(v - 1.0) * v + xetile.maximum(v, 0.5)
    y = x * v[None, :]
    xetile.store_tile(y.to(bf16), xetile.init_tile(Y, [i, 0], (4, W)))
    xetile.store_tile(y.sum(1).to(bf16), xetile.init_tile(Sums, [i], (4,)))


def rounded(values: Any) -> Any:
    return values.astype(np.float32).astype(BF16)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("number", [1.0, 2.0, -1.25, 1.0078125, 3e38, 1e-3])
def test_all_numbers_are_rounded_to_even(number: float) -> None:
    """Ties, infinities and NaN; what is subnormal may be 0."""
    x = np.arange(1 << 16, dtype=np.uint16).view(BF16).reshape(64, 1024)
    wide = x.astype(np.float32)
    products = wide * np.float32(number)
    sizes = np.minimum(np.abs(wide), np.abs(products))
    counts = ~(sizes < np.finfo(np.float32).tiny) | (wide == 0)
    kernels = [(times, [number])] + [(doubled, [])] * (number == 2)
    for kernel, rest in kernels:
        found = launch(kernel, 64, x, np.zeros_like(x), *rest, W=1024)[1]
        same(found[counts], rounded(products)[counts])


@pytest.mark.parametrize("width", WIDTHS)
def test_elements_keep_their_places(width: int) -> None:
    """Where some are kept as f32 in between; sums of small integers are exact."""
    rng = np.random.default_rng(width)
    x = rng.integers(-3, 4, (8, width)).astype(BF16)
    v = rng.integers(-2, 3, width).astype(BF16)
    outputs = np.zeros_like(x), np.zeros(8, BF16)
    tile = max(16, 1 << (width - 1).bit_length())
    _, _, y, sums = launch(by_columns, 2, x, v, *outputs, W=tile)
    w = v.astype(np.float32)
    w = w**3 - 2 * w**2 + np.abs(w - 1) * w + np.maximum(w, 0.5)
    want = x.astype(np.float32) * w
    same(y, rounded(want))
    same(sums, rounded(want.sum(1)))

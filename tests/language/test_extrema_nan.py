"""``propagate_nan=False``: extrema in which a number wins over NaN."""

import numpy as np
import pytest

from xetl import xetile
from xetl.errors import XetlError
from xetl.xetile import constexpr

BACKENDS = pytest.mark.parametrize("backend", ["reference", "cpu", "xegpu"])


@xetile.kernel(grid=lambda a: (1,))
def extrema(X, Y, Z, R: constexpr, C: constexpr):
    x = xetile.load_tile(xetile.init_tile(X, [0, 0], (R, C)))
    one = x.max(1, keepdims=True, propagate_nan=False)
    other = xetile.min(x, 1, keepdims=True, propagate_nan=False)
    wins = x.max(1, keepdims=True), x.min(1, keepdims=True)
    for i, value in enumerate((one, other, *wins)):
        xetile.store_tile(value, xetile.init_tile(Y, [0, i], (R, 1)))
    pair = xetile.maximum(x, 1, propagate_nan=False)
    xetile.store_tile(
        xetile.minimum(pair, 2, propagate_nan=False),
        xetile.init_tile(Z, [0, 0], (R, C)),
    )


@BACKENDS
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
@pytest.mark.parametrize("shape", [(8, 64), (3, 20), (1, 16)])
def test_a_number_wins(backend: str, dtype, shape) -> None:
    x = (np.random.default_rng(0).standard_normal(shape) * 9).astype(dtype)
    if x.dtype.kind == "f":
        x[0] = np.nan
        x[-1, :-2] = np.nan
        x[shape[0] // 2, 3] = -np.inf
    y, z = np.zeros((shape[0], 4), dtype), np.zeros_like(x)
    extrema(x, y, z, *shape, backend=backend)
    rows = np.fmax.reduce(x, 1), np.fmin.reduce(x, 1), x.max(1), x.min(1)
    np.testing.assert_array_equal(y, np.stack(rows, 1))
    np.testing.assert_array_equal(z, np.fmin(np.fmax(x, dtype(1)), dtype(2)))


def test_it_is_known_when_compiling() -> None:
    @xetile.kernel(grid=lambda a: (1,))
    def late(X, flag):
        x = xetile.load_tile(xetile.init_tile(X, [0, 0], (8, 16)))
        y = xetile.maximum(x, 0, propagate_nan=flag > 0)
        xetile.store_tile(y, xetile.init_tile(X, [0, 0], (8, 16)))

    with pytest.raises(XetlError, match="propagate_nan"):
        late(np.zeros((8, 16), np.float32), 1)

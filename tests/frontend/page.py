"""What the tests of the language page share: which line each proves, and how to run."""

import ml_dtypes
import numpy as np
import pytest

from xetl import xetile
from xetl.xetile import constexpr

BACKENDS = ["reference", "cpu"]
NUMPY = {
    "bf16": ml_dtypes.bfloat16,
    "i1": np.bool_,
    **{f"f{n}": np.dtype(f"f{n // 8}") for n in (16, 32, 64)},
    **{f"i{n}": np.dtype(f"i{n // 8}") for n in (8, 16, 32, 64)},
    **{f"u{n}": np.dtype(f"u{n // 8}") for n in (8, 16, 32, 64)},
}
PROVED = set()

# The groups of the table of section 2, the Python subset and the rules, one key a line.
GROUPS = [
    "program",
    "tiles",
    "tile memory",
    "SLM",
    "vector",
    "maps",
    "make",
    "arithmetic",
    "math",
    "reduce sugar",
    "compile time",
    "debug",
    "dtypes",
    "Python subset",
    "rule: scalars take the vector's dtype",
    "rule: vector with vector promotes as NumPy",
    "rule: scalar ints are 64-bit, arange is i32",
    "rule: // and % floor, by zero gives 0",
    "rule: the op carries the sign",
    "rule: i1",
    "rule: tile_mma accumulators",
    "rule: exact dtype and shape of stores",
    "rule: math on integers is f32",
    "rule: reductions keep the dtype",
    "rule: scatter tiles",
    "rule: atomics",
    "rule: views and scalar loads",
    "rule: rank 4",
    "rule: .to",
    "rule: negative indices, strides, zero extents",
    "rule: maps",
    "rule: SLM limit",
]


def proves(line):
    """The test below proves this line of docs/language.md, section 2."""
    assert line in GROUPS, line
    PROVED.add(line)
    return lambda test: test


both = pytest.mark.parametrize("backend", BACKENDS)


@xetile.kernel(grid=1)
def apply(A, B, OUT, F, M: constexpr, N: constexpr, K: constexpr):
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (M, N)))
    b = xetile.load_tile(xetile.init_tile(B, [0, 0], (M, N)))
    result = F(a, b)
    xetile.static_assert(result.dtype == OUT.dtype, f"{result.dtype}, not {OUT.dtype}")
    xetile.store_tile(result, xetile.init_tile(OUT, [0, 0], (M, K)))


def computed(function, a, b, dtype, backend, columns=None):
    """`function(a, b)` of two matrices as a kernel computes it; it gives `dtype`."""
    a, b = np.asarray(a), np.asarray(b)
    m, n = a.shape
    out = np.zeros((m, n if columns is None else columns), NUMPY.get(dtype, dtype))
    apply(
        *(a, b, out, xetile.function(function)),
        **{"M": m, "N": n, "K": out.shape[1], "backend": backend},
    )
    return out


def matrix(dtype, shape=(5, 7), low=-9, high=10, seed=0):
    """Small whole numbers of a dtype."""
    rng = np.random.default_rng(seed)
    if dtype == "i1":
        return rng.integers(0, 2, shape).astype(bool)
    low = 0 if dtype[0] == "u" else low
    return rng.integers(low, high, shape).astype(NUMPY[dtype])

"""Divide by values that are stored and loaded in between, in tiles of ragged sizes.

Usage: ``python divisions.py BACKEND``; an error, or a signal, if a result is wrong.
"""

import sys
from itertools import product

import numpy as np

from xetl import xetile
from xetl.xetile import constexpr

LEAST = {np.int32: -(2**31), np.int16: -(2**15), np.uint8: 0, np.int64: -(2**63)}


@xetile.kernel
def reduced(A, B, Q, R, H: constexpr, W: constexpr):
    """The divisor is a sum along columns, made before."""
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (H, W)))
    b = xetile.load_tile(xetile.init_tile(B, [0, 0], (H, W)))
    d = a - xetile.tile_reduce("add", b, [0])
    xetile.store_tile(a // d, xetile.init_tile(Q, [0, 0], (H, W)))
    xetile.store_tile(a % d, xetile.init_tile(R, [0, 0], (H, W)))


@xetile.kernel
def turned(A, B, Q, R, H: constexpr, W: constexpr):
    """All comes from, and goes to, matrices that are looked at turned around."""
    a = xetile.load_tile(xetile.init_tile(A.T, [0, 0], (W, H)))
    b = xetile.load_tile(xetile.init_tile(B.T, [0, 0], (W, H)))
    d = a - xetile.tile_reduce("add", b, [1])
    xetile.store_tile(a // d, xetile.init_tile(Q.T, [0, 0], (W, H)))
    xetile.store_tile(a % d, xetile.init_tile(R.T, [0, 0], (W, H)))


@xetile.kernel
def twice(A, B, Q, R, H: constexpr, W: constexpr):
    """A product of quotients, and a transposed one."""
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (H, W)))
    b = xetile.load_tile(xetile.init_tile(B, [0, 0], (H, W)))
    d = (a - xetile.tile_reduce("add", b, [0])).T
    xetile.store_tile((a.T // d).T, xetile.init_tile(Q, [0, 0], (H, W)))
    xetile.store_tile((a.T % d).T, xetile.init_tile(R, [0, 0], (H, W)))


def check(kernel, backend, dtype, shape):
    rng = np.random.default_rng(3)
    a = rng.integers(0, 3, shape).astype(dtype)
    b = np.zeros(shape, dtype)
    b[0] = rng.integers(0, 3, shape[1])
    b[-1, 0] = 1
    a[0, -1] = LEAST[dtype]  # by -1 below: the quotient does not fit
    b[:, -1] = 0
    b[0, -1] = np.array(LEAST[dtype] + 1).astype(dtype)
    d = a - b.sum(0, keepdims=True, dtype=dtype)
    q, r = np.full(shape, 9, dtype), np.full(shape, 9, dtype)
    kernel[1](a, b, q, r, H=shape[0], W=shape[1], backend=backend)
    with np.errstate(all="ignore"):
        wanted = np.floor_divide(a, d), np.remainder(a, d)
    assert np.array_equal(q, wanted[0]), (kernel, dtype, shape, q, wanted[0])
    assert np.array_equal(r, wanted[1]), (kernel, dtype, shape, r, wanted[1])


if __name__ == "__main__":
    name = sys.argv[1]
    shapes, dtypes = [(2, 17), (3, 5), (4, 16), (1, 3)], list(LEAST)
    if name == "xegpu":  # a second for each
        shapes, dtypes = shapes[:2], [np.int32, np.uint8]
    for kernel, dtype, shape in product((reduced, turned, twice), dtypes, shapes):
        check(kernel, name, dtype, shape)

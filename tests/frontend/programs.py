"""Run functions on ints as Python, and as kernels of a backend."""

import numpy as np

from xetl import xetile

BACKENDS = ["reference", "cpu"]


@xetile.kernel
def scalar_program(X, OUT, n, F):
    result = F(X, n)
    value = xetile.full((1,), result, xetile.i64)
    xetile.store_tile(value, xetile.init_tile(OUT, [0], (1,)))


def as_kernel(function, data, n, backend):
    """`function(X, n)` of an array of i64 and an int, as a kernel computes it."""
    out = np.full(1, -999, np.int64)
    X = np.array(data, np.int64)
    scalar_program[1](X, out, n, xetile.function(function), backend=backend)
    return int(out[0])


def as_python(function, data, n):
    """The same, as Python computes it; what lies outside reads 0."""
    return int(function(Padded(data), n))


class Padded(list):
    def __getitem__(self, index):
        return list.__getitem__(self, index) if 0 <= index < len(self) else 0

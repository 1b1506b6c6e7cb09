"""Python's own functions of numbers (``math``) on run-time numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from xetl import xetile
from xetl.errors import CompileError


def functions(X, Y, n):
    """One row of results for each element."""
    for i in range(X.shape[0]):
        x = X[i]
        Y[i, 0], Y[i, 1], Y[i, 2] = math.sqrt(x), math.exp(x), math.log(x)
        Y[i, 3], Y[i, 4], Y[i, 5] = math.floor(x), math.ceil(x), math.trunc(-x)
        Y[i, 6], Y[i, 7], Y[i, 8] = math.hypot(x, 3), math.fabs(-x), math.erf(x)
        Y[i, 9], Y[i, 10], Y[i, 11] = math.sqrt(n), math.floor(n), math.isnan(x)
        Y[i, 12], Y[i, 13] = math.fmod(x, 0.7), math.copysign(x, -1.0)
        Y[i, 14], Y[i, 15] = math.sqrt(2.0), math.floor(x) % 3
        Y[i, 16], Y[i, 17] = math.isinf(x), math.atan2(x, 2.0)


@pytest.mark.parametrize("backend", ["reference", "cpu", "xegpu"])
def test_functions_of_math(backend: str) -> None:
    X, Y, expected = np.array([0.3, 2.7, 5.1]), np.zeros((3, 18)), np.zeros((3, 18))
    xetile.kernel(functions)[1](X, Y, 7, backend=backend)
    functions(X, expected, 7)
    np.testing.assert_allclose(Y, expected, rtol=16 * np.finfo(float).eps)


@xetile.kernel
def two_arguments(X, Y):
    Y[0] = math.log(X[0], 2.0)


@xetile.kernel
def of_integers(X, Y):
    Y[0] = math.gcd(int(X[0]), 4)


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (two_arguments, "`log` takes 1 positional argument"),
        (of_integers, "`math.gcd` is a function of the host"),
    ],
)
def test_what_xetile_does_not_have_is_refused(kernel, text: str) -> None:
    with pytest.raises(CompileError, match=text):
        kernel[1](np.ones(1), np.ones(1), backend="reference")

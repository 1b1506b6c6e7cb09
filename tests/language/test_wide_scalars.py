"""Elements of 64 bits are scalars that keep their dtype: unsigned, or with all bits."""

import numpy as np
import pytest

from xetl import xetile
from xetl.errors import CompileError
from xetl.xetile import constexpr, f32, i64

BACKENDS = pytest.mark.parametrize("backend", ["cpu", "reference", "xegpu"])


@xetile.kernel
def unsigned(X, Y, Z):
    a, b = X[0], X[1]
    Y[0] = a // b
    Y[1] = a >> 1
    Y[2] = a % 10
    Y[3] = a > b
    Y[4] = xetile.maximum(a, b)
    v = xetile.load_tile(xetile.init_tile(X, [0], (2,)))
    Y[5] = v.max() // 3
    Y[6] = v.max() < b
    Y[7] = (a + 5) // 7 if a >= b else 0
    Z[0] = a * 1.0
    Z[1] = v.max() / 2
    for _ in range(3):
        a ^= a >> 12
        a ^= a << 25
        a ^= a >> 27
    Y[8] = a


@BACKENDS
def test_u64_is_unsigned(backend: str) -> None:
    a, most = (1 << 64) - 3, (1 << 64) - 1
    y, z = np.zeros(9, np.uint64), np.zeros(2)
    unsigned[1](np.array([a, 3], np.uint64), y, z, backend=backend)
    shifted = a
    for _ in range(3):
        shifted ^= shifted >> 12
        shifted ^= shifted << 25 & most
        shifted ^= shifted >> 27
    wanted = [a // 3, a >> 1, a % 10, 1, a, a // 3, 0, (a + 5 & most) // 7, shifted]
    assert y.tolist() == wanted
    assert z.tolist() == [float(a), a / 2]


@xetile.kernel
def chosen(X, F, N, M, SIZE: constexpr):
    at = xetile.arange(SIZE)
    picked = xetile.where(at == 0, X[0] + 1, 7)
    xetile.static_assert(picked.dtype == i64)
    N[at] = picked
    M[at] = xetile.where(at < 2, xetile.sqrt(F[0]), 0.5)


@BACKENDS
def test_a_choice_of_elements_keeps_their_bits(backend: str) -> None:
    n, m = np.zeros(4, np.int64), np.zeros(4)
    chosen[1](np.array([1 << 40]), np.array([2.0]), n, m, 4, backend=backend)
    assert n.tolist() == [(1 << 40) + 1, 7, 7, 7]
    assert m.tolist() == [np.sqrt(2.0)] * 2 + [0.5] * 2


@xetile.kernel
def kind(X, Y, DTYPE: constexpr):
    Y[0] = 1 if X.dtype == DTYPE else 2 if X.dtype != np.float64 else 3


@pytest.mark.parametrize("dtype", [f32, np.float32, "float32", "f32"])
def test_a_dtype_has_several_names(dtype: object) -> None:
    y = np.zeros(3)
    for place, given in enumerate((np.float32, np.int8, np.float64)):
        kind[1](np.zeros(4, given), y[place:], dtype)
    assert y.tolist() == [1, 2, 3]


def test_a_wrong_name_of_a_dtype_is_refused() -> None:
    with pytest.raises(CompileError, match="`float23` is not a dtype"):
        kind[1](np.zeros(4), np.zeros(1), "float23")

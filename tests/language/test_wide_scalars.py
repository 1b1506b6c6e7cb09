"""Elements of 64 bits are scalars that keep their dtype: unsigned, or with all bits."""

import numpy as np
import pytest

from xetl import xetile
from xetl.errors import CompileError
from xetl.xetile import constexpr, f16, f32, i32, i64

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


@xetile.function
def element_or_0(X, n):
    if n < 1:
        return 0
    for i in range(n):
        if X[i] > 3:
            return X[i]
    return 1


@xetile.kernel
def met(X, Y, n):
    low = 0
    old, new = 0, 1
    for i in range(n):  # `old` begins as a number and becomes an element
        low = low // 2 + (X[i] if i >= 0 else 0) // 2
        old, new = new, old // 2 + X[i]
    Y[0], Y[1], Y[2] = low, old // 2, new // 2
    high = 0
    while high < X[1]:
        high = high // 2 + X[0]
    Y[3] = high
    a = 0 if n < 1 else X[0]
    Y[4] = a // 2
    if n < 1:
        b = 0
    else:
        Y[5] = 1
        b = X[0]
    Y[5] = b // 2
    Y[6] = element_or_0(X, n) // 2
    Y[7] = (n - 2 or X[0]) // 2
    pair = 0, 0
    for _ in range(n):
        pair = pair[1] // 2, X[0]
    Y[8] = pair[0]


@BACKENDS
def test_a_number_that_meets_u64_is_unsigned(backend: str) -> None:
    a, b = (1 << 64) - 10, (1 << 63) + 2
    y = np.zeros(9, np.uint64)
    met[1](np.array([a, b], np.uint64), y, 2, backend=backend)
    most = (1 << 64) - 1
    low, old, new = 0, 0, 1
    for each in (a, b):
        low = (low // 2 + each // 2) & most
        old, new = new, (old // 2 + each) & most
    high = a
    rest = [a // 2, a // 2, a // 2, a // 2, a // 2]
    assert y.tolist() == [low, old // 2, new // 2, high, *rest]


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


@xetile.kernel
def converted(X, Y, DTYPE: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0], (4,))).to(DTYPE)
    xetile.static_assert(v.dtype in (DTYPE, i64) and v.dtype not in (np.int8, i64))
    Y[0] = v.sum() + X.dtype.itemsize + (v > 1).sum()


@pytest.mark.parametrize("dtype", [f16, np.float16, np.dtype("f2"), "float16"])
def test_a_vector_is_converted_to_any_name_of_a_dtype(dtype: object) -> None:
    y = np.zeros(1)
    converted[1](np.full(4, 1 + 2.0**-9), y, dtype)
    assert y.tolist() == [4 * (1 + 2.0**-9) + 8 + 4]


def test_dtypes_of_torch() -> None:
    torch = pytest.importorskip("torch")
    y = np.zeros(1)
    converted[1](np.full(4, 1 + 2.0**-14), y, torch.float16)
    assert y.tolist() == [4 + 8]
    for dtype, which in ((torch.float64, 1), (torch.int8, 3)):
        kind[1](np.zeros(4), y, dtype)
        assert y.tolist() == [which]


@xetile.kernel
def counted(X, Rows, Y):
    mask = xetile.load_tile(xetile.init_tile(X, [0, 0], (3, 300))) > 0
    rows = mask.sum(1)
    xetile.static_assert(rows.dtype == i32)
    xetile.store_tile(rows, xetile.init_tile(Rows, [0], (3,)))
    Y[0] = xetile.sum(mask)


@BACKENDS
def test_the_sum_of_a_mask_counts(backend: str) -> None:
    x = np.random.default_rng(0).integers(0, 2, (3, 300)).astype(np.int8)
    rows, y = np.zeros(3, np.int32), np.zeros(1, np.int64)
    counted[1](x, rows, y, backend=backend)
    assert rows.tolist() == x.sum(1).tolist()
    assert y.tolist() == [x.sum()]


@pytest.mark.parametrize("dtype", [f32, np.float32, "float32", "f32", np.dtype("f4")])
def test_a_dtype_has_several_names(dtype: object) -> None:
    y = np.zeros(3)
    for place, given in enumerate((np.float32, np.int8, np.float64)):
        kind[1](np.zeros(4, given), y[place:], dtype)
    assert y.tolist() == [1, 2, 3]


def test_a_wrong_name_of_a_dtype_is_refused() -> None:
    with pytest.raises(CompileError, match="`float23` is not a dtype"):
        kind[1](np.zeros(4), np.zeros(1), "float23")

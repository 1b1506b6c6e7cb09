"""The rules of types and edges of the language, on the oracle: exact values.

Source: docs/language.md, "Rules of types and edges".
"""

import ml_dtypes
import numpy as np
import pytest

from xetl import xetile
from xetl.xetile import constexpr

BF16 = ml_dtypes.bfloat16
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32]
FLOATS = [np.float16, BF16, np.float32, np.float64]


def run(kernel, *args, **options):
    kernel[1](*args, backend="reference", **options)


def apply(function, *arrays, dtype=None):
    """A function of vectors, as the body of a kernel of one program."""
    n = len(arrays[0])
    out = np.zeros(n, arrays[0].dtype if dtype is None else dtype)
    kernel = _unary if len(arrays) == 1 else _binary
    run(kernel, *arrays, out, FUNCTION=function, N=n)
    return out


@xetile.kernel
def _unary(X, OUT, FUNCTION: constexpr, N: constexpr):
    x = xetile.load_tile(xetile.init_tile(X, [0], (N,)))
    xetile.store_tile(FUNCTION(x), xetile.init_tile(OUT, [0], (N,)))


@xetile.kernel
def _binary(X, Y, OUT, FUNCTION: constexpr, N: constexpr):
    x = xetile.load_tile(xetile.init_tile(X, [0], (N,)))
    y = xetile.load_tile(xetile.init_tile(Y, [0], (N,)))
    xetile.store_tile(FUNCTION(x, y), xetile.init_tile(OUT, [0], (N,)))


def pairs(dtype):
    info = np.iinfo(dtype)
    some = [info.min, info.min + 1, info.max, 0, 1, 2, 3, 7, 100]
    if info.min:
        some += [-1, -2, -3, -7]
    a, b = np.meshgrid(np.array(some, dtype), np.array(some, dtype))
    return a.ravel(), b.ravel()


@xetile.function
def floordiv(x, y):
    return x // y


@xetile.function
def modulo(x, y):
    return x % y


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division_floors_and_never_traps(dtype):
    a, b = pairs(dtype)
    bits = 8 * a.itemsize
    exact = [(int(x), int(y)) for x, y in zip(a, b)]
    quotient = [x // y if y else 0 for x, y in exact]
    rest = [x % y if y else 0 for x, y in exact]
    wrapped = np.array([q % 2**bits for q in quotient], np.uint64).astype(dtype)
    assert (apply(floordiv, a, b) == wrapped).all()
    assert (apply(modulo, a, b) == np.array(rest).astype(dtype)).all()


@xetile.function
def add_mul(x, y):
    return x * y + x - y


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic_wraps(dtype):
    a, b = pairs(dtype)
    wanted = [int(x) * int(y) + int(x) - int(y) for x, y in zip(a, b)]
    modulus = 2 ** (8 * a.itemsize)
    found = apply(add_mul, a, b)
    assert [int(v) % modulus for v in found] == [w % modulus for w in wanted]


@xetile.function
def divide(x, y):
    return x / y


def test_integer_true_division_gives_f32():
    a, b = np.array([1, 7, -9], np.int32), np.array([3, 2, 4], np.int32)
    found = apply(divide, a, b, dtype=np.float32)
    assert (found == a.astype(np.float32) / b.astype(np.float32)).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_division_floors(dtype):
    a = np.array([7.5, -7.5, 7.5, -7.5, 0.0, 3.0], dtype)
    b = np.array([2.0, 2.0, -2.0, -2.0, 5.0, 0.25], dtype)
    wide = np.float64 if dtype == np.float64 else np.float32
    x, y = a.astype(wide), b.astype(wide)
    assert (apply(floordiv, a, b) == (x // y).astype(dtype)).all()
    assert (apply(modulo, a, b) == (x % y).astype(dtype)).all()


@xetile.function
def a_product_and_a_sum(x, y):
    return x * y + y


@pytest.mark.parametrize("dtype", [np.float16, BF16])
def test_narrow_floats_round_once_for_each_operation(dtype):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(500).astype(dtype) for _ in range(2))
    x, y = a.astype(np.float32), b.astype(np.float32)
    product = (x * y).astype(dtype).astype(np.float32)
    assert (apply(a_product_and_a_sum, a, b) == (product + y).astype(dtype)).all()


@xetile.function
def as_bf16(x):
    return x.to(xetile.bf16)


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_integers_become_bf16_at_once(dtype, backend):
    """One more or less than a tie is none; of f32, which has too few bits, it is."""
    bits = range(9, np.iinfo(dtype).bits - 1)
    ties = [(1 << n) + (1 << (n - 8)) for n in bits]
    near = [(1 << n, (1 << n) + (1 << (n - 7))) for n in bits]
    out = np.zeros(len(ties), BF16)
    for more, side in ((-1, 0), (0, 0), (1, 1)):
        x = np.array([tie + more for tie in ties], dtype)
        _unary[1](x, out, FUNCTION=as_bf16, N=len(x), backend=backend)
        assert [int(each) for each in out] == [pair[side] for pair in near]


@xetile.function
def by_a_tenth(x):
    return x * 0.1


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_scalar_takes_the_dtype_of_the_vector(dtype):
    a = np.linspace(-3, 3, 50).astype(dtype)
    wide = np.float64 if dtype == np.float64 else np.float32
    tenth = np.array(0.1, np.float64).astype(dtype).astype(wide)
    assert (apply(by_a_tenth, a) == (a.astype(wide) * tenth).astype(dtype)).all()


@xetile.function
def largest(x, y):
    return xetile.maximum(x, y)


@pytest.mark.parametrize("dtype", FLOATS)
def test_maximum_gives_nan(dtype):
    a = np.array([np.nan, 1, np.inf, -0.0], dtype)
    b = np.array([1, np.nan, 2, -5], dtype)
    found = apply(largest, a, b).astype(np.float64)
    assert np.isnan(found[:2]).all()
    assert found[2:].tolist() == [np.inf, 0.0]


@xetile.function
def nearest(x):
    return xetile.round(x)


def test_round_is_half_to_even():
    a = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4999], np.float32)
    assert apply(nearest, a).tolist() == [-2, -2, 0, 0, 2, 2, 2]


@xetile.function
def to_i32(x):
    return x.to(xetile.i32)


@xetile.function
def to_i8(x):
    return x.to(xetile.i8)


def test_casts():
    a = np.array([-2.9, -0.5, 0.5, 2.9], np.float32)
    assert apply(to_i32, a, dtype=np.int32).tolist() == [-2, 0, 0, 2]
    b = np.array([-129, 127, 128, 300], np.int32)
    assert apply(to_i8, b, dtype=np.int8).tolist() == [127, 127, -128, 44]
    c = np.array([200, 255, 0], np.uint8)
    assert apply(to_i32, c, dtype=np.int32).tolist() == [200, 255, 0]


@xetile.function
def shift_right(x):
    return x >> 1


def test_shifts_follow_the_sign():
    assert apply(shift_right, np.array([-3, 5], np.int8)).tolist() == [-2, 2]
    assert apply(shift_right, np.array([253, 5], np.uint8)).tolist() == [126, 2]


@xetile.kernel
def scalars(X, OUT, R, K, N: constexpr = 4):
    """An element outside reads 0; a matrix selected outside is empty."""
    total = X[R, K] + X[K, R]
    row = xetile.load_tile(xetile.init_tile(X[R], [0], (N,)), padding=5)
    xetile.store_tile(row + total, xetile.init_tile(OUT, [0], (N,)))


@pytest.mark.parametrize(("i", "k"), [(0, 1), (2, 1), (-1, 0), (7, 0), (1, 3)])
def test_an_index_outside(i, k):
    x = np.arange(9, dtype=np.float32).reshape(3, 3) + 1
    out = np.zeros(4, np.float32)
    run(scalars, x, out, i, k)

    def element(a, b):
        return x[a, b] if 0 <= a < 3 and 0 <= b < 3 else 0.0

    row = [*x[i], 5] if 0 <= i < 3 else [5] * 4
    total = element(i, k) + element(k, i)
    assert out.tolist() == [value + total for value in row]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16, np.int32, np.int8])
def test_reductions_keep_the_dtype(dtype):
    x = (np.arange(60) % 7 - 3).astype(dtype).reshape(5, 12)
    sums, products = np.zeros((5, 1), dtype), np.zeros((5, 1), dtype)
    run(reductions, x, sums, products)
    wide = np.float64 if dtype not in (np.int32, np.int8) else np.int64
    assert (sums[:, 0] == x.astype(wide).sum(1).astype(dtype)).all()
    assert (products[:, 0] == x[:, :3].astype(wide).prod(1).astype(dtype)).all()


@xetile.kernel
def reductions(X, SUMS, PRODUCTS, M: constexpr = 5, N: constexpr = 12):
    x = xetile.load_tile(xetile.init_tile(X, [0, 0], (M, N)))
    total = x.sum(1, keepdims=True)
    xetile.store_tile(total, xetile.init_tile(SUMS, [0, 0], (M, 1)))
    part = xetile.load_tile(xetile.init_tile(X, [0, 0], (M, 3)))
    product = xetile.tile_reduce("mul", part, [1])
    xetile.store_tile(product, xetile.init_tile(PRODUCTS, [0, 0], (M, 1)))


@xetile.kernel(subgroups=[2, 2])
def neighbours(X, OUT):
    """Each subgroup adds what the next one has put into shared memory."""
    shared = xetile.slm((4, 16), xetile.f32)
    me = xetile.subgroup_id()
    x = xetile.load_tile(xetile.init_tile(X, [me, 0], (1, 16)))
    xetile.store_tile(x, xetile.init_tile(shared, [me, 0], (1, 16)))
    xetile.barrier()
    other = xetile.init_tile(shared, [(me + 1) % 4, 0], (1, 16))
    total = x + xetile.load_tile(other)
    xetile.store_tile(total, xetile.init_tile(OUT, [me, 0], (1, 16)))


def test_subgroups_exchange_by_shared_memory():
    x = np.arange(64, dtype=np.float32).reshape(4, 16)
    out = np.zeros_like(x)
    run(neighbours, x, out)
    assert (out == x + np.roll(x, -1, 0)).all()


@xetile.kernel
def _row_tiles(X, OUT, N: constexpr):
    row = xetile.program_id(0)
    tile = xetile.init_tile(X, [row, 1], (N,))
    below = xetile.update_tile_offset(tile, [1, 0])
    beside = xetile.update_tile_offset(tile, [2])
    v = xetile.load_tile(tile) + xetile.load_tile(below) * 10
    v += xetile.load_tile(beside) * 100
    xetile.store_tile(v, xetile.init_tile(OUT, [row, 0], (N,)))


@pytest.mark.parametrize("backend", ["reference", "cpu", "xegpu"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_rank_1_tile_is_a_row_of_a_matrix(backend, order):
    x = np.arange(45, dtype=np.float32).reshape(5, 9, order=order)
    out = np.zeros((5, 7), np.float32)
    _row_tiles[5](x, out, 7, backend=backend)
    wide = np.pad(x, ((0, 1), (0, 1)))
    want = wide[:5, 1:8] + wide[1:, 1:8] * 10 + wide[:5, 3:] * 100
    assert np.array_equal(out, want)

"""Arithmetic on every element type, exactly as NumPy or the reference does it."""

from math import erf
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launching import agree, laid_out, launch, same, small_integers

from xetl import xetile
from xetl.xetile import bf16, constexpr, f16, f32, f64, i8, i16, i32, i64

pytestmark = pytest.mark.usefixtures("anywhere")
LAYOUTS = ("rows", "columns", "neither")
BF16 = ml_dtypes.bfloat16


@xetile.kernel
def add(X, Y, Z, B: constexpr = 1000):
    i = xetile.program_id(0) * B
    x = xetile.load_tile(xetile.init_tile(X, [i], (B,)))
    y = xetile.load_tile(xetile.init_tile(Y, [i], (B,)))
    xetile.store_tile(x + y, xetile.init_tile(Z, [i], (B,)))


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 999, 1000, 1001, 5000])
def test_vector_add(n: int) -> None:
    x, y = small_integers(np.random.default_rng(n), 2, n)
    same(launch(add, -(-n // 1000) + 1, x, y, 0 * x)[2], x + y)


@pytest.mark.parametrize("step", [-1, 2, -3])
def test_vector_add_with_any_stride(step: int) -> None:
    x, y = small_integers(np.random.default_rng(0), 2, 3000)
    z = np.zeros(3000, np.float32)
    x, y = x[::step], y[::step]
    same(agree(add, 3, x, y, z[: x.size])[2], x + y)
    same(agree(add, 3, x, y, z[::step])[2], x + y)
    broadcast = np.broadcast_to(np.float32(3), x.shape)
    same(agree(add, 3, x, broadcast, z[: x.size])[2], x + 3)


@xetile.kernel
def affine(X, Y, R: constexpr, C: constexpr):
    r, c = xetile.program_id(0) * R, xetile.program_id(1) * C
    v = xetile.load_tile(xetile.init_tile(X, [r, c], (R, C)))
    xetile.store_tile(v * 3.0 - 1.0, xetile.init_tile(Y, [r, c], (R, C)))


@pytest.mark.parametrize("tile", [(1, 16), (16, 1), (17, 100), (3, 257), (100, 2)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_tiles_of_any_extent_and_layout(tile: Any, layout: str) -> None:
    x = small_integers(np.random.default_rng(0), 35, 41)
    grid = (-(-35 // tile[0]), -(-41 // tile[1]))
    out = launch(affine, grid, laid_out(x, layout), 0 * x, R=tile[0], C=tile[1])
    same(out[1], x * 3 - 1)
    out = launch(affine, grid, x, laid_out(0 * x, layout), R=tile[0], C=tile[1])
    same(out[1], x * 3 - 1)


@xetile.kernel
def broadcasts(X, Row, Column, Y, R: constexpr, C: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (R, C)))
    row = xetile.load_tile(xetile.init_tile(Row, [0], (C,)))
    column = xetile.load_tile(xetile.init_tile(Column, [0], (R,)))
    one = xetile.load_tile(xetile.init_tile(X, [0, 0], (1, 1)))
    down = xetile.tile_broadcast(row[None, :] * 2.0, [0], (R, C))
    out = v * row + column[:, None] - down + one + column[:, None] * row
    xetile.store_tile(out, xetile.init_tile(Y, [0, 0], (R, C)))


@pytest.mark.parametrize("shape", [(1, 1), (1, 37), (37, 1), (9, 37), (37, 9)])
def test_rank_1_and_rank_2_broadcasting(shape: Any) -> None:
    rng = np.random.default_rng(0)
    x, row = small_integers(rng, *shape), small_integers(rng, shape[1])
    column = small_integers(rng, shape[0])
    out = agree(broadcasts, 1, x, row, column, 0 * x, R=shape[0], C=shape[1])
    c = column[:, None]
    same(out[3], x * row + c - 2 * row + x[0, 0] + c * row)


@xetile.kernel
def transposed(X, Y, R: constexpr, C: constexpr):
    r, c = xetile.program_id(0) * R, xetile.program_id(1) * C
    v = xetile.load_tile(xetile.init_tile(X, [r, c], (R, C)))
    xetile.store_tile((v + v).T, xetile.init_tile(Y, [c, r], (C, R)))


@pytest.mark.parametrize("tile", [(8, 17), (16, 16), (1, 41), (35, 1), (64, 64)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16, np.int8, np.float64])
def test_transposes(tile: Any, dtype: Any) -> None:
    x = small_integers(np.random.default_rng(0), 35, 41, dtype=dtype)
    grid = (-(-35 // tile[0]), -(-41 // tile[1]))
    y = np.zeros((41, 35), dtype)
    same(launch(transposed, grid, x, y, R=tile[0], C=tile[1])[1], (x + x).T)


@xetile.kernel
def integers(X, Y, Z, C: constexpr):
    a = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, C)))
    b = xetile.load_tile(xetile.init_tile(Y, [0, 0], (4, C)))
    out = (a // b) + (a % b) * 3 + xetile.abs(a) - (a & b) * (a | b) ^ ~b
    out = out + (a >> 1) + (b << 2) + xetile.minimum(a, b) - xetile.maximum(a, 3)
    out = xetile.where(a < b, out, -out) + xetile.where(a != b, a, b)
    xetile.store_tile(out, xetile.init_tile(Z, [0, 0], (4, C)))


SIGNED = (np.int8, np.int16, np.int32, np.int64)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
def test_integer_arithmetic(dtype: Any) -> None:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    x = rng.integers(info.min, info.max, (4, 37), dtype, endpoint=True)
    y = rng.integers(info.min, info.max, (4, 37), dtype, endpoint=True)
    x[0, :4], y[0, :4] = info.min, [info.max, 1, 2, 3]
    y[1] = rng.integers(1, 7, 37)
    y[y == 0] = 1
    if dtype in SIGNED:
        y[1] *= rng.choice([-1, 1], 37).astype(dtype)
        y[0, 1] = -1  # INT_MIN // -1 wraps
    with np.errstate(over="ignore"):
        one = np.array(1, dtype)
        e = (x // y) + (x % y) * dtype(3) + np.where(x < 0, -x, x) - (x & y) * (x | y)
        e = e ^ ~y
        e = e + (x >> one) + (y << dtype(2)) + np.minimum(x, y)
        e = e - np.maximum(x, dtype(3))
        e = np.where(x < y, e, -e) + np.where(x != y, x, y)
    same(agree(integers, 1, x, y, 0 * x, C=40)[2], e)


@xetile.kernel
def divided(X, Y, Q, R, C: constexpr):
    a = xetile.load_tile(xetile.init_tile(X, [0], (C,)))
    b = xetile.load_tile(xetile.init_tile(Y, [0], (C,)))
    xetile.store_tile(a // b, xetile.init_tile(Q, [0], (C,)))
    xetile.store_tile(a % b, xetile.init_tile(R, [0], (C,)))


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
def test_division_by_zero_gives_zero(dtype: Any) -> None:
    x = np.arange(-10, 27).astype(dtype)
    y = np.zeros(37, dtype)
    y[::2] = 3
    expected = np.zeros_like(x), np.zeros_like(x)
    expected[0][::2], expected[1][::2] = x[::2] // 3, x[::2] % 3
    out = agree(divided, 1, x, y, 0 * x, 0 * x, C=64)
    same(out[2], expected[0])
    same(out[3], expected[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, BF16])
def test_float_division_floors(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-40, 40, 37).astype(dtype)
    y = (rng.integers(1, 9, 37) * rng.choice([-1, 1], 37)).astype(dtype)
    out = agree(divided, 1, x, y, 0 * x, 0 * x, C=37)
    same(out[2], np.floor(x.astype(np.float64) / y.astype(np.float64)).astype(dtype))
    same(out[3], (x.astype(np.float64) % y.astype(np.float64)).astype(dtype))


@xetile.kernel
def scalar_integers(Y, a, b):
    v = xetile.zeros((1, 4), i64)
    xetile.store_tile(v + a // b, xetile.init_tile(Y, [0, 0], (1, 4)))
    xetile.store_tile(v + a % b, xetile.init_tile(Y, [1, 0], (1, 4)))
    xetile.store_tile(v + min(a, b) * 2 - abs(b), xetile.init_tile(Y, [2, 0], (1, 4)))


@pytest.mark.parametrize("a", [-7, 0, 7, 2**40 + 3])
@pytest.mark.parametrize("b", [-3, 1, 5])
def test_scalar_integers(a: int, b: int) -> None:
    out = agree(scalar_integers, 1, np.zeros((3, 4), np.int64), a, b)
    same(
        out[0],
        np.array([[a // b], [a % b], [min(a, b) * 2 - abs(b)]])
        + np.zeros((1, 4), np.int64),
    )


@xetile.kernel
def narrow_steps(X, Y, Z, C: constexpr):
    a = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, C)))
    b = xetile.load_tile(xetile.init_tile(Y, [0, 0], (4, C)))
    v = (a * b + a) / (b - 7.5) - xetile.fma(a, b, b)
    v = xetile.where(a < b, v, -v) + xetile.maximum(a, b) * 0.3
    xetile.store_tile(xetile.sqrt(xetile.abs(v)), xetile.init_tile(Z, [0, 0], (4, C)))


@pytest.mark.parametrize("dtype", [np.float16, BF16])
def test_narrow_floats_are_rounded_once_for_each_operation(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((4, 133)).astype(dtype) for _ in range(2))

    def wide(v: Any) -> Any:
        return v.astype(np.float32)

    fused = (wide(x).astype(np.float64) * wide(y) + wide(y)).astype(np.float32)
    v = (wide((wide(x) * wide(y)).astype(dtype)) + wide(x)).astype(dtype)
    v = (wide(v) / wide((wide(y) - np.float32(7.5)).astype(dtype))).astype(dtype)
    v = (wide(v) - wide(fused.astype(dtype))).astype(dtype)
    best = (wide(np.maximum(x, y)) * wide(np.array(0.3, dtype))).astype(dtype)
    v = (wide(np.where(x < y, v, -v)) + wide(best)).astype(dtype)
    expected = np.sqrt(abs(wide(v))).astype(dtype)
    same(agree(narrow_steps, 1, x, y, 0 * x, C=133)[2], expected)


@xetile.kernel
def converted(X, Y, C: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0], (C,)))
    xetile.store_tile(v.to(Y.dtype), xetile.init_tile(Y, [0], (C,)))


FLOATS = (np.float32, np.float64, np.float16, BF16)


@pytest.mark.parametrize("to", FLOATS)
@pytest.mark.parametrize("source", FLOATS)
def test_conversions_among_floats(source: Any, to: Any) -> None:
    rng = np.random.default_rng(0)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-7, 65519.0, 65520.0, 3.0e38]
    # Ties of f16 and bf16, and values just beside them that f32 cannot tell apart.
    ties = [1 + 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 2.0**-25, 3 * 2.0**-25]
    near = [t * (1 + s * 2.0**-40) for t in ties for s in (-1, 1)]
    values = [*special, *ties, *near, *(rng.standard_normal(50) * 100)]
    with np.errstate(over="ignore"):
        x = np.array(values).astype(source)
        expected = exactly(x, to)
    same(agree(converted, 1, x, np.zeros(x.size, to), C=x.size)[1], expected)


def exactly(x: Any, to: Any) -> Any:
    """One rounding to nearest even; ml_dtypes goes from f64 through f32."""
    if to is not BF16 or x.dtype != np.float64:
        return x.astype(to)
    near = x.astype(np.float32)
    bits = near.view(np.int32)
    back = near.astype(np.float64)
    bits = np.where(abs(back) > abs(x), bits - 1, bits)
    bits = np.where((back != x) & ~np.isnan(x), bits | 1, bits)
    return bits.astype(np.int32).view(np.float32).astype(BF16)


INTS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64)


@pytest.mark.parametrize("to", [*FLOATS, *INTS, np.bool_])
@pytest.mark.parametrize("source", [*INTS, np.bool_])
def test_conversions_from_integers(source: Any, to: Any) -> None:
    rng = np.random.default_rng(0)
    if source is np.bool_:
        x = rng.integers(0, 2, 37).astype(bool)
    else:
        info = np.iinfo(source)
        x = rng.integers(info.min, info.max, 37, source, endpoint=True)
        x[:3] = [info.min, info.max, 0]
        x[20:] = rng.integers(0, 100, 17)
    if to is BF16 and source in (np.int32, np.uint32):
        expected = exactly(x.astype(np.float64), BF16)
    elif to is BF16:
        if source is np.int64:
            x = x % 2**24
        expected = x.astype(np.float32).astype(BF16)
    else:
        with np.errstate(over="ignore"):
            expected = x.astype(to)
    same(agree(converted, 1, x, np.zeros(37, to), C=37)[1], expected)


@pytest.mark.parametrize("to", INTS)
@pytest.mark.parametrize("source", FLOATS)
def test_floats_to_integers_truncate(source: Any, to: Any) -> None:
    info = np.iinfo(to)
    x = np.linspace(max(-120, info.min), 120, 37).astype(source)
    same(agree(converted, 1, x, np.zeros(37, to), C=37)[1], x.astype(to))


@xetile.kernel
def functions(X, Y, C: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0], (C,)))
    a = xetile.exp(v) + xetile.log(xetile.abs(v) + 1.0) * xetile.sin(v)
    b = xetile.tanh(v) * xetile.erf(v) + xetile.sigmoid(v) - xetile.cos(v)
    c = xetile.exp2(v) / xetile.log2(v * v + 2.0) + xetile.rsqrt(v * v + 0.5)
    d = xetile.floor(v) + xetile.ceil(v * 2.0) - xetile.round(v * 0.5)
    xetile.store_tile(a + b + c + d, xetile.init_tile(Y, [0], (C,)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions(dtype: Any) -> None:
    x = np.linspace(-3, 3, 101).astype(dtype)
    w = x.astype(np.float64)
    a = np.exp(w) + np.log(abs(w) + 1) * np.sin(w)
    b = np.tanh(w) * np.array([erf(t) for t in w]) + 1 / (1 + np.exp(-w)) - np.cos(w)
    c = np.exp2(w) / np.log2(w * w + 2) + 1 / np.sqrt(w * w + 0.5)
    d = np.floor(x) + np.ceil(x * 2) - np.round(x * dtype(0.5))
    out = launch(functions, 1, x, 0 * x, C=101)[1]
    # Some 20 terms, none above e**3, each within 16 ulp.
    unit = np.finfo(dtype).eps / 2
    assert (abs(out - (a + b + c + d)) <= 20 * 32 * unit * 21).all()


@xetile.kernel
def masks(X, Y, M, Z, C: constexpr):
    a = xetile.load_tile(xetile.init_tile(X, [0, 0], (3, C)))
    b = xetile.load_tile(xetile.init_tile(Y, [0, 0], (3, C)))
    m = xetile.load_tile(xetile.init_tile(M, [0, 0], (3, C)))
    less = (a < b) & ~m | (a == 2.0) ^ m
    xetile.store_tile(less, xetile.init_tile(M, [0, 0], (3, C)))
    xetile.store_tile(
        xetile.where(less, a, b * 2.0), xetile.init_tile(Z, [0, 0], (3, C))
    )


def test_masks_in_values_and_in_memory() -> None:
    rng = np.random.default_rng(0)
    x, y = small_integers(rng, 3, 37), small_integers(rng, 3, 37)
    m = rng.integers(0, 2, (3, 37)).astype(bool)
    out = agree(masks, 1, x, y, m, 0 * x, C=40)
    less = (x < y) & ~m | (x == 2) ^ m
    same(out[2], less)
    same(out[3], np.where(less, x, y * 2))


@xetile.kernel
def mask_reductions(M, Y, Z):
    m = xetile.load_tile(xetile.init_tile(M, [0, 0], (5, 37)))
    some = xetile.tile_reduce("or", m, [1])
    every = xetile.tile_reduce("and", m, [0])
    xetile.store_tile(some.to(i32), xetile.init_tile(Y, [0, 0], (5, 1)))
    xetile.store_tile(every.to(i32), xetile.init_tile(Z, [0, 0], (1, 37)))


def test_masks_are_reduced() -> None:
    m = np.random.default_rng(0).integers(0, 8, (5, 37)) < 7
    m[3] = False
    m[3, 20] = True
    m[4] = False
    out = agree(
        mask_reductions, 1, m, np.zeros((5, 1), np.int32), np.zeros((1, 37), np.int32)
    )
    same(out[1], m.any(1, keepdims=True).astype(np.int32))
    same(out[2], m.all(0, keepdims=True).astype(np.int32))


@xetile.kernel
def promoted(X, Y, Z, C: constexpr):
    a = xetile.load_tile(xetile.init_tile(X, [0], (C,)))
    b = xetile.load_tile(xetile.init_tile(Y, [0], (C,)))
    xetile.store_tile((a + b * 2).to(Z.dtype), xetile.init_tile(Z, [0], (C,)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.float32, np.float64),
        (np.float16, np.float32),
        (BF16, np.float32),
        (np.int32, np.float32),
        (np.int8, np.int32),
        (np.uint8, np.int16),
        (np.int32, np.float16),
        (np.int64, np.float64),
    ],
)
def test_vectors_of_two_types(one: Any, other: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = small_integers(rng, 37, dtype=one), small_integers(rng, 37, dtype=other)
    if one is np.uint8:
        x = abs(x)
    out = agree(promoted, 1, x, y, np.zeros(37), C=40)
    same(out[2], x.astype(np.float64) + 2 * y.astype(np.float64))


@xetile.kernel
def constants_of(Y, C: constexpr, DTYPE: constexpr, VALUE: constexpr):
    v = xetile.full((C,), VALUE, DTYPE)
    xetile.store_tile(v, xetile.init_tile(Y, [0], (C,)))


@pytest.mark.parametrize(
    ("dtype", "array", "values"),
    [
        (f32, np.float32, (0.1, np.inf, -np.inf, np.nan, -0.0, 1e-40, 3.4e38)),
        (f64, np.float64, (0.1, np.inf, np.nan, -0.0, 5e-324)),
        (f16, np.float16, (0.1, np.inf, np.nan, -0.0, 65504.0, 6e-8)),
        (bf16, BF16, (0.1, np.inf, -np.inf, np.nan, -0.0, 1.0039, 3.38e38)),
        (i8, np.int8, (-128, 127)),
        (i16, np.int16, (-32768, 5)),
        (i32, np.int32, (-(2**31), 2**31 - 1)),
        (i64, np.int64, (-(2**63), 2**63 - 1)),
    ],
)
def test_constants(dtype: Any, array: Any, values: Any) -> None:
    for value in values:
        out = agree(
            constants_of, 1, np.zeros(20, array), C=20, DTYPE=dtype, VALUE=value
        )
        same(out[0], np.full(20, value, array))


@xetile.kernel
def reshaped(X, Y, R: constexpr, C: constexpr, P: constexpr, Q: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (R, C)))
    w = (v + 1.0).reshape((P, Q)) * 2.0
    xetile.store_tile(w + w.sum(1, keepdims=True), xetile.init_tile(Y, [0, 0], (P, Q)))


@pytest.mark.parametrize(
    "shapes",
    [(6, 20, 15, 8), (1, 100, 100, 1), (100, 1, 1, 100), (17, 6, 2, 51), (9, 9, 81, 1)],
)
def test_reshapes(shapes: Any) -> None:
    r, c, p, q = shapes
    x = small_integers(np.random.default_rng(0), r, c)
    y = (x + 1).reshape(p, q) * 2
    out = agree(reshaped, 1, x, 0 * y, R=r, C=c, P=p, Q=q)
    same(out[1], y + y.sum(1, keepdims=True))


@xetile.kernel
def numbered(Y, R: constexpr, C: constexpr):
    rows, cols = xetile.arange(R)[:, None], xetile.arange(5, 5 + C)
    xetile.store_tile(rows * 100 + cols, xetile.init_tile(Y, [0, 0], (R, C)))


def test_aranges() -> None:
    expected = np.arange(9)[:, None] * 100 + np.arange(5, 42)
    out = agree(numbered, 1, np.zeros((9, 37), np.int32), R=9, C=37)
    same(out[0], expected.astype(np.int32))

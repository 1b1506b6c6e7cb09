"""Reductions and the kernels made of them, for extents that fill no vector."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launching import agree, launch, same, small_integers

from xetl import xetile
from xetl.xetile import constexpr, f32

pytestmark = pytest.mark.usefixtures("anywhere")
SHAPES = [(1, 1), (1, 17), (17, 1), (3, 100), (5, 64), (7, 257), (33, 8)]
KINDS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@xetile.kernel
def reduced(X, Y, R: constexpr, C: constexpr, KIND: constexpr, DIM: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (R, C)))
    out = xetile.tile_reduce(KIND, v, [DIM])
    xetile.store_tile(out, xetile.init_tile(Y, [0, 0], (1, C) if DIM == 0 else (R, 1)))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dim", [0, 1])
def test_reductions_of_either_dim(shape: Any, dim: int) -> None:
    rng = np.random.default_rng(0)
    for kind, function in KINDS.items():
        x = small_integers(rng, *shape)
        if kind == "mul":
            # Powers of two, few of them not 1: products are exact.
            x = np.where(abs(x) == 4, x / 2, np.copysign(1, x)).astype(np.float32)
        expected = function.reduce(x, axis=dim, keepdims=True)
        constants = {"R": shape[0], "C": shape[1], "KIND": kind, "DIM": dim}
        out = agree(reduced, 1, x, np.zeros_like(expected), **constants)[1]
        same(out, expected)


@xetile.kernel
def reduced_in_part(
    X, Rows, Columns, All, R: constexpr, C: constexpr, KIND: constexpr, PAD: constexpr
):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (R, C)), padding=PAD)
    v = v * v if KIND == "mul" else v
    kind = "add" if KIND == "mul" else KIND
    rows = xetile.tile_reduce(kind, v, [1])
    xetile.store_tile(rows, xetile.init_tile(Rows, [0, 0], (R, 1)))
    columns = xetile.tile_reduce(kind, v, [0])
    xetile.store_tile(columns, xetile.init_tile(Columns, [0, 0], (1, C)))
    both = xetile.tile_reduce(kind, v, [0, 1])
    xetile.store_tile(both, xetile.init_tile(All, [0, 0], (1, 1)))


@pytest.mark.parametrize("rows", [1, 4, 6])
def test_a_reduction_ends_where_its_load_does(rows: int) -> None:
    """Of 1 to 130 columns, in tiles that are wider: padding counts as it always did."""
    rng = np.random.default_rng(0)
    width = 272  # of a tile whose rows are reduced before its columns
    for columns in range(131):
        for kind, pad in (("add", 0.0), ("mul", 0.0), ("max", -np.inf), ("max", 1.0)):
            x = small_integers(rng, rows - (columns % 3 == 0 and rows > 1), columns)
            whole = np.full((rows, width), pad, np.float32)
            whole[: len(x), :columns] = x
            if kind == "mul":
                whole *= whole
            function = KINDS["add" if kind == "mul" else kind].reduce
            out = [np.ones(s, np.float32) for s in ((rows, 1), (1, width), (1, 1))]
            given = {"R": rows, "C": width, "KIND": kind, "PAD": pad}
            _, *out = launch(reduced_in_part, 1, x, *out, **given)
            same(out[0], function(whole, axis=1, keepdims=True))
            same(out[1], function(whole, axis=0, keepdims=True))
            same(out[2], function(whole, axis=None, keepdims=True))


@xetile.kernel
def of_two(X, Y, Rows, Columns, S, R: constexpr, C: constexpr, PAD: constexpr):
    x = xetile.load_tile(xetile.init_tile(X, [0, 0], (R, C)), padding=PAD)
    y = xetile.load_tile(xetile.init_tile(Y, [0], (C,)))
    s = xetile.load_tile(xetile.init_tile(S, [0, 0], (R, 1)))
    products = x.to(f32) * y.to(f32)
    xetile.store_tile(products.sum(1), xetile.init_tile(Rows[0], [0], (R,)))
    xetile.store_tile(products.sum(0), xetile.init_tile(Columns, [0], (C,)))
    scaled = (products * s).sum(1)  # of padding it is NaN where s is not finite
    xetile.store_tile(scaled, xetile.init_tile(Rows[1], [0], (R,)))
    differences = ((x.to(f32) - y.to(f32)) * x.to(f32)).sum(1)
    xetile.store_tile(differences, xetile.init_tile(Rows[2], [0], (R,)))


@pytest.mark.parametrize("pad", [0.0, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
@pytest.mark.parametrize(("n", "m"), [(3, 100), (100, 3), (70, 70), (0, 17), (1, 0)])
def test_a_sum_of_products_ends_with_the_longer_load(
    dtype: Any, n: int, m: int, pad: float
) -> None:
    """What lies outside of one only counts: an infinity times 0 is NaN."""
    rng = np.random.default_rng(n)
    rows, width = 4, 272
    x, y = (small_integers(rng, *s).astype(dtype) for s in ((rows, n), (m,)))
    scale = np.array([[1], [np.inf], [-2], [np.nan]], np.float32)
    if dtype is np.float32:
        x[1:2, -1:], y[-1:] = np.inf, -np.inf
    a, b = np.full((rows, width), pad, np.float32), np.zeros(width, np.float32)
    a[:, :n], b[:m] = x, y
    out = [np.ones(s, np.float32) for s in ((3, rows), (width,))]
    given = {"R": rows, "C": width, "PAD": dtype(pad)}
    _, _, sums, columns, _ = launch(of_two, 1, x, y, *out, scale, **given)
    with np.errstate(invalid="ignore"):
        same(sums[0], (a * b).sum(1))
        same(columns, (a * b).sum(0))
        same(sums[1], (a * b * scale).sum(1))
        same(sums[2], ((a - b) * a).sum(1))


@xetile.kernel
def exponentials(
    X, E, Sums, R: constexpr, C: constexpr, PAD: constexpr, BOTH: constexpr
):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (R, C)), padding=PAD)
    e = xetile.exp(v - v.max(1, keepdims=True)) if BOTH else xetile.exp(v)
    xetile.store_tile(e.sum(1, keepdims=True), xetile.init_tile(Sums, [0, 0], (R, 1)))
    if BOTH:
        xetile.store_tile(e, xetile.init_tile(E, [0, 0], (R, C)))


@pytest.mark.parametrize("width", [272, 256, 100])
@pytest.mark.parametrize("pad", [-np.inf, 0.0, 2.0])
def test_functions_of_padding(width: int, pad: float) -> None:
    """They are in the sums, and in what is stored, however many columns there are."""
    rng = np.random.default_rng(0)
    for columns in range(0, 100, 1 if width == 272 else 7):
        rows = 1 + columns % 4
        x = rng.standard_normal((rows, columns)).astype(np.float32)
        whole = np.full((rows, width), pad)
        whole[:, :columns] = x
        for both in (False, True):
            with np.errstate(invalid="ignore"):  # a row of -inf is NaN
                e = np.exp(whole - (whole.max(1, keepdims=True) if both else 0))
            out = np.ones((rows, width), np.float32), np.ones((rows, 1), np.float32)
            given = {"R": rows, "C": width, "PAD": pad, "BOTH": both}
            _, kept, sums = launch(exponentials, 1, x, *out, **given)
            np.testing.assert_allclose(sums, e.sum(1, keepdims=True), rtol=2e-6)
            np.testing.assert_allclose(kept, e if both else 1.0, rtol=2e-6)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.float64])
@pytest.mark.parametrize("dim", [0, 1])
def test_reductions_of_other_types(dtype: Any, dim: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0 if dtype is np.uint8 else -100, 120, (9, 37)).astype(dtype)
    kinds = dict(KINDS)
    if dtype is not np.float64:
        kinds |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    else:
        x = x / 64
    for kind, function in kinds.items():
        if kind == "mul" and dtype is np.float64:
            continue
        expected = (
            function.reduce(x, axis=dim, keepdims=True, dtype=dtype)
            if kind in ("add", "mul")
            else function.reduce(x, axis=dim, keepdims=True)
        )
        constants = {"R": 9, "C": 37, "KIND": kind, "DIM": dim}
        same(agree(reduced, 1, x, np.zeros_like(expected), **constants)[1], expected)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("dim", [0, 1])
def test_narrow_sums_are_rounded_once(dtype: Any, dim: int) -> None:
    x = np.random.default_rng(0).integers(-64, 65, (33, 41)).astype(dtype)
    expected = x.astype(np.float32).sum(dim, keepdims=True).astype(dtype)
    constants = {"R": 33, "C": 41, "KIND": "add", "DIM": dim}
    same(agree(reduced, 1, x, np.zeros_like(expected), **constants)[1], expected)


def test_maxima_propagate_nan() -> None:
    x = small_integers(np.random.default_rng(0), 5, 70)
    x[1, 3], x[2, 69], x[3] = np.nan, np.nan, -np.inf
    for kind in ("max", "min"):
        expected = KINDS[kind].reduce(x, axis=1, keepdims=True)
        constants = {"R": 5, "C": 70, "KIND": kind, "DIM": 1}
        same(agree(reduced, 1, x, np.zeros_like(expected), **constants)[1], expected)


@xetile.kernel
def all_of_it(X, Y, R: constexpr, C: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (R, C)))
    s = v.sum()
    m = v.max()
    w = xetile.zeros((1, 4)) + s + xetile.tile_reduce("add", v, [0, 1]) * 2.0
    xetile.store_tile(w * 3.0 + m, xetile.init_tile(Y, [0, 0], (1, 4)))


@pytest.mark.parametrize("shape", SHAPES)
def test_reductions_to_one_element(shape: Any) -> None:
    x = small_integers(np.random.default_rng(0), *shape)
    expected = np.full((1, 4), 9 * x.sum() + x.max(), np.float32)
    same(agree(all_of_it, 1, x, 0 * expected, R=shape[0], C=shape[1])[1], expected)


@xetile.kernel
def softmax(X, Y, R: constexpr, C: constexpr):
    r = xetile.program_id(0) * R
    x = xetile.load_tile(xetile.init_tile(X, [r, 0], (R, C)), padding=-xetile.inf)
    e = xetile.exp(x - x.max(1, keepdims=True))
    xetile.store_tile(e / e.sum(1)[:, None], xetile.init_tile(Y, [r, 0], (R, C)))


@pytest.mark.parametrize("tile", [(1, 128), (4, 100), (5, 77), (3, 300), (16, 96)])
def test_softmax(tile: Any) -> None:
    x = np.random.default_rng(0).standard_normal((33, 77)).astype(np.float32)
    out = launch(softmax, -(-33 // tile[0]), x, 0 * x, R=tile[0], C=tile[1])[1]
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    # exp within 4 ulp of an argument off by one rounding; 77 additions; a division.
    bound = (8 + 77 + 2 + abs(x).max() * 2) * 2.0**-24
    assert (abs(out - e / e.sum(1, keepdims=True)) <= bound).all()


@xetile.kernel
def layer_norm(X, W, B, Y, M, S, eps, R: constexpr, C: constexpr):
    r = xetile.program_id(0) * R
    n = X.shape[1]
    x = xetile.load_tile(xetile.init_tile(X, [r, 0], (R, C)))
    mean = x.sum(1) / n
    d = xetile.where(xetile.arange(C)[None, :] < n, x - mean[:, None], 0.0)
    rstd = xetile.rsqrt((d * d).sum(1) / n + eps)
    w = xetile.load_tile(xetile.init_tile(W, [0], (C,)))
    b = xetile.load_tile(xetile.init_tile(B, [0], (C,)))
    y = d * rstd[:, None]
    xetile.store_tile(y * w + b, xetile.init_tile(Y, [r, 0], (R, C)))
    xetile.store_tile(mean, xetile.init_tile(M, [r], (R,)))
    xetile.store_tile(rstd, xetile.init_tile(S, [r], (R,)))


@xetile.kernel
def layer_norm_backward(X, W, G, M, S, DX, DW, DB, R: constexpr, C: constexpr):
    """One program: dx row by row, dw and db over all rows."""
    n = X.shape[1]
    w = xetile.load_tile(xetile.init_tile(W, [0], (C,)))
    inside = xetile.arange(C)[None, :] < n
    dw = xetile.zeros((C,))
    db = xetile.zeros((C,))
    for r in range(0, X.shape[0], R):
        x = xetile.load_tile(xetile.init_tile(X, [r, 0], (R, C)))
        g = xetile.load_tile(xetile.init_tile(G, [r, 0], (R, C)))
        mean = xetile.load_tile(xetile.init_tile(M, [r], (R,)))[:, None]
        rstd = xetile.load_tile(xetile.init_tile(S, [r], (R,)))[:, None]
        xhat = xetile.where(inside, (x - mean) * rstd, 0.0)
        wg = w * g
        c1 = (xhat * wg).sum(1, keepdims=True) / n
        c2 = wg.sum(1, keepdims=True) / n
        dx = (wg - (xhat * c1 + c2)) * rstd
        xetile.store_tile(dx, xetile.init_tile(DX, [r, 0], (R, C)))
        dw = dw + (g * xhat).sum(0)
        db = db + g.sum(0)
    xetile.store_tile(dw, xetile.init_tile(DW, [0], (C,)))
    xetile.store_tile(db, xetile.init_tile(DB, [0], (C,)))


@pytest.mark.parametrize("tile", [(4, 96), (1, 77), (5, 100)])
def test_layer_norm_forward_and_backward(tile: Any) -> None:
    rng = np.random.default_rng(0)
    x, g = (rng.standard_normal((33, 77)).astype(np.float32) for _ in range(2))
    w, b = (rng.standard_normal(77).astype(np.float32) for _ in range(2))
    column, row = np.zeros(33, np.float32), np.zeros(77, np.float32)
    r, c = tile
    _, _, _, y, mean, rstd, _ = launch(
        layer_norm, -(-33 // r), x, w, b, 0 * x, column, column.copy(), 1e-5, R=r, C=c
    )
    wide = x.astype(np.float64)
    m, s = wide.mean(1), 1 / np.sqrt(wide.var(1) + 1e-5)
    hat = (wide - m[:, None]) * s[:, None]
    # A row has 77 elements: each sum is off by at most 77 roundings of its size.
    np.testing.assert_allclose(mean, m, atol=77 * 2.0**-24 * abs(x).max())
    np.testing.assert_allclose(rstd, s, rtol=100 * 2.0**-24)
    np.testing.assert_allclose(y, hat * w + b, atol=400 * 2.0**-24 * abs(w).max())
    dx, dw, db = launch(
        layer_norm_backward, 1, x, w, g, mean, rstd, 0 * x, row, row.copy(), R=r, C=c
    )[5:]
    wg = g.astype(np.float64) * w
    c1, c2 = (hat * wg).mean(1, keepdims=True), wg.mean(1, keepdims=True)
    exact = (wg - hat * c1 - c2) * s[:, None]
    np.testing.assert_allclose(dx, exact, atol=1000 * 2.0**-24 * abs(wg).max())
    np.testing.assert_allclose(dw, (g * hat).sum(0), atol=400 * 2.0**-24 * 10)
    np.testing.assert_allclose(db, g.sum(0), atol=40 * 2.0**-24 * 33)


@xetile.kernel
def cross_entropy(L, T, P, Loss, R: constexpr, C: constexpr):
    r = xetile.program_id(0) * R
    x = xetile.load_tile(xetile.init_tile(L, [r, 0], (R, C)), padding=-xetile.inf)
    t = xetile.load_tile(xetile.init_tile(T, [r], (R,)))
    m = x.max(1, keepdims=True)
    e = xetile.exp(x - m)
    s = e.sum(1, keepdims=True)
    hot = xetile.where(xetile.arange(C)[None, :] == t[:, None], 1.0, 0.0)
    right = xetile.where(hot > 0.5, x, 0.0).sum(1, keepdims=True)
    xetile.store_tile(e / s - hot, xetile.init_tile(P, [r, 0], (R, C)))
    loss = xetile.log(s) + m - right
    xetile.store_tile(loss.reshape((R,)), xetile.init_tile(Loss, [r], (R,)))


def test_cross_entropy() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 10)).astype(np.float32)
    t = rng.integers(0, 10, 50).astype(np.int32)
    out = launch(cross_entropy, 4, x, t, 0 * x, np.zeros(50, np.float32), R=16, C=16)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    np.testing.assert_allclose(out[2], p - np.eye(10)[t], atol=40 * 2.0**-24)
    np.testing.assert_allclose(out[3], -np.log(p[np.arange(50), t]), atol=2.0**-20)


@xetile.kernel
def column_sums(X, Y, R: constexpr, C: constexpr):
    c = xetile.program_id(0) * C
    acc = xetile.zeros((C,))
    t = xetile.init_tile(X, [0, c], (R, C))
    for _ in range(0, X.shape[0], R):
        acc = acc + xetile.load_tile(t).sum(0)
        t = xetile.update_tile_offset(t, [R, 0])
    xetile.store_tile(acc, xetile.init_tile(Y, [c], (C,)))


@pytest.mark.parametrize("order", ["C", "F"])
def test_column_sums(order: Any) -> None:
    x = np.array(small_integers(np.random.default_rng(0), 33, 77), order=order)
    out = agree(column_sums, 3, x, np.zeros(77, np.float32), R=8, C=30)
    same(out[1], x.sum(0))


@xetile.kernel
def many_reductions(X, Y, R: constexpr, C: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (R, C)))
    a = v * 2.0 + 1.0
    rows = a.sum(1, keepdims=True)
    cols = a.max(0, keepdims=True)
    b = xetile.where(a > rows * 0.01, a, cols - a)
    again = b.sum(1, keepdims=True) + b.min(1, keepdims=True)
    xetile.store_tile(b + again - cols + rows, xetile.init_tile(Y, [0, 0], (R, C)))


@pytest.mark.parametrize("shape", [(3, 100), (9, 17), (20, 1), (1, 33)])
def test_values_reduced_both_ways_and_used_again(shape: Any) -> None:
    x = small_integers(np.random.default_rng(0), *shape)
    agree(many_reductions, 1, x, 0 * x, R=shape[0], C=shape[1])


@xetile.kernel
def arg_extrema(X, A, B, R: constexpr, C: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (R, C)))
    xetile.store_tile(v.argmax(1), xetile.init_tile(A, [0], (R,)))
    xetile.store_tile(v.argmin(0), xetile.init_tile(B, [0], (C,)))


def test_the_first_extremum_is_found() -> None:
    x = small_integers(np.random.default_rng(0), 9, 37)
    out = agree(
        arg_extrema, 1, x, np.zeros(9, np.int32), np.zeros(37, np.int32), R=9, C=37
    )
    same(out[1], x.argmax(1).astype(np.int32))
    same(out[2], x.argmin(0).astype(np.int32))


@xetile.kernel
def running_sum(X, Y, R: constexpr, C: constexpr, AXIS: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (R, C)))
    xetile.store_tile(xetile.cumsum(v, AXIS), xetile.init_tile(Y, [0, 0], (R, C)))


@pytest.mark.parametrize("shape", [(9, 37), (1, 100), (33, 1)])
@pytest.mark.parametrize("axis", [0, 1])
def test_cumulative_sums(shape: Any, axis: int) -> None:
    x = small_integers(np.random.default_rng(0), *shape)
    out = agree(running_sum, 1, x, 0 * x, R=shape[0], C=shape[1], AXIS=axis)
    same(out[1], np.cumsum(x, axis))


@xetile.kernel
def triangles(Y):
    i, j = xetile.program_id(0), xetile.program_id(1)
    for row in range(j):
        tile = xetile.init_tile(Y, [i * 128 + row, j * 16], (1, 16))
        xetile.store_tile(xetile.full((1, 16), 1.0, xetile.f32), tile)


def test_as_many_rows_as_the_number_of_the_program() -> None:
    """Enough programs for neighbours to be made one, which have other rows here."""
    y = np.zeros((128 * 64, 128 * 16), np.float32)
    (y,) = launch(triangles, (64, 128), y)
    blocks = y.reshape(64, 128, 128, 16)
    expected = np.tri(128, k=-1, dtype=np.float32).T
    assert (blocks == expected[None, :, :, None]).all()


@xetile.kernel
def picked(Table, Ids, Y, WIDTH: constexpr):
    row, columns = xetile.program_id(0), xetile.arange(WIDTH)
    Y[row, columns] = Table[Ids[row], columns]


def test_rows_by_index_end_where_an_array_does() -> None:
    rng = np.random.default_rng(0)
    for columns in range(1, 131):
        wide = columns + (columns % 3 - 1) * (columns > 2)  # of the result
        table, y = small_integers(rng, 9, columns), np.full((7, wide), 5, np.float32)
        ids = rng.integers(0, 9, 7)
        expected = np.zeros_like(y)
        both = min(wide, columns)
        expected[:, :both] = table[ids, :both]
        same(launch(picked, 7, table, ids, y, WIDTH=144)[2], expected)


@xetile.kernel
def largest_of_strips(X, Y, ROWS: constexpr, WIDTH: constexpr):
    column = xetile.program_id(0) * WIDTH
    largest = xetile.full((1, WIDTH), -xetile.inf, f32)
    for row in range(0, X.shape[0], ROWS):
        tile = xetile.init_tile(X, [row, column], (ROWS, WIDTH))
        v = xetile.load_tile(tile, padding=-xetile.inf)
        largest = xetile.maximum(largest, v.max(0, keepdims=True))
    xetile.store_tile(largest, xetile.init_tile(Y, [0, column], (1, WIDTH)))


@pytest.mark.parametrize("columns", [1, 64, 300, 1000, 5000])
@pytest.mark.parametrize("rows", [1, 65])
def test_strips_that_become_one_end_where_the_last_one_does(rows, columns):
    x = -np.abs(np.random.default_rng(0).standard_normal((rows, columns), np.float32))
    for programs in {1, -(-columns // 128)}:
        y = np.full((1, columns + 8), 7, np.float32)
        largest_of_strips[programs](x, y[:, :columns], 16, 128)
        end = min(columns, programs * 128)
        assert np.array_equal(y[0, :end], x[:, :end].max(0))
        assert (y[0, end:] == 7).all()


@xetile.kernel
def sum_of_each(X, Y, WIDTH: constexpr):
    row = xetile.program_id(0)
    v = xetile.load_tile(xetile.init_tile(X, [row, 0], (1, WIDTH)))
    xetile.store_tile(v.sum(1, keepdims=True), xetile.init_tile(Y, [row, 0], (1, 1)))


@pytest.mark.parametrize("columns", [3, 512, 777, 1008, 1024])
def test_sums_of_rows_begin_anywhere_in_a_line(columns):
    """Long rows go from one aligned vector to the next, if all of them begin alike."""
    numbers = np.random.default_rng(0).integers(-9, 9, 4 * columns + 17)
    numbers = numbers.astype(np.float32)
    for first in range(17):
        x = numbers[first : first + 4 * columns].reshape(4, columns)
        y = np.zeros((4, 1), np.float32)
        sum_of_each[4](x, y, 1024)
        assert np.array_equal(y, x.sum(1, keepdims=True))


@xetile.kernel
def numbers_of_each(X, Most, Least, ROWS: constexpr, WIDTH: constexpr):
    row = xetile.program_id(0) * ROWS
    tile = xetile.init_tile(X, [row, 0], (ROWS, WIDTH))
    v = xetile.load_tile(tile, padding=float("nan"))
    most, least = v.max(1, True, propagate_nan=False), v.min(1, True, False, False)
    xetile.store_tile(most, xetile.init_tile(Most, [row, 0], (ROWS, 1)))
    xetile.store_tile(least, xetile.init_tile(Least, [row, 0], (ROWS, 1)))


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("columns", [1, 8, 17, 130, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_numbers_among_nans(rows, columns, dtype):
    """NaN if there is nothing else, also where infinity is found."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((8, columns)).astype(dtype)
    x[rng.random(x.shape) < 0.4] = np.nan
    x[3:7], x[4, 0], x[5, -1] = np.nan, np.inf, -np.inf
    most, least = np.zeros((2, 8, 1), dtype)
    width = 1 << (columns - 1).bit_length()
    numbers_of_each[8 // rows](x, most, least, rows, width)
    assert np.array_equal(most[:, 0], np.fmax.reduce(x, 1), equal_nan=True)
    assert np.array_equal(least[:, 0], np.fmin.reduce(x, 1), equal_nan=True)


@xetile.kernel
def summed_of_kept(X, Y, IS_FUNCTION: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (1, 1024)))
    for _ in xetile.static_range(8):  # or it would be computed twice
        v = xetile.exp2(v) if IS_FUNCTION else v * v + 1.0
    put = xetile.init_tile(Y, [0, 0], (1, 1024))
    xetile.store_tile(v * v.sum(1, keepdims=True), put)


@pytest.mark.parametrize(("is_function", "sums"), [(True, 1), (False, 4)])
def test_functions_that_are_kept_go_one_vector_at_a_time(is_function, sums) -> None:
    x = np.zeros((1, 1024), np.float32)
    text = summed_of_kept.ir("loops", x, x.copy(), is_function, target="avx2")
    loops = text.split("iter_args(")[1:]
    kept = [each for each in loops if "vector.store" in each.partition("yield")[0]]
    assert kept[0].partition(")")[0].count("=") == sums

"""docs/language.md, section 2: tiles, memory, programs and maps."""

import ml_dtypes
import numpy as np
import pytest
from page import NUMPY, both, matrix, proves

from xetl import xetile
from xetl.errors import (
    CompileError,
    TileMapError,
    TileMapWarning,
    TileShapeError,
    TileTypeError,
)
from xetl.xetile import bf16, cdiv, constexpr, f32, i32, i64


def equal(found, expected):
    np.testing.assert_array_equal(found, np.asarray(expected).astype(found.dtype))


# Programs ---------------------------------------------------------------------------


@proves("program")
@both
def test_program_ids(backend):
    @xetile.kernel
    def kernel(OUT):
        x, y, z = xetile.program_id(0), xetile.program_id(1), xetile.program_id(axis=2)
        sizes = xetile.num_programs(0) * 100 + xetile.num_programs(1) * 10
        value = x + 10 * y + 100 * z + 1000 * (sizes + xetile.num_programs(2))
        row = (z * xetile.num_programs(1) + y) * xetile.num_programs(0) + x
        xetile.barrier()
        xetile.store_tile(
            xetile.full((1,), value, i64), xetile.init_tile(OUT, [row], 1)
        )

    out = np.zeros(24, np.int64)
    kernel[(2, 3, 4)](out, backend=backend)
    z, y, x = np.meshgrid(range(4), range(3), range(2), indexing="ij")
    equal(out, (x + 10 * y + 100 * z + 234000).ravel())


@proves("program")
@both
def test_subgroup_ids(backend):
    @xetile.kernel(subgroups=[2, 3], grid=2)
    def kernel(OUT):
        at = xetile.program_id(0) * 6 + xetile.subgroup_id()
        value = xetile.full((1,), xetile.subgroup_id(), i32)
        xetile.store_tile(value, xetile.init_tile(OUT, [at], (1,)))

    out = np.full(12, -1, np.int32)
    kernel(out, backend=backend)
    equal(out, [*range(6)] * 2)


# Tiles ------------------------------------------------------------------------------


@xetile.kernel(grid=1)
def copy(X, OUT, r, c, M: constexpr = 4, N: constexpr = 5, PAD: constexpr = 0):
    v = xetile.load_tile(xetile.init_tile(X, [r, c], (M, N)), padding=PAD)
    xetile.store_tile(v, xetile.init_tile(OUT, [0, 0], [M, N]))


def padded(X, r, c, shape, value):
    out = np.full(shape, value, X.dtype)
    for i, j in np.ndindex(*shape):
        if 0 <= r + i < X.shape[0] and 0 <= c + j < X.shape[1]:
            out[i, j] = X[r + i, c + j]
    return out


@proves("tiles")
@proves("tile memory")
@both
@pytest.mark.parametrize("layout", ["rows", "columns", "strided", "reversed"])
@pytest.mark.parametrize("at", [(0, 0), (5, 4), (-2, -3), (50, 2)])
def test_padding(layout, at, backend):
    X = matrix("f32", (14, 18))[::2, ::3]
    X = {
        "rows": np.ascontiguousarray(X),
        "columns": np.asfortranarray(X),
        "strided": X,
        "reversed": X[::-1, ::-1],
    }[layout]
    for value in (0, 7.5, -xetile.inf):
        out = np.zeros((4, 5), np.float32)
        copy(X, out, *at, PAD=value, backend=backend)
        equal(out, padded(X, *at, (4, 5), value))


@proves("tile memory")
@both
@pytest.mark.parametrize("dtype", list(NUMPY))
def test_every_dtype_is_loaded_and_stored(dtype, backend):
    X, out = matrix(dtype, (4, 5)), np.zeros((3, 4), NUMPY[dtype])
    copy(X, out, 0, 1, backend=backend)
    equal(out, X[:3, 1:])


@proves("tiles")
@both
def test_tiles_move(backend):
    @xetile.kernel(grid=1)
    def kernel(X, OUT, n):
        t = xetile.init_tile(X, [0, 0], (2, 3), order=[1, 0])
        t = xetile.update_tile_offset(t, [2, 0])
        t = xetile.update_tile_offset(tile=t, offsets=(n, 3))
        xetile.static_assert(t.shape == (2, 3) and t.dtype == f32 and t.ndim == 2)
        xetile.prefetch_tile(t)
        xetile.prefetch_tile(t, locality=1)
        o = xetile.update_tile_offset(xetile.init_tile(OUT, [4, 4], (2, 3)), [-4, -4])
        xetile.store_tile(value=xetile.load_tile(t), tile=o)

    X, out = matrix("f32", (8, 8)), np.zeros((2, 3), np.float32)
    kernel(X, out, 1, backend=backend)
    equal(out, X[3:5, 3:6])


@proves("tiles")
@both
def test_column_major_order_by_hand(backend):
    @xetile.kernel(grid=1)
    def kernel(X, OUT):
        t = xetile.init_tile(X, [1, 2], (2, 3), order=[0, 1])
        xetile.store_tile(xetile.load_tile(t), xetile.init_tile(OUT, [0, 0], (2, 3)))

    X, out = np.asfortranarray(matrix("f32", (8, 8))), np.zeros((2, 3), np.float32)
    kernel(X, out, backend=backend)
    equal(out, X[1:3, 2:5])


@proves("tiles")
@both
def test_addresses(backend):
    X, out = matrix("f32", (4, 6)), np.zeros((3, 4), np.float32)
    address_kernel(X.ctypes.data, out, 4, 6, backend=backend)
    equal(out, padded(X, 1, 1, (3, 4), 0))


@xetile.kernel(grid=1)
def address_kernel(P, OUT, m, n):
    t = xetile.init_tile(
        P, [1, 1], (3, 4), dtype=f32, base_shape=[m, n], base_strides=[n, 1]
    )
    xetile.store_tile(xetile.load_tile(t), xetile.init_tile(OUT, [0, 0], (3, 4)))


@proves("rule: exact dtype and shape of stores")
def test_stores_are_exact():
    @xetile.kernel(grid=1)
    def dtypes(OUT):
        v = xetile.zeros((2, 2), bf16)
        xetile.store_tile(v, xetile.init_tile(OUT, [0, 0], (2, 2)))

    @xetile.kernel(grid=1)
    def shapes(OUT):
        v = xetile.zeros((1, 2), f32)
        xetile.store_tile(v, xetile.init_tile(OUT, [0, 0], (2, 2)))

    out = np.zeros((2, 2), np.float32)
    with pytest.raises(TileTypeError, match="store bf16 to a tile of f32") as caught:
        dtypes(out)
    assert ".to(xetile.f32)" in caught.value.help
    with pytest.raises(TileShapeError, match="cannot store"):
        shapes(out)


# Scatter tiles and atomics ----------------------------------------------------------


@proves("rule: scatter tiles")
@both
@pytest.mark.parametrize("index", ["i32", "i64", "u8", "i16"])
@pytest.mark.parametrize("shape", [(12,), (3, 4)])
def test_gather_and_scatter(index, shape, backend):
    @xetile.kernel(grid=1)
    def kernel(V, IDS, OUT, WHERE, SHAPE: constexpr, step):
        ids = xetile.load_tile(xetile.init_tile(IDS, [0], (12,))).reshape(SHAPE)
        t = xetile.init_tile(V, ids)
        v = xetile.load_gather(t, padding=-1)
        w = xetile.load_gather(xetile.update_tile_offset(t, ids), mask=ids > step)
        out = xetile.init_tile(OUT, [0, 0], (2, 12))
        both = xetile.where(
            xetile.arange(2)[:, None] == 0, v.reshape(12), w.reshape(12)
        )
        xetile.store_tile(both, out)
        xetile.store_scatter(v, None, xetile.init_tile(WHERE, ids + 1))
        xetile.store_scatter(value=v, mask=ids == 3, tile=xetile.init_tile(WHERE, ids))

    ids = np.array([0, 3, 200, 5, 9, 10, 2, 7, 120, 1, 4, 8]).astype(NUMPY[index])
    if index[0] == "i":
        ids[2] = -4
    V = matrix("f32", (1, 11)).ravel() + 20
    out, where = np.zeros((2, 12), np.float32), np.zeros(11, np.float32)
    kernel(V, ids, out, where, SHAPE=shape, step=1, backend=backend)
    wide = ids.astype(np.int64)
    inside = (wide >= 0) & (wide < 11)
    first = np.where(inside, V[np.where(inside, wide, 0)], -1)
    double = (2 * wide).astype(np.int64)
    inside2 = (double >= 0) & (double < 11) & (wide > 1)
    equal(out, [first, np.where(inside2, V[np.where(inside2, double, 0)], 0)])
    expected = np.zeros(11, np.float32)
    one_more = (ids + ids.dtype.type(1)).astype(np.int64)
    for at, value in zip(one_more, first):
        if 0 <= at < 11:
            expected[at] = value
    expected[3] = V[3]
    equal(where, expected)


@proves("rule: atomics")
@both
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        *[("add", "f32"), ("add", "f16"), ("add", "i64"), ("add", "i32")],
        *[("max", "i32"), ("min", "u32"), ("and", "u64"), ("or", "i32")],
        *[("xor", "i32"), ("mul", "f64"), ("max", "f32"), ("xchg", "f32")],
    ],
)
def test_atomics(kind, dtype, backend):
    check_atomic(kind, dtype, backend)


@proves("rule: atomics")
@both
def test_atomic_add_of_bf16(backend):
    check_atomic("add", "bf16", backend)


def check_atomic(kind, dtype, backend):
    @xetile.kernel(grid=1)
    def kernel(X, OUT, OLD, KIND: constexpr):
        v = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, 4)))
        t = xetile.init_tile(OUT, [0, 0], (4, 4))
        old = xetile.atomic_rmw_tile(KIND, v, t)
        xetile.store_tile(old, xetile.init_tile(OLD, [0, 0], (4, 4)))

    X, out = matrix(dtype, (4, 4)), matrix(dtype, (3, 4), seed=1)
    old, before = np.ones((4, 4), out.dtype), out.copy()
    kernel(X, out, old, KIND=kind, backend=backend)
    table = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
    table |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    expected = X[:3] if kind == "xchg" else table[kind](before, X[:3])
    equal(out, expected)
    equal(old, np.vstack([before, np.zeros((1, 4))]))


@proves("rule: atomics")
@both
def test_atomics_with_mask_and_on_scatter_tiles(backend):
    @xetile.kernel(grid=3)
    def kernel(IDS, COUNTS, TOTAL):
        ids = xetile.load_tile(xetile.init_tile(IDS, [0], (8,)))
        ones = xetile.full((8,), 1, i32)
        xetile.atomic_rmw_tile("add", ones, xetile.init_tile(COUNTS, ids))
        t = xetile.init_tile(TOTAL, [0], (8,))
        xetile.atomic_rmw_tile("add", ones, t, mask=ids > 2)

    ids = np.array([1, 3, 3, 9, 0, 5, 5, 5], np.int32)
    counts, total = np.zeros(6, np.int32), np.zeros(8, np.int32)
    kernel(ids, counts, total, backend=backend)
    equal(counts, 3 * np.bincount(ids[ids < 6], minlength=6))
    equal(total, 3 * (ids > 2))


@proves("rule: atomics")
def test_dtypes_without_atomics():
    @xetile.kernel(grid=1)
    def kernel(OUT):
        t = xetile.init_tile(OUT, [0], (4,))
        xetile.atomic_rmw_tile("max", xetile.load_tile(t), t)

    for dtype in ("f16", "i8", "u16", "i1"):
        with pytest.raises(TileTypeError, match="no atomic"):
            kernel(np.zeros(4, NUMPY[dtype]))


# Views ------------------------------------------------------------------------------


@proves("rule: views and scalar loads")
@both
def test_views(backend):
    @xetile.kernel(grid=(2, 3))
    def kernel(X, OUT, SUMS):
        b, h = xetile.program_id(0), xetile.program_id(1)
        xetile.static_assert(X.ndim == 4 and X.dtype == f32 and len(X.shape) == 4)
        _, _, rows, columns = X.shape
        v = xetile.load_tile(xetile.init_tile(X[b, h].T, [0, 0], (6, 5)))
        xetile.store_tile(v, xetile.init_tile(OUT[b][h], [0, 0], (6, 5)))
        row = xetile.load_tile(xetile.init_tile(X[b, h, 1], [0], (6,)))
        scalar = X[b, h, 1, 2] + X[b, h][0][3] * 2 + X[b, h, 9, 0] + X[b, h, -1, 0]
        total = row.sum() + scalar + rows * columns + X.stride(3)
        value = xetile.full((1,), total, f32)
        xetile.store_tile(value, xetile.init_tile(SUMS[b], [h], (1,)))

    X = matrix("f32", (2, 3, 4, 5))
    out, sums = np.zeros((2, 3, 6, 5), np.float32), np.zeros((2, 3), np.float32)
    kernel(X, out, sums, backend=backend)
    expected = np.zeros((2, 3, 6, 5))
    expected[:, :, :5, :4] = X.swapaxes(2, 3)
    equal(out, expected)
    equal(sums, X[:, :, 1].sum(-1) + X[:, :, 1, 2] + 2 * X[:, :, 0, 3] + 20 + 1)


@proves("rule: negative indices, strides, zero extents")
@both
def test_views_outside_and_odd_strides(backend):
    X = matrix("f32", (3, 2, 3))
    cases = [X, X[:, ::-1], np.broadcast_to(X[0, 0], (3, 2, 3)), X[:, :, ::-1]]
    for view in cases:
        for i in (-1, 0, 2, 3):
            out = np.zeros((2, 3), np.float32)
            select_kernel(view, out, i, backend=backend)
            equal(out, view[i] if 0 <= i < 3 else np.full((2, 3), 5))
    out = np.zeros((2, 3), np.float32)
    select_kernel(np.zeros((3, 0, 3), np.float32), out, 0, backend=backend)
    equal(out, np.full((2, 3), 5))


@xetile.kernel(grid=1)
def select_kernel(X, OUT, i):
    v = xetile.load_tile(xetile.init_tile(X[i], [0, 0], (2, 3)), padding=5)
    xetile.store_tile(v, xetile.init_tile(OUT, [0, 0], (2, 3)))


@proves("rule: views and scalar loads")
@both
@pytest.mark.parametrize("dtype", list(NUMPY))
def test_scalar_loads_of_every_dtype(dtype, backend):
    @xetile.kernel(grid=1)
    def kernel(X, OUT, i):
        value = X[i, 1]
        if X.dtype != xetile.i1:
            value = xetile.where(value > 2, value, X[0, 1])
        xetile.store_tile(
            xetile.full((1,), value, X.dtype), xetile.init_tile(OUT, [0], (1,))
        )

    X, out = matrix(dtype, (2, 3)), np.zeros(1, NUMPY[dtype])
    kernel(X, out, 1, backend=backend)
    equal(out, [X[1, 1] if dtype == "i1" or X[1, 1] > 2 else X[0, 1]])


# SLM and maps -----------------------------------------------------------------------


@proves("SLM")
@both
def test_slm(backend):
    @xetile.kernel(grid=2)
    def kernel(X, OUT):
        row = xetile.program_id(0) * 8
        s = xetile.slm((8, 8), f32)
        line = xetile.slm((8,), dtype=f32)
        x = xetile.load_tile(xetile.init_tile(X, [row, 0], (8, 8)))
        xetile.store_tile(x, xetile.init_tile(s, [0, 0], (8, 8)))
        xetile.store_tile(x.sum(1), xetile.init_tile(line, [0], (8,)))
        xetile.barrier()
        y = xetile.load_tile(xetile.init_tile(s.T, [0, 0], (8, 8)))
        y = y + xetile.load_tile(xetile.init_tile(line, [0], (8,))) + line[3] + s[1, 2]
        xetile.store_tile(y, xetile.init_tile(OUT, [row, 0], (8, 8)))

    X, out = matrix("f32", (16, 8)), np.zeros((16, 8), np.float32)
    kernel(X, out, backend=backend)
    for part, o in zip((X[:8], X[8:]), (out[:8], out[8:])):
        equal(o, part.T + part.sum(1) + part[3].sum() + part[1, 2])


@proves("rule: SLM limit")
def test_slm_limit():
    @xetile.kernel(grid=1)
    def kernel(OUT):
        xetile.slm((1024, 257), f32)

    with pytest.raises(CompileError, match="1052672 bytes, but 1048576 are allowed"):
        kernel(np.zeros(1, np.float32))


@proves("maps")
@proves("rule: maps")
@both
def test_maps(backend):
    square, tall = xetile.wg_map([2, 2], [8, 8]), xetile.wg_map([4, 1], [4, 16])
    column = xetile.wg_map([4, 1], [4, 1])
    whole = xetile.xe_map(wg=square, sg=xetile.sg_map([1, 16], [1, 1]))

    @xetile.kernel(grid=1)
    def kernel(X, OUT, WG=square, TALL=tall, XE=whole, COLUMN=column):
        v = xetile.load_tile(xetile.init_tile(X, [0, 0], (16, 16), wg_map=XE))
        v = xetile.tile_conv_layout(v, TALL, src_map=WG)
        w = xetile.tile_conv_layout(v, wg_map=WG)
        acc = xetile.tile_mma(w, w, wg_map=WG)
        acc = acc + xetile.zeros((16, 16), f32, wg_map=None)
        total = xetile.tile_reduce("add", acc, [1], wg_map=COLUMN)
        acc = acc + xetile.tile_broadcast(total, [1], (16, 16), wg_map=WG)
        xetile.store_tile(acc, xetile.init_tile(OUT, [0, 0], (16, 16), wg_map=WG))

    X, out = matrix("f32", (16, 16)), np.zeros((16, 16), np.float32)
    # A product needs all of K in each subgroup: its operands are converted.
    with pytest.warns(TileMapWarning, match="do not fit together"):
        kernel(X, out, backend=backend)
    equal(out, X @ X + (X @ X).sum(1, keepdims=True))


@proves("rule: maps")
def test_maps_disagree():
    @xetile.kernel(grid=1)
    def kernel(X):
        t = xetile.init_tile(X, [0, 0], (16, 16), wg_map=xetile.wg_map([2, 2], [8, 8]))
        v = xetile.load_tile(t)
        xetile.tile_conv_layout(v, xetile.wg_map([2, 1], [8, 16]))

    with pytest.raises(TileMapError, match="2 subgroups, another one of the kernel 4"):
        kernel(np.zeros((16, 16), np.float32))


@proves("rule: rank 4")
@both
def test_pack_and_unpack(backend):
    @xetile.kernel(grid=1)
    def kernel(X, OUT):
        v = xetile.load_tile(xetile.init_tile(X, [0, 0], (8, 8)))
        v = xetile.tile_unpack(xetile.tile_pack(v, [2, 4]))
        t = xetile.init_tile(X, [0, 0], (8, 8), inner_blocks=[4, 2])
        v = v + xetile.tile_unpack(xetile.load_tile(t))
        xetile.store_tile(v, xetile.init_tile(OUT, [0, 0], (8, 8)))

    X, out = matrix("f32", (8, 8)), np.zeros((8, 8), np.float32)
    kernel(X, out, backend=backend)
    equal(out, 2 * X)


@proves("vector")
@both
def test_the_kernel_of_section_1(backend):
    gelu = xetile.function(
        lambda v: (
            0.5 * v * (1.0 + xetile.tanh(0.7978845608 * (v + 0.044715 * v * v * v)))
        )
    )
    A = (matrix("f32", (70, 48)) / 8).astype(ml_dtypes.bfloat16)
    B = (matrix("f32", (48, 90), seed=1) / 8).astype(ml_dtypes.bfloat16)
    bias, C = matrix("f32", (1, 90), seed=2).ravel(), np.zeros((70, 90), np.float32)
    small = {"BM": 32, "BN": 32, "BK": 16, "WG": xetile.wg_map([2, 2], [16, 16])}
    gemm(A, B, C, bias, EPILOGUE=gelu, backend=backend, **small)
    x = A.astype(np.float64) @ B.astype(np.float64) + bias
    expected = 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(C, expected, rtol=1e-4, atol=1e-4)


@xetile.kernel(grid=lambda m: (cdiv(m.C.shape[0], m.BM), cdiv(m.C.shape[1], m.BN)))
def gemm(
    A,
    B,
    C,
    bias=None,
    EPILOGUE: constexpr = None,
    BM: constexpr = 256,
    BN: constexpr = 256,
    BK: constexpr = 32,
    WG: constexpr = xetile.wg_map(sg_layout=[8, 4], sg_data=[32, 64]),  # noqa: B008
):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[1], BK):  # noqa: B007
        xetile.prefetch_tile(xetile.update_tile_offset(a, [0, 3 * BK]))
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc, wg_map=WG)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    if bias is not None:
        acc = acc + xetile.load_tile(xetile.init_tile(bias, [n], (BN,)))
    if EPILOGUE is not None:
        acc = EPILOGUE(acc)
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))

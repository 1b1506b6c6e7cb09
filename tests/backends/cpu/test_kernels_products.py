"""Products in the loops people write: several, scaled, computed, batched, split."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launching import agree, launch, same, small_integers

from xetl import xetile
from xetl.xetile import constexpr, f32

pytestmark = pytest.mark.usefixtures("anywhere")

DTYPES = (np.float32, ml_dtypes.bfloat16)


def exact(a: Any, b: Any) -> Any:
    return a.astype(np.float64) @ b.astype(np.float64)


def matrices(count: int, m: int, k: int, n: int, dtype: Any = np.float32) -> list[Any]:
    """A (m, k) and ``count`` of B (k, n)."""
    rng = np.random.default_rng(0)
    a = small_integers(rng, m, k, dtype=dtype)
    return [a, *(small_integers(rng, k, n, dtype=dtype) for _ in range(count))]


@xetile.kernel
def gated(A, B, G, C, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    value, gate = xetile.zeros((BM, BN), f32), xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN)))
        g = xetile.load_tile(xetile.init_tile(G, [k, n], (BK, BN)))
        value = xetile.tile_mma(a, b, value)
        gate = xetile.tile_mma(a, g, gate)
    out = value * xetile.maximum(gate, 0.0)
    xetile.store_tile(out, xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_two_accumulators(dtype: Any) -> None:
    a, b, g = matrices(2, 70, 45, 75, dtype)
    c = np.zeros((70, 75), np.float32)
    out = launch(gated, (3, 2), a, b, g, c, BM=32, BN=48, BK=32)[3]
    same(out, (exact(a, b) * np.maximum(exact(a, g), 0)).astype(np.float32))


@pytest.mark.parametrize("grid", [(1, 2), (5, 2)])
def test_each_of_two_is_packed_only_where_programs_share_it(grid: Any) -> None:
    a, b, g = matrices(2, 8 * grid[0], 300, 150)
    c = np.zeros((len(a), 150), np.float32)
    sizes = {"BM": 8, "BN": 128, "BK": 32}
    out = launch(gated, grid, a, b, g, c, **sizes)[3]
    same(out, (exact(a, b) * np.maximum(exact(a, g), 0)).astype(np.float32))
    text = gated.ir("xsmm", a, b, g, c, target="avx2", **sizes)
    products = [line for line in text.splitlines() if "xsmm.brgemm.tile" in line]
    assert len(products) == 2
    assert all(") if %" in line for line in products)


@xetile.kernel
def two_pairs(A, B, D, E, C, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN)))
        d = xetile.load_tile(xetile.init_tile(D, [m, k], (BM, BK)))
        e = xetile.load_tile(xetile.init_tile(E, [k, n], (BK, BN)))
        acc = xetile.tile_mma(d, e, xetile.tile_mma(a, b, acc))
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_two_products_into_one_accumulator(dtype: Any) -> None:
    a, b, e = matrices(2, 70, 45, 75, dtype)
    d = small_integers(np.random.default_rng(1), 70, 45, dtype=dtype)
    c = np.zeros((70, 75), np.float32)
    out = launch(two_pairs, (3, 2), a, b, d, e, c, BM=32, BN=48, BK=32)[4]
    same(out, (exact(a, b) + exact(d, e)).astype(np.float32))


@xetile.kernel
def with_row_sums(A, B, C, S, STEPS, BM: constexpr, BN: constexpr, BK: constexpr):
    m = xetile.program_id(0) * BM
    acc, sums = xetile.zeros((BM, BN), f32), xetile.zeros((BM, 1), f32)
    steps = 0
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, 0], (BK, BN)))
        acc = xetile.tile_mma(a, b, acc)
        sums = sums + a.to(f32).sum(1, keepdims=True)
        xetile.store_tile(sums, xetile.init_tile(S, [m, k // BK], (BM, 1)))
        steps += 1
    xetile.store_tile(acc, xetile.init_tile(C, [m, 0], (BM, BN)))
    xetile.store_tile(
        xetile.full((1, 1), steps, f32), xetile.init_tile(STEPS, [0, 0], (1, 1))
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_else_the_loop_does_is_done(dtype: Any) -> None:
    a, b = matrices(1, 50, 70, 40, dtype)
    c, s = np.zeros((50, 40), np.float32), np.zeros((50, 3), np.float32)
    steps = np.zeros((1, 1), np.float32)
    arrays = (a, b, c, s, steps)
    out = agree(with_row_sums, (2, 1), *arrays, BM=32, BN=40, BK=32)
    same(out[2], exact(a, b).astype(np.float32))
    ends = [a[:, :stop].astype(np.float64).sum(1) for stop in (32, 64, 70)]
    same(out[3], np.stack(ends, 1).astype(np.float32))
    assert out[4][0, 0] == 3


@xetile.kernel
def overwriting(A, B, C, BM: constexpr):
    acc = xetile.zeros((BM, BM), f32)
    for k in range(0, A.shape[1], BM):
        a = xetile.load_tile(xetile.init_tile(A, [0, k], (BM, BM)))
        b = xetile.load_tile(xetile.init_tile(B, [k, 0], (BM, BM)))
        acc = xetile.tile_mma(a, b, acc)
        # The next step multiplies by this.
        xetile.store_tile(acc, xetile.init_tile(B, [k + BM, 0], (BM, BM)))
    xetile.store_tile(acc, xetile.init_tile(C, [0, 0], (BM, BM)))


def test_a_loop_that_writes_its_operand() -> None:
    rng = np.random.default_rng(0)
    a, b = small_integers(rng, 8, 24), small_integers(rng, 24, 8)
    agree(overwriting, 1, a, b, np.zeros((8, 8), np.float32), BM=8)


@xetile.kernel
def batched(A, B, C, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n, z = (
        xetile.program_id(0) * BM,
        xetile.program_id(1) * BN,
        xetile.program_id(2),
    )
    left, right = A[z], B[z]
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, left.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(left, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(right, [k, n], (BK, BN)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C[z], [m, n], (BM, BN)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("turned", [False, True])
# More batches than there are, tiles past the last column, few and many to a group.
@pytest.mark.parametrize(("count", "grid"), [(3, (3, 2, 3)), (2, (3, 4, 5))])
def test_batches(dtype: Any, turned: bool, count: int, grid: Any) -> None:
    rng = np.random.default_rng(0)
    a = small_integers(rng, count, 70, 45, dtype=dtype)
    b = small_integers(rng, count, 45, 75, dtype=dtype)
    c = np.zeros((count, 70, 75), np.float32)
    if turned:
        b = np.ascontiguousarray(b.transpose(0, 2, 1)).transpose(0, 2, 1)
    out = launch(batched, grid, a, b, c, BM=32, BN=48, BK=32)[2]
    same(out, exact(a, b).astype(np.float32))


def test_many_batches_in_several_groups() -> None:
    rng = np.random.default_rng(0)
    # 300 of 64 KiB: four groups or more.
    a, b = small_integers(rng, 300, 8, 128), small_integers(rng, 300, 128, 128)
    c = np.zeros((300, 8, 128), np.float32)
    out = launch(batched, (1, 2, 300), a, b, c, BM=8, BN=64, BK=32)[2]
    same(out, exact(a, b).astype(np.float32))


@xetile.kernel
def split(A, B, C, PART: constexpr, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    first = xetile.program_id(2) * PART
    acc = xetile.zeros((BM, BN), f32)
    for k in range(first, first + PART, BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.atomic_rmw_tile("add", acc, xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_parts_of_k_added_atomically(dtype: Any) -> None:
    a, b = matrices(1, 70, 180, 75, dtype)
    c = np.zeros((70, 75), np.float32)
    out = launch(split, (3, 2, 3), a, b, c, PART=64, BM=32, BN=48, BK=32)[2]
    same(out, exact(a, b).astype(np.float32))


@xetile.kernel
def fading(A, B, C, steps, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), f32)
    for i in range(steps):
        a = xetile.load_tile(xetile.init_tile(A, [m, i * BK], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [i * BK, n], (BK, BN)))
        acc = xetile.tile_mma(a, b, acc * 0.5)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("steps", [0, 2, 4, 9])  # k ends in the fourth step
def test_accumulators_scaled_between_the_steps(dtype: Any, steps: int) -> None:
    a, b = matrices(1, 70, 100, 75, dtype)
    c = np.full((70, 75), 7, np.float32)
    expected = np.zeros((70, 75))
    for i in range(steps):
        part = slice(i * 32, i * 32 + 32)
        expected = expected * 0.5 + exact(a[:, part], b[part])
    out = launch(fading, (3, 2), a, b, c, steps, BM=32, BN=48, BK=32)[2]
    same(out, expected.astype(np.float32))


@xetile.kernel
def gram(K, V, O_, steps, BM: constexpr, BN: constexpr, D: constexpr):
    """O = (K K.T) V for each head, keys and values in steps of BN."""
    m, h = xetile.program_id(0) * BM, xetile.program_id(1)
    keys, values = K[h], V[h]
    q = xetile.load_tile(xetile.init_tile(keys, [m, 0], (BM, D)))
    acc = xetile.zeros((BM, D), f32)
    for n in range(0, steps * BN, BN):
        k = xetile.load_tile(xetile.init_tile(keys, [n, 0], (BN, D)))
        v = xetile.load_tile(xetile.init_tile(values, [n, 0], (BN, D)))
        p = xetile.tile_mma(q, k.T)
        acc = xetile.tile_mma(p.to(V.dtype), v, acc)
    xetile.store_tile(acc, xetile.init_tile(O_[h], [m, 0], (BM, D)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("extents", [(3, 50, 24), (2, 64, 32)])
@pytest.mark.parametrize("more", [0, 2])
def test_keys_and_values_by_steps(dtype: Any, extents: Any, more: int) -> None:
    heads, n, d = extents
    rng = np.random.default_rng(0)
    # Products of these are at most 24: exact in bf16, too.
    k = rng.integers(-1, 2, extents).astype(dtype)
    v = rng.integers(-1, 2, extents).astype(dtype)
    o = np.zeros(extents, np.float32)
    grid, steps = (4, heads), -(-n // 32) + more
    out = launch(gram, grid, k, v, o, steps, BM=16, BN=32, D=d)[2]
    expected = exact(exact(k, k.transpose(0, 2, 1)), v)
    same(out, expected.astype(np.float32))


@xetile.kernel
def narrowed(A, B, C, BM: constexpr, BN: constexpr, BK: constexpr):
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (BM, BK)))
    b = xetile.load_tile(xetile.init_tile(B, [0, 0], (BK, BN))).to(A.dtype)
    xetile.store_tile(xetile.tile_mma(a, b), xetile.init_tile(C, [0, 0], (BM, BN)))


@pytest.mark.parametrize("extents", [(1, 1, 16), (4, 1, 70), (1, 16, 1), (8, 1, 1)])
@pytest.mark.parametrize("dtype", [np.int8, np.float32, ml_dtypes.bfloat16])
def test_a_computed_operand_of_one_column_or_row(dtype: Any, extents: Any) -> None:
    """Both of its strides are 1."""
    m, n, k = extents
    rng = np.random.default_rng(0)
    a = small_integers(rng, m, k, dtype=dtype)
    b = small_integers(rng, k, n, dtype=np.float32)
    c = np.zeros((m, n), np.int32 if dtype == np.int8 else np.float32)
    out = launch(narrowed, (1, 1), a, b, c, BM=m, BN=n, BK=k)[2]
    same(out, exact(a, b).astype(c.dtype))

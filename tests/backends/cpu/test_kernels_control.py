"""Loops and branches that carry vectors, tiles and scalars."""

from typing import Any

import numpy as np
import pytest
from launching import agree, launch, same, small_integers

from xetl import xetile
from xetl.xetile import constexpr, f32

pytestmark = pytest.mark.usefixtures("anywhere")


@xetile.kernel
def swapped(X, Y, n, C: constexpr):
    a = xetile.load_tile(xetile.init_tile(X, [0, 0], (1, C)))
    b = xetile.load_tile(xetile.init_tile(X, [1, 0], (1, C)))
    for _ in range(n):
        a, b = b, a + b
    xetile.store_tile(a, xetile.init_tile(Y, [0, 0], (1, C)))
    xetile.store_tile(b, xetile.init_tile(Y, [1, 0], (1, C)))


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_vectors_swapped_in_a_loop(n: int) -> None:
    x = small_integers(np.random.default_rng(0), 2, 37)
    a, b = x
    for _ in range(n):
        a, b = b, a + b
    same(agree(swapped, 1, x, 0 * x, n, C=37)[1], np.stack([a, b]))


@xetile.kernel
def rotated(X, Y, n, N: constexpr):
    a = xetile.load_tile(xetile.init_tile(X, [0, 0], (N, N)))
    b = a * 2.0
    for i in range(n):
        a, b = b.T, a + i
    xetile.store_tile(a, xetile.init_tile(Y, [0, 0], (N, N)))
    xetile.store_tile(b, xetile.init_tile(Y, [N, 0], (N, N)))


def test_transposed_carried_values() -> None:
    x = small_integers(np.random.default_rng(0), 19, 19)
    a, b = x, 2 * x
    for i in range(3):
        a, b = b.T, a + np.float32(i)
    out = agree(rotated, 1, x, np.zeros((38, 19), np.float32), 3, N=19)
    same(out[1], np.concatenate([a, b]))


@xetile.kernel
def backwards(X, Y, R: constexpr, C: constexpr):
    t = xetile.init_tile(X, [X.shape[0] - R, 0], (R, C))
    total = xetile.zeros((R, C))
    for _ in range(X.shape[0] - R, -1, -1):
        total = total * 2.0 + xetile.load_tile(t)
        t = xetile.update_tile_offset(t, [-1, 0])
    xetile.store_tile(total, xetile.init_tile(Y, [0, 0], (R, C)))


def test_a_tile_that_moves_up() -> None:
    x = small_integers(np.random.default_rng(0), 7, 20)
    expected = np.zeros((3, 20), np.float32)
    for row in range(4, -1, -1):
        expected = expected * 2 + x[row : row + 3]
    same(agree(backwards, 1, x, 0 * expected, R=3, C=20)[1], expected)


@xetile.kernel
def leaving(X, Y, C: constexpr):
    t = xetile.init_tile(X, [1, 2], (3, C))
    total = xetile.zeros((3, C))
    for _ in range(6):
        total = total + xetile.load_tile(t, padding=1.0)
        t = xetile.update_tile_offset(t, [-1, -3])
    xetile.store_tile(total, xetile.init_tile(Y, [0, 0], (3, C)))


def test_a_tile_that_leaves_its_matrix_is_padded() -> None:
    x = small_integers(np.random.default_rng(0), 4, 30)
    padded = np.ones((40, 100), np.float32)
    padded[20:24, 40:70] = x
    expected = np.zeros((3, 21), np.float32)
    for i in range(6):
        expected += padded[21 - i : 24 - i, 42 - 3 * i : 63 - 3 * i]
    same(agree(leaving, 1, x, 0 * expected, C=21)[1], expected)


@xetile.kernel
def ping_pong(X, Y, Z, n, C: constexpr):
    one = xetile.init_tile(X, [0, 0], (1, C))
    two = xetile.init_tile(Y, [0, 0], (1, C))
    for i in range(n):
        xetile.store_tile(xetile.load_tile(one) + i + 1.0, two)
        one, two = two, one
    xetile.store_tile(xetile.load_tile(one), xetile.init_tile(Z, [0, 0], (1, C)))


@pytest.mark.parametrize("n", [0, 1, 4])
def test_tiles_of_two_arrays_change_places(n: int) -> None:
    x, y = small_integers(np.random.default_rng(0), 2, 1, 37)
    out = agree(ping_pong, 1, x, y, 0 * x, n, C=37)
    same(out[2], x + np.float32(n * (n + 1) / 2))


@xetile.kernel
def chosen_tile(X, Y, Z, flag, C: constexpr):
    if flag > 0:
        t = xetile.init_tile(X, [1, 0], (2, C))
    else:
        t = xetile.init_tile(Y, [0, 1], (2, C))
    xetile.store_tile(xetile.load_tile(t), xetile.init_tile(Z, [0, 0], (2, C)))


@pytest.mark.parametrize("flag", [0, 1])
def test_a_tile_chosen_by_an_if(flag: int) -> None:
    rng = np.random.default_rng(0)
    x = small_integers(rng, 4, 37)
    y = small_integers(rng, 4, 37)
    out = agree(chosen_tile, 1, x, y, np.zeros((2, 20), np.float32), flag, C=20)
    same(out[2], x[1:3, :20] if flag else y[:2, 1:21])


@pytest.mark.parametrize("flag", [0, 1])
@pytest.mark.parametrize("x_step", [1, 2])
def test_the_chosen_tile_may_have_gaps(flag: int, x_step: int) -> None:
    x, y = small_integers(np.random.default_rng(0), 2, 8, 74)
    x, y = x[::2, ::x_step], y[:, :: 3 - x_step]
    out = agree(chosen_tile, 1, x, y, np.zeros((2, 20), np.float32), flag, C=20)
    same(out[2], np.ascontiguousarray(x[1:3, :20] if flag else y[:2, 1:21]))


@xetile.kernel
def if_in_loop(X, Y, C: constexpr):
    total = xetile.zeros((2, C))
    scale = 1
    for i in range(X.shape[0]):
        v = xetile.load_tile(xetile.init_tile(X, [i, 0], (2, C)))
        if i % 3 == 0:
            total = total + v * scale
            scale = scale + 1
        elif i % 3 == 1:
            total = total - v
        else:
            total = v.max(0, keepdims=True) + total
    xetile.store_tile(total, xetile.init_tile(Y, [0, 0], (2, C)))


def test_branches_in_a_loop() -> None:
    x = small_integers(np.random.default_rng(0), 8, 37)
    padded = np.concatenate([x, np.zeros((1, 37), np.float32)])
    total, scale = np.zeros((2, 37), np.float32), 1
    for i in range(8):
        v = padded[i : i + 2]
        if i % 3 == 0:
            total, scale = total + v * scale, scale + 1
        elif i % 3 == 1:
            total = total - v
        else:
            total = total + v.max(0)
    same(agree(if_in_loop, 1, x, 0 * total, C=37)[1], total.astype(np.float32))


@xetile.kernel
def nested(X, Y, n, C: constexpr):
    t = xetile.init_tile(X, [0, 0], (1, C))
    total = xetile.zeros((1, C))
    for i in range(n):
        row = xetile.zeros((1, C))
        for _ in range(i + 1):
            row = row + xetile.load_tile(t)
            t = xetile.update_tile_offset(t, [1, 0])
        total = total * 2.0 + row
        t = xetile.update_tile_offset(t, [-i, 0])
    xetile.store_tile(total, xetile.init_tile(Y, [0, 0], (1, C)))


def test_nested_loops_that_carry_a_tile() -> None:
    x = small_integers(np.random.default_rng(0), 9, 37)
    total = np.zeros(37, np.float32)
    for i in range(4):
        total = total * 2 + x[i : 2 * i + 1].sum(0)
    same(agree(nested, 1, x, np.zeros((1, 37), np.float32), 4, C=37)[1], total[None])


@xetile.kernel
def constants_in_branches(X, Y, flag):
    ones = xetile.full((16, 16), 1.0, f32)
    a = xetile.load_tile(xetile.init_tile(X, [0, 0], (16, 16)))
    if flag > 0:
        v = a @ ones
    elif flag < 0:
        v = ones @ a
    else:
        v = a
    xetile.store_tile(v + a @ ones, xetile.init_tile(Y, [0, 0], (16, 16)))


@pytest.mark.parametrize("flag", [-1, 0, 1])
def test_a_constant_operand_in_branches(flag: int) -> None:
    a = small_integers(np.random.default_rng(0), 16, 16)
    ones = np.ones_like(a)
    first = {1: a @ ones, -1: ones @ a, 0: a}[flag]
    same(agree(constants_in_branches, 1, a, 0 * a, flag)[1], first + a @ ones)


@xetile.kernel
def no_trips(X, Y, n):
    ones = xetile.full((16, 16), 1.0, f32)
    a = xetile.load_tile(xetile.init_tile(X, [0, 0], (16, 16)))
    for _ in range(n):
        a = a @ ones
    xetile.store_tile(a @ ones + a, xetile.init_tile(Y, [0, 0], (16, 16)))


@pytest.mark.parametrize("n", [0, 1])
def test_a_loop_that_may_not_run(n: int) -> None:
    a = small_integers(np.random.default_rng(0), 16, 16)
    ones = np.ones_like(a)
    b = a @ ones if n else a
    same(agree(no_trips, 1, a, 0 * a, n)[1], b @ ones + b)


@xetile.kernel
def scatter_tiles(X, Y, n, N: constexpr):
    t = xetile.init_tile(X, xetile.arange(N) * 2)
    total = xetile.zeros((N,))
    for i in range(n):
        total = total * 2.0 + xetile.load_gather(t, padding=1.0)
        t = xetile.update_tile_offset(t, xetile.arange(N) + i)
    xetile.store_tile(total, xetile.init_tile(Y, [0], (N,)))


def test_scatter_tiles_carried_by_a_loop() -> None:
    x = small_integers(np.random.default_rng(0), 100)
    index, total = np.arange(20) * 2, np.zeros(20, np.float32)
    for i in range(5):
        value = np.where(index < 100, x[np.minimum(index, 99)], 1)
        total, index = total * 2 + value.astype(np.float32), index + np.arange(20) + i
    same(agree(scatter_tiles, 1, x, 0 * total, 5, N=20)[1], total)


@xetile.kernel
def attention(Q, K, V, O_, D: constexpr, BM: constexpr, BN: constexpr):
    m = xetile.program_id(0) * BM
    q = xetile.load_tile(xetile.init_tile(Q, [m, 0], (BM, D)))
    mx = xetile.full((BM, 1), -1e30, f32)
    total = xetile.zeros((BM, 1), f32)
    acc = xetile.zeros((BM, D), f32)
    for n in range(0, K.shape[0], BN):
        k = xetile.load_tile(xetile.init_tile(K, [n, 0], (BN, D)))
        s = xetile.tile_mma(q, xetile.tile_transpose(k, [1, 0]))
        s = xetile.where(xetile.arange(BN)[None, :] + n < K.shape[0], s, -1e30)
        new = xetile.maximum(mx, xetile.tile_reduce("max", s, [1]))
        p = xetile.exp(s - new)
        a = xetile.exp(mx - new)
        total = total * a + xetile.tile_reduce("add", p, [1])
        v = xetile.load_tile(xetile.init_tile(V, [n, 0], (BN, D)))
        acc = xetile.tile_mma(p, v, acc * a)
        mx = new
    xetile.store_tile(acc / total, xetile.init_tile(O_, [m, 0], (BM, D)))


@pytest.mark.parametrize("shape", [(50, 70, 24), (33, 100, 17), (16, 32, 64)])
@pytest.mark.parametrize("blocks", [(16, 32), (13, 100)])
def test_attention(shape: Any, blocks: Any) -> None:
    rng = np.random.default_rng(0)
    m, n, d = shape
    bm, bn = blocks
    q, k, v = (
        rng.standard_normal(s).astype(np.float32) for s in ((m, d), (n, d), (n, d))
    )
    out = launch(attention, -(-m // bm), q, k, v, 0 * q, D=d, BM=bm, BN=bn)[3]
    s = q.astype(np.float64) @ k.astype(np.float64).T
    e = np.exp(s - s.max(1, keepdims=True))
    exact = e / e.sum(1, keepdims=True) @ v
    # Each score is off by at most d+1 roundings of |q||k|, which exp turns into a
    # relative error; sums of n terms and the rescaling add theirs.
    scores = (d + 8) * 2.0**-24 * (abs(q) @ abs(k).T).max()
    bound = (2 * scores + (2 * n + 64) * 2.0**-24) * abs(v).max()
    assert abs(out - exact).max() <= bound


@xetile.kernel
def given_from_outside(X, Y, n, C: constexpr):
    a = xetile.load_tile(xetile.init_tile(X, [0, 0], (1, C)))
    b = a.max(1, keepdims=True) + a
    for _ in range(n):
        a = b
    xetile.store_tile(a * 100.0 + b, xetile.init_tile(Y, [0, 0], (1, C)))


@pytest.mark.parametrize("n", [0, 2])
def test_a_value_from_outside_assigned_in_a_loop(n: int) -> None:
    x = small_integers(np.random.default_rng(0), 1, 37)
    b = x.max() + x
    expected = (b if n else x) * 100 + b
    same(agree(given_from_outside, 1, x, 0 * x, n, C=37)[1], expected)


@xetile.kernel
def while_loop(X, Y, limit, C: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (2, C)))
    total, steps = v.sum(), 0
    while total < limit:
        v = v + 1.0
        total = v.sum()
        steps += 1
        if steps > 50:
            break
    xetile.store_tile(v * 10.0 + steps, xetile.init_tile(Y, [0, 0], (2, C)))


def test_while_loops() -> None:
    x = small_integers(np.random.default_rng(0), 2, 37)
    v, steps = x.copy(), 0
    while v.sum() < 500:
        v, steps = v + 1, steps + 1
    same(agree(while_loop, 1, x, 0 * x, 500.0, C=37)[1], v * 10 + np.float32(steps))


@xetile.kernel
def while_tiles(X, Y, limit, C: constexpr):
    """Doubles rows until one is large; tiles and vectors are carried."""
    t = xetile.init_tile(X, [0, 0], (1, C))
    a = xetile.load_tile(t)
    b = a + 1.0
    row = 0
    while row < X.shape[0]:
        v = xetile.load_tile(t)
        if v.max() > limit:
            break
        a, b = b, a + v
        row += 1
        t = xetile.update_tile_offset(t, [1, 0])
    xetile.store_tile(a, xetile.init_tile(Y, [0, 0], (1, C)))
    xetile.store_tile(b + row, xetile.init_tile(Y, [1, 0], (1, C)))


@pytest.mark.parametrize("limit", [-5.0, 3.0, 3.5, 9.0])
def test_while_loops_that_carry_tiles(limit: float) -> None:
    x = small_integers(np.random.default_rng(3), 6, 37)
    x[:3] = np.minimum(x[:3], 3)
    a, b, row = x[0], x[0] + 1, 0
    while row < 6 and x[row].max() <= limit:
        a, b, row = b, a + x[row], row + 1
    out = agree(while_tiles, 1, x, np.zeros((2, 37), np.float32), limit, C=37)
    same(out[1], np.stack([a, b + np.float32(row)]))


@xetile.kernel
def products_until(A, B, C, last: int):
    acc = xetile.zeros((16, 16), f32)
    for k in range(0, A.shape[1], 16):
        if k > last:
            break
        a = xetile.load_tile(xetile.init_tile(A, [0, k], (16, 16)))
        b = xetile.load_tile(xetile.init_tile(B, [k, 0], (16, 16)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [0, 0], (16, 16)))


def test_explain_says_that_a_loop_with_a_break_is_not_raised() -> None:
    said = str(products_until.explain("f32[M,K] f32[K,N] f32[M,N] i64", target="avx2"))
    assert "a loop that is `while` or has `break` or `return` is not raised" in said


@xetile.kernel
def neighbours(X, Y):
    """Sums of neighbours, and of what is behind each place, without tests of bounds."""
    for i in range(1, X.shape[0] - 1):
        for j in range(1, X.shape[1] - 1):
            Y[i, j] = X[i - 1, j] + X[i + 1, j] + X[i, j - 1] + X[i, j + 1]
    for j in range(X.shape[1]):
        for k in range(j + 1, X.shape[1]):
            Y[0, j] = Y[0, j] + X[0, k] * X[0, k - j]


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (2, 3), (3, 3), (5, 8)])
def test_neighbours_of_counters(shape: tuple[int, int]) -> None:
    x = small_integers(np.random.default_rng(3), *shape)
    (_, y) = agree(neighbours, 1, x, np.zeros_like(x))
    expected = np.zeros_like(x)
    expected[1:-1, 1:-1] = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    for j in range(shape[1] if shape[0] else 0):
        expected[0, j] += x[0, j + 1 :] @ x[0, 1 : shape[1] - j]
    same(y, expected)


def test_neighbours_of_counters_have_no_tests_of_bounds() -> None:
    text = neighbours.ir("loops", "f32[M,N] f32[M,N]", target="avx512")
    assert 'bounds = "X", xetile.dim = 1' not in text


@xetile.kernel
def least(X, V, Y):
    """Found in f32, though numbers of the language are f64."""
    for i in range(X.shape[0]):
        Y[i] = max(V[i], min(X[i], V[i] * V[i]))


def test_the_least_is_rounded_as_in_f64() -> None:
    x = np.array([3, 1e30, -1e30, 0.1, 1e-40, 7, np.inf], np.float32)
    v = np.array([0.1, 1e30, 1e25, 1 / 3, 1e-30, -9, -np.inf], np.float32)
    (_, _, y) = agree(least, 1, x, v, np.zeros_like(x))
    wide, other = x.astype(np.float64), v.astype(np.float64)
    expected = np.maximum(other, np.minimum(wide, other * other))
    with np.errstate(over="ignore"):
        same(y, expected.astype(np.float32))
    text = least.ir("loops", "f32[N] f32[N] f32[N]", target="avx512")
    assert "f64" not in text

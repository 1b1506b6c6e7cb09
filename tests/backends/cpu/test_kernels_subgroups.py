"""Kernels at subgroup level: subgroups meet in shared memory and at barriers."""

import numpy as np
import pytest

from xetl import xetile
from xetl.errors import LaunchError
from xetl.xetile import constexpr, f32

RNG = np.random.default_rng(7)
BACKENDS = ("cpu", "reference")


@xetile.kernel(subgroups=[2, 4])
def own_rows(X, Y, N: constexpr):
    row = xetile.program_id(0) * 8 + xetile.subgroup_id()
    v = xetile.load_tile(xetile.init_tile(X, [row, 0], (1, N)))
    xetile.store_tile(v * 2.0, xetile.init_tile(Y, [row, 0], (1, N)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_a_barrier(backend):
    X = RNG.standard_normal((37, 20), np.float32)
    Y = np.zeros_like(X)
    own_rows[5](X, Y, N=32, backend=backend)
    assert np.array_equal(Y, X * 2)


@xetile.kernel(subgroups=[1, 4])
def rotate(X, Y, steps, N: constexpr):
    """In each step every subgroup hands its row, plus one, to its neighbour."""
    shared = xetile.slm((4, N), f32)
    me = xetile.subgroup_id()
    base = xetile.program_id(0) * 4
    v = xetile.load_tile(xetile.init_tile(X, [base + me, 0], (1, N)))
    total = xetile.zeros((1, N), f32)
    for _ in range(steps):
        xetile.store_tile(v, xetile.init_tile(shared, [me, 0], (1, N)))
        xetile.barrier()
        v = xetile.load_tile(xetile.init_tile(shared, [(me + 1) % 4, 0], (1, N))) + 1.0
        total = total + v
        xetile.barrier()
    xetile.store_tile(total, xetile.init_tile(Y, [base + me, 0], (1, N)))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_values_live_across_barriers_in_a_loop(backend, steps):
    X = RNG.integers(-9, 9, (4 * 30, 33)).astype(np.float32)
    Y = np.full_like(X, 7)
    rotate[30](X, Y, steps, N=33, backend=backend)
    v, want = X.reshape(30, 4, 33), np.zeros((30, 4, 33), np.float32)
    for _ in range(steps):
        v = np.roll(v, -1, axis=1) + 1
        want += v
    assert np.array_equal(Y, want.reshape(X.shape))


@xetile.kernel(subgroups=[2, 2])
def shared_gemm(A, B, C, K: constexpr):
    """Each subgroup brings a quarter of A and B to shared memory, uses all of it."""
    a, b = xetile.slm((32, K), f32), xetile.slm((K, 32), f32)
    me = xetile.subgroup_id()
    m, n = xetile.program_id(0) * 32, xetile.program_id(1) * 32
    row, col = (me // 2) * 16, (me % 2) * 16
    acc = xetile.zeros((16, 16), f32)
    for k in range(0, A.shape[1], K):
        part = xetile.load_tile(xetile.init_tile(A, [m + me * 8, k], (8, K)))
        xetile.store_tile(part, xetile.init_tile(a, [me * 8, 0], (8, K)))
        other = xetile.load_tile(xetile.init_tile(B, [k, n + me * 8], (K, 8)))
        xetile.store_tile(other, xetile.init_tile(b, [0, me * 8], (K, 8)))
        xetile.barrier()
        x = xetile.load_tile(xetile.init_tile(a, [row, 0], (16, K)))
        y = xetile.load_tile(xetile.init_tile(b, [0, col], (K, 16)))
        acc = xetile.tile_mma(x, y, acc)
        xetile.barrier()
    xetile.store_tile(acc, xetile.init_tile(C, [m + row, n + col], (16, 16)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_cooperative_gemm(backend):
    A = RNG.integers(-4, 5, (70, 45)).astype(np.float32)
    B = RNG.integers(-4, 5, (45, 90)).astype(np.float32)
    C = np.zeros((70, 90), np.float32)
    shared_gemm[3, 3](A, B, C, K=16, backend=backend)
    assert np.array_equal(C, A @ B)


@xetile.kernel(subgroups=[2, 2])
def neighbours(X, Y, steps):
    """Shared memory made behind a return and in a loop is still everybody's."""
    me = xetile.subgroup_id()
    row = xetile.program_id(0) * 4 + me
    v = xetile.load_tile(xetile.init_tile(X, [row, 0], (1, 20)))
    if xetile.program_id(0) == 1:
        return
    for _ in range(steps):
        room = xetile.slm((4, 20), f32)
        xetile.store_tile(v, xetile.init_tile(room, [me, 0], (1, 20)))
        xetile.barrier()
        v = xetile.load_tile(xetile.init_tile(room, [(me + 1) % 4, 0], (1, 20)))
        xetile.barrier()
    xetile.store_tile(v, xetile.init_tile(Y, [row, 0], (1, 20)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_shared_memory_of_inner_blocks(backend):
    X = RNG.standard_normal((12, 20), np.float32)
    Y = np.zeros_like(X)
    neighbours[3](X, Y, 3, backend=backend)
    want = np.roll(X.reshape(3, 4, 20), -3, axis=1)
    want[1] = 0
    assert np.array_equal(Y, want.reshape(X.shape))


@xetile.kernel(subgroups=[1, 2])
def stops(X):
    me = xetile.subgroup_id()
    xetile.barrier()
    xetile.device_assert(me + xetile.program_id(0) < 2, f"subgroup {me} fails")
    xetile.barrier()
    xetile.store_tile(
        xetile.zeros((1, 4), f32),
        xetile.init_tile(X, [xetile.program_id(0) * 2 + me, 0], (1, 4)),
    )


def test_a_failed_assertion_ends_its_subgroup_and_nothing_hangs():
    X = np.ones((4, 4), np.float32)
    with pytest.raises(LaunchError, match="subgroup 1 fails"):
        stops[2](X)
    assert np.array_equal(X[0], np.zeros(4))


@xetile.kernel(subgroups=[1, 4])
def shared_in_a_loop(X, Y, steps, N: constexpr):
    me = xetile.subgroup_id()
    v = xetile.load_tile(xetile.init_tile(X, [me, 0], (1, N)))
    for _ in range(steps):
        shared = xetile.slm((4, N), f32)
        xetile.store_tile(v, xetile.init_tile(shared, [me, 0], (1, N)))
        xetile.barrier()
        v = xetile.load_tile(xetile.init_tile(shared, [(me + 1) % 4, 0], (1, N)))
        xetile.barrier()
    xetile.store_tile(v, xetile.init_tile(Y, [me, 0], (1, N)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_memory_asked_for_in_a_loop_is_shared(backend):
    X = RNG.standard_normal((4, 20), np.float32)
    Y = np.zeros_like(X)
    shared_in_a_loop[1](X, Y, 3, N=20, backend=backend)
    assert np.array_equal(Y, np.roll(X, -3, axis=0))

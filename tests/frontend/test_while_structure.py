"""What loops that are left become, and what stays an ordinary loop."""

import numpy as np
import pytest
from building import build, names, ops
from programs import BACKENDS

from xetl import xetile
from xetl.errors import ControlFlowError
from xetl.xetile import cdiv, constexpr, f32


def counted(module):
    return {n: names(module).count(n) for n in ("scf.for", "scf.if", "scf.while")}


def test_continue_stays_a_for_loop():
    def kernel(X, n):
        v = xetile.zeros((4, 4), f32)
        for i in range(n):
            if i == 3:
                continue
            v = v + 1
        xetile.store_tile(v, xetile.init_tile(X, [0, 0], (4, 4)))

    module = build(kernel, X="f32 2", n="i64")
    assert counted(module) == {"scf.for": 1, "scf.if": 1, "scf.while": 0}
    (branch,) = ops(module, "scf.if")
    assert [str(r.type) for r in branch.results] == ["vector<4x4xf32>"]


def test_break_makes_a_while_loop_of_its_loop_only():
    def kernel(X, n):
        for i in range(n):
            for _ in range(i):
                xetile.prefetch_tile(xetile.init_tile(X, [0, i], (4, 4)))
            if i > 3:
                break

    assert counted(build(kernel, X="f32 2", n="i64"))["scf.for"] == 1
    assert counted(build(kernel, X="f32 2", n="i64"))["scf.while"] == 1


def test_a_pruned_break_leaves_no_trace(capsys):
    def kernel(X, n, DEBUG: constexpr = False):
        for i in range(n):
            xetile.static_print("once")
            if DEBUG:
                break
            xetile.prefetch_tile(xetile.init_tile(X, [0, i], (4, 4)))

    module = build(kernel, X="f32 2", n="i64")
    assert counted(module) == {"scf.for": 1, "scf.if": 0, "scf.while": 0}
    build(kernel, X="f32 2", n="i64", DEBUG=True)
    assert capsys.readouterr().out == "once\nonce\n"


def test_an_early_return_needs_no_flag():
    def kernel(X, n):
        if n < 0:
            return
        v = xetile.zeros((4, 4), f32)
        xetile.store_tile(v, xetile.init_tile(X, [0, 0], (4, 4)))

    (branch,) = ops(build(kernel, X="f32 2", n="i64"), "scf.if")
    assert not branch.results


def test_a_helper_returns_tiles_and_vectors_early():
    def pick(X, n):
        tile = xetile.init_tile(X, [0, 0], (4, 4))
        if n > 3:
            return tile, 1
        return xetile.update_tile_offset(tile, [4, 0]), 2.5

    def kernel(X, n, F):
        tile, scale = F(X, n)
        xetile.store_tile(xetile.load_tile(tile) * scale, tile)

    with pytest.raises(ControlFlowError):  # int and float inside a tuple differ
        build(kernel, X="f32 2", n="i64", F=xetile.function(pick))


def test_return_joins_int_and_float():
    @xetile.function
    def pick(n):
        if n > 3:
            return 1
        return 2.5

    def kernel(X, n, F):
        v = xetile.full((4, 4), F(n), f32)
        xetile.store_tile(v, xetile.init_tile(X, [0, 0], (4, 4)))

    (branch,) = ops(build(kernel, X="f32 2", n="i64", F=pick), "scf.if")
    assert str(branch.results[0].type) == "f64"


@pytest.mark.parametrize("backend", BACKENDS)
def test_vectors_leave_a_loop_by_return(backend):
    @xetile.function
    def search(X, n):
        for i in range(n):
            v = xetile.load_tile(xetile.init_tile(X, [i * 4, 0], (4, 4)))
            if v.max() > 3:
                return v
        return xetile.zeros((4, 4), f32)

    @xetile.kernel(grid=1)
    def kernel(X, OUT, n, F):
        xetile.store_tile(F(X, n), xetile.init_tile(OUT, [0, 0], (4, 4)))

    X = np.arange(64, dtype=np.float32).reshape(16, 4) / 10
    for n, expected in ((1, np.zeros((4, 4))), (4, X[4:8])):
        out = np.ones((4, 4), np.float32)
        kernel(X, out, n, search, backend=backend)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_tile_of_the_running_path_stays_usable(backend):
    @xetile.kernel(grid=1)
    def kernel(X, OUT, n):
        acc = xetile.zeros((4, 4))
        for i in range(n):
            if i > 1:
                if i == 3:
                    break
                t = xetile.init_tile(X, [i * 4, 0], (4, 4))
            else:
                t = xetile.init_tile(X, [i, 0], (4, 4))
            acc = acc + xetile.load_tile(t)
        xetile.store_tile(acc, xetile.init_tile(OUT, [0, 0], (4, 4)))

    X, out = np.arange(64, dtype=np.float32).reshape(16, 4), np.zeros((4, 4), "f4")
    kernel(X, out, 9, backend=backend)
    np.testing.assert_array_equal(out, X[:4] + X[1:5] + X[8:12])


@pytest.mark.parametrize("backend", BACKENDS)
def test_tiles_and_vectors_in_a_while_loop(backend):
    @xetile.kernel(grid=1)
    def kernel(X, OUT, n):
        acc, t, i = xetile.zeros((4, 4)), xetile.init_tile(X, [0, 0], (4, 4)), 0
        while i < n:
            acc = acc + xetile.load_tile(t)
            t = xetile.update_tile_offset(t, [4, 0])
            i += 1
            if acc.max() > 40:
                break
        xetile.store_tile(acc + i, xetile.init_tile(OUT, [0, 0], (4, 4)))

    X, out = np.arange(64, dtype=np.float32).reshape(16, 4), np.zeros((4, 4), "f4")
    kernel(X, out, 9, backend=backend)
    np.testing.assert_array_equal(out, X[:4] + X[4:8] + 2)


@xetile.kernel(grid=lambda m: (cdiv(m.C.shape[0], 32), cdiv(m.C.shape[1], 32)))
def guarded_gemm(A, B, C):
    m, n = xetile.program_id(0) * 32, xetile.program_id(1) * 32
    if m >= C.shape[0]:
        return
    a = xetile.init_tile(A, [m, 0], (32, 32))
    b = xetile.init_tile(B, [0, n], (32, 32))
    acc = xetile.zeros((32, 32), f32)
    for _ in range(0, A.shape[1], 32):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, 32])
        b = xetile.update_tile_offset(b, [32, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (32, 32)))


def test_a_guard_does_not_hinder_raising():
    arrays = [np.ones((64, 64), np.float32) for _ in range(3)]
    text = guarded_gemm.ir("raise-to-brgemm", *arrays)
    assert "xsmm.brgemm" in text
    guarded_gemm(*arrays, backend="cpu")
    assert (arrays[2] == 64).all()

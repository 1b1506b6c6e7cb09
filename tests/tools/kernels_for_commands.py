"""Kernels that commands are given."""

from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32


@xetile.function
def twice(v):
    return v + v


@xetile.kernel(grid=lambda m: (cdiv(m.C.shape[0], m.BM), cdiv(m.C.shape[1], m.BN)))
def gemm(A, B, C, BM: constexpr = 32, BN: constexpr = 32, EPILOGUE: constexpr = None):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, 32))
    b = xetile.init_tile(B, [0, n], (32, BN))
    acc = xetile.zeros((BM, BN), f32)
    for _ in range(0, A.shape[1], 32):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, 32])
        b = xetile.update_tile_offset(b, [32, 0])
    if EPILOGUE is not None:
        acc = EPILOGUE(acc)
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


@xetile.kernel
def scale(X, double, n, flag, Y):
    """One of its parameters is called as a word of C."""
    row = xetile.program_id(0)
    v = xetile.load_tile(xetile.init_tile(X, [row, 0], (1, 16)))
    v = v * double + n
    if flag:
        v = v + 1.0
    xetile.store_tile(v, xetile.init_tile(Y, [row, 0], (1, 16)))


@xetile.kernel
def greek(X, α, β):
    t = xetile.init_tile(X, [0], (16,))
    xetile.store_tile(xetile.load_tile(t) * α + β, t)


@xetile.kernel
def printing(X):
    xetile.device_print("{}", xetile.load_tile(xetile.init_tile(X, [0, 0], (1, 16))))

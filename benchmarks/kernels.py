"""The kernels that are measured."""

from __future__ import annotations

from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32

WG = xetile.wg_map(sg_layout=[8, 4], sg_data=[32, 64])


@xetile.function
def gelu(v):
    """The exact one."""
    return 0.5 * v * (1.0 + xetile.erf(0.7071067811865476 * v))


@xetile.kernel(
    grid=lambda m: (cdiv(m.C.shape[0], m.BM), cdiv(m.C.shape[1], m.BN)),
)
def gemm(
    A,
    B,
    C,
    bias=None,
    EPILOGUE: constexpr = None,
    BM: constexpr = 256,
    BN: constexpr = 256,
    BK: constexpr = 32,
    WG: constexpr = WG,
    SUM: constexpr = f32,
):
    """C = EPILOGUE(A @ B + bias), as the language page has it."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), SUM)
    for _ in range(0, A.shape[1], BK):
        xetile.prefetch_tile(xetile.update_tile_offset(a, [0, 3 * BK]))
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc, wg_map=WG)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    if bias is not None:
        acc = acc + xetile.load_tile(xetile.init_tile(bias, [n], (BN,)))
    if EPILOGUE is not None:
        acc = EPILOGUE(acc)
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


@xetile.kernel
def add(X, Y, Z, SIZE: constexpr = 1024):
    """Z = X + Y."""
    i = xetile.program_id(0) * SIZE
    x = xetile.load_tile(xetile.init_tile(X, [i], (SIZE,)))
    y = xetile.load_tile(xetile.init_tile(Y, [i], (SIZE,)))
    xetile.store_tile(x + y, xetile.init_tile(Z, [i], (SIZE,)))

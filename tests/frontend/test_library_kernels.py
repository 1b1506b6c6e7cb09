"""Whole kernels of the kind users bring: they compile, verify and print."""

import pytest
from building import build

from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32


def softmax(X, Y, N: constexpr = 100, BM: constexpr = 4):
    row = xetile.program_id(0) * BM
    tile = xetile.init_tile(X, [row, 0], (BM, N))
    x = xetile.load_tile(tile, padding=-xetile.inf).to(f32)
    e = xetile.exp(x - x.max(1, keepdims=True))
    y = e / e.sum(axis=-1)[:, None]
    xetile.store_tile(y.to(Y.dtype), xetile.init_tile(Y, [row, 0], (BM, N)))


def online_softmax(X, Y, BM: constexpr = 4, BN: constexpr = 64):
    row = xetile.program_id(0) * BM
    t = xetile.init_tile(X, [row, 0], (BM, BN))
    m = xetile.full((BM, 1), -xetile.inf, f32)
    s = xetile.zeros((BM, 1))
    for _ in range(0, X.shape[1], BN):
        x = xetile.load_tile(t, padding=-xetile.inf)
        new = xetile.maximum(m, x.max(1, keepdims=True))
        s = s * xetile.exp(m - new) + xetile.exp(x - new).sum(1, keepdims=True)
        m = new
        t = xetile.update_tile_offset(t, [0, BN])
    for k in range(X.shape[1] - BN, -1, -BN):
        x = xetile.load_tile(xetile.init_tile(X, [row, k], (BM, BN)))
        xetile.store_tile(
            xetile.exp(x - m) / s, xetile.init_tile(Y, [row, k], (BM, BN))
        )


def cross_entropy(L, T, OUT, G, N: constexpr = 10):
    i = xetile.program_id(0)
    tile = xetile.init_tile(L, [i, 0], (1, N))
    x = xetile.load_tile(tile, padding=-xetile.inf)
    hit = xetile.arange(N)[None, :] == T[i]
    m = xetile.max(x, 1, keepdims=True)
    lse = xetile.log(xetile.sum(xetile.exp(x - m), 1, keepdims=True)) + m
    loss = lse - xetile.where(hit, x, 0.0).sum()
    xetile.store_tile(loss, xetile.init_tile(OUT, [i, 0], (1, 1)))
    g = (xetile.exp(x - lse) - xetile.where(hit, 1.0, 0.0)) / L.shape[0]
    xetile.store_tile(g, xetile.init_tile(G, [i, 0], (1, N)))


def layer_norm(X, W, B, Y, eps, N: constexpr = 128):
    i = xetile.program_id(0)
    x = xetile.load_tile(xetile.init_tile(X[i], [0], (N,)))
    inside = xetile.arange(N) < X.shape[1]
    d = xetile.where(inside, x - x.sum(0) / X.shape[1], 0.0)
    y = d * xetile.rsqrt((d**2).sum() / X.shape[1] + eps)
    y *= xetile.load_tile(xetile.init_tile(W, [0], (N,)))
    y += xetile.load_tile(xetile.init_tile(B, [0], [N]))
    xetile.store_tile(y, xetile.init_tile(Y[i], [0], (N,)))


def weight_gradient(
    X, DY, DW, BM: constexpr = 32, BN: constexpr = 32, BK: constexpr = 16
):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(X.T, [m, 0], (BM, BK))
    b = xetile.init_tile(DY, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN))
    for _ in range(cdiv(X.shape[0], BK)):
        acc += xetile.load_tile(a) @ xetile.load_tile(b)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    xetile.store_tile(acc, xetile.init_tile(DW, [m, n], (BM, BN)))


def attention(Q, K, V, OUT, scale, B: constexpr = 16, D: constexpr = 64):
    b, h = xetile.program_id(0), xetile.program_id(1)
    row = xetile.program_id(2) * B
    q = xetile.load_tile(xetile.init_tile(Q[b, h], [row, 0], (B, D)))
    k = xetile.init_tile(K[b, h].T, [0, 0], (D, B))
    v = xetile.init_tile(V[b, h], [0, 0], (B, D))
    m, s = xetile.full((B, 1), -xetile.inf, f32), xetile.zeros((B, 1))
    acc = xetile.zeros((B, D))
    for start in range(0, K.shape[2], B):
        p = xetile.tile_mma(q, xetile.load_tile(k)) * scale
        p = xetile.where(xetile.arange(B) + start < K.shape[2], p, -xetile.inf)
        new = xetile.maximum(m, p.max(1, keepdims=True))
        p, old = xetile.exp(p - new), xetile.exp(m - new)
        s = s * old + p.sum(1, keepdims=True)
        acc = xetile.tile_mma(p.to(V.dtype), xetile.load_tile(v), acc * old)
        m = new
        k = xetile.update_tile_offset(k, [0, B])
        v = xetile.update_tile_offset(v, [B, 0])
    out = xetile.init_tile(OUT[b, h], [row, 0], (B, D))
    xetile.store_tile((acc / s).to(OUT.dtype), out)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_softmax(dtype):
    build(softmax, X=f"{dtype} 2", Y=f"{dtype} 2")


def test_online_softmax():
    build(online_softmax, X="f32 2", Y="f32 2")


def test_cross_entropy():
    build(cross_entropy, L="f32 2", T="i32 1", OUT="f32 2", G="f32 2")


def test_layer_norm():
    build(layer_norm, X="f32 2", W="f32 1", B="f32 1", Y="f32 2", eps="f64")


@pytest.mark.parametrize("layout", ["", "T", "S"])
def test_weight_gradient(layout):
    build(weight_gradient, X=f"f32 2 {layout}", DY="f32 2", DW="f32 2")


def test_attention():
    arrays = dict.fromkeys(["Q", "K", "V", "OUT"], "bf16 4")
    build(attention, **arrays, scale="f64")

"""Kernels that several files of tests use, and their signatures for arguments."""

import numpy as np

from xetl import xetile
from xetl.language.dtypes import DType
from xetl.language.signature import ArrayParam, ConstParam, ScalarParam, Signature
from xetl.xetile import cdiv, constexpr, f32


def signature_of(kernel, args):
    """What the runtime would specialise for."""
    names = kernel.__code__.co_varnames[: kernel.__code__.co_argcount]
    values = [*args, *(kernel.__defaults__ or ())[len(args) - len(names) :]]
    if len(args) == len(names):
        values = list(args)
    return Signature(tuple(map(_parameter, names, values)))


def _parameter(name, value):
    if isinstance(value, np.ndarray):
        steps = [s // value.itemsize for s in value.strides]
        unit = max((d for d, s in enumerate(steps) if s == 1), default=None)
        return ArrayParam(name, DType.of(value.dtype), value.ndim, unit)
    if isinstance(value, Scalar):
        return ScalarParam(name, value.kind)
    return ConstParam(name, value)


class Scalar:
    """A number that is an argument at run time."""

    def __init__(self, value, kind):
        self.value, self.kind = value, kind


def runtime_values(args):
    """Fresh copies of the arguments, as `run_module` takes them."""
    made = []
    for arg in args:
        if isinstance(arg, np.ndarray):
            made.append(arg.copy(order="K"))
        elif isinstance(arg, Scalar):
            made.append(arg.value)
    return made


def gemm(A, B, C, BM: constexpr = 32, BN: constexpr = 16, BK: constexpr = 16):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), f32)
    for _ in range(0, A.shape[1], BK):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


def gemm_bias_relu(A, B, BIAS, C, BM: constexpr = 16, BN: constexpr = 32):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, 32))
    b = xetile.init_tile(B, [0, n], (32, BN))
    acc = xetile.zeros((BM, BN), f32)
    for _ in range(cdiv(A.shape[1], 32)):
        acc += xetile.load_tile(a) @ xetile.load_tile(b)
        a = xetile.update_tile_offset(a, [0, 32])
        b = xetile.update_tile_offset(b, [32, 0])
    acc = acc + xetile.load_tile(xetile.init_tile(BIAS, [n], (BN,)))
    acc = xetile.maximum(acc, 0.0)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


def gemm_transposed(A, B, C, BM: constexpr = 16, BN: constexpr = 16):
    """C = A.T @ B.T, the second one transposed as a value."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A.T, [m, 0], (BM, 16))
    b = xetile.init_tile(B, [n, 0], (BN, 16))
    acc = xetile.zeros((BM, BN), f32)
    for _ in range(0, A.shape[0], 16):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b).T, acc)
        a = xetile.update_tile_offset(a, [0, 16])
        b = xetile.update_tile_offset(b, [0, 16])
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


def batched(A, B, C, BM: constexpr = 16, BN: constexpr = 16):
    """One matrix of a batch for each program along z."""
    z = xetile.program_id(2)
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A[z], [m, 0], (BM, 16))
    b = xetile.init_tile(B[z], [0, n], (16, BN))
    acc = xetile.zeros((BM, BN), f32)
    for _ in range(0, A.shape[2], 16):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, 16])
        b = xetile.update_tile_offset(b, [16, 0])
    xetile.store_tile(acc, xetile.init_tile(C[z], [m, n], (BM, BN)))


def elementwise(X, Y, OUT, ALPHA, BM: constexpr = 8, BN: constexpr = 32):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    x = xetile.load_tile(xetile.init_tile(X, [m, n], (BM, BN)))
    y = xetile.load_tile(xetile.init_tile(Y, [m, n], (BM, BN)), padding=1)
    z = xetile.where(x > y, x * ALPHA, x - y) / 2
    xetile.store_tile(z.to(OUT.dtype), xetile.init_tile(OUT, [m, n], (BM, BN)))


def softmax(X, Y, N: constexpr = 70, BM: constexpr = 4):
    row = xetile.program_id(0) * BM
    tile = xetile.init_tile(X, [row, 0], (BM, N))
    x = xetile.load_tile(tile, padding=-xetile.inf).to(f32)
    e = xetile.exp(x - x.max(1, keepdims=True))
    y = e / e.sum(axis=-1)[:, None]
    xetile.store_tile(y.to(Y.dtype), xetile.init_tile(Y, [row, 0], (BM, N)))


def column_sums(X, OUT, BM: constexpr = 16, BN: constexpr = 24):
    n = xetile.program_id(0) * BN
    tile = xetile.init_tile(X, [0, n], (BM, BN))
    total = xetile.zeros((1, BN), f32)
    for _ in range(0, X.shape[0], BM):
        total += xetile.tile_reduce("add", xetile.load_tile(tile), [0])
        tile = xetile.update_tile_offset(tile, [BM, 0])
    xetile.store_tile(total, xetile.init_tile(OUT, [0, n], (1, BN)))


def transpose(X, OUT, BM: constexpr = 8, BN: constexpr = 24):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    x = xetile.load_tile(xetile.init_tile(X, [m, n], (BM, BN)))
    xetile.store_tile(x.T, xetile.init_tile(OUT, [n, m], (BN, BM)))


def integers(X, Y, OUT, N: constexpr = 33):
    i = xetile.program_id(0) * N
    x = xetile.load_tile(xetile.init_tile(X, [i], (N,)))
    y = xetile.load_tile(xetile.init_tile(Y, [i], (N,)))
    z = (x // y) * 3 + x % y - (x & y) + (x >> 2) + xetile.minimum(x, y)
    xetile.store_tile(z, xetile.init_tile(OUT, [i], (N,)))


def gather_rows(X, INDEX, OUT, N: constexpr = 20):
    """OUT[i] = X[INDEX[i]] where that is positive, and X[0] scaled elsewhere."""
    i = xetile.program_id(0) * N
    index = xetile.load_tile(xetile.init_tile(INDEX, [i], (N,)), padding=-1)
    mask = index > 0
    got = xetile.load_gather(xetile.init_tile(X, index), mask, padding=5)
    place = xetile.arange(N) + i
    inside = place < OUT.shape[0]
    xetile.store_scatter(got, inside, xetile.init_tile(OUT, place))


def loop_and_branch(X, OUT, COUNT, N: constexpr = 19):
    i = xetile.program_id(0)
    x = xetile.load_tile(xetile.init_tile(X[i], [0], (N,)))
    total = xetile.zeros((N,), f32)
    for step in range(COUNT):
        if (step + i) % 2 == 0:
            total = total + x
        else:
            total *= 2.0
            total -= x
    xetile.store_tile(total, xetile.init_tile(OUT[i], [0], (N,)))


def layer_norm(X, W, B, Y, eps, N: constexpr = 40):
    i = xetile.program_id(0)
    x = xetile.load_tile(xetile.init_tile(X[i], [0], (N,)))
    inside = xetile.arange(N) < X.shape[1]
    d = xetile.where(inside, x - x.sum(0) / X.shape[1], 0.0)
    y = d * xetile.rsqrt((d**2).sum() / X.shape[1] + eps)
    y *= xetile.load_tile(xetile.init_tile(W, [0], (N,)))
    y += xetile.load_tile(xetile.init_tile(B, [0], [N]))
    xetile.store_tile(y, xetile.init_tile(Y[i], [0], (N,)))


def attention(Q, K, V, OUT, scale, B: constexpr = 16, D: constexpr = 24):
    row = xetile.program_id(0) * B
    q = xetile.load_tile(xetile.init_tile(Q, [row, 0], (B, D)))
    k = xetile.init_tile(K.T, [0, 0], (D, B))
    v = xetile.init_tile(V, [0, 0], (B, D))
    m, s = xetile.full((B, 1), -xetile.inf, f32), xetile.zeros((B, 1))
    acc = xetile.zeros((B, D))
    for start in range(0, K.shape[0], B):
        p = xetile.tile_mma(q, xetile.load_tile(k)) * scale
        p = xetile.where(xetile.arange(B) + start < K.shape[0], p, -xetile.inf)
        new = xetile.maximum(m, p.max(1, keepdims=True))
        p, old = xetile.exp(p - new), xetile.exp(m - new)
        s = s * old + p.sum(1, keepdims=True)
        acc = xetile.tile_mma(p.to(V.dtype), xetile.load_tile(v), acc * old)
        m = new
        k = xetile.update_tile_offset(k, [0, B])
        v = xetile.update_tile_offset(v, [B, 0])
    out = xetile.init_tile(OUT, [row, 0], (B, D))
    xetile.store_tile((acc / s).to(OUT.dtype), out)


def attention_of_heads(Q, K, V, OUT, scale, B: constexpr = 16, D: constexpr = 64):
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


def in_place_scan(X, N: constexpr = 16):
    """Each row tile adds what the one before it has left: order matters."""
    tile = xetile.init_tile(X, [0, 0], (1, N))
    total = xetile.zeros((1, N), f32)
    for _ in range(X.shape[0]):
        total += xetile.load_tile(tile)
        xetile.store_tile(total, tile)
        tile = xetile.update_tile_offset(tile, [1, 0])


def integer_gemm(A, B, C, BM: constexpr = 16, BN: constexpr = 16):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, 16))
    b = xetile.init_tile(B, [0, n], (16, BN))
    acc = xetile.zeros((BM, BN), xetile.i32)
    for _ in range(0, A.shape[1], 16):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, 16])
        b = xetile.update_tile_offset(b, [16, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


def double_gemm(A, B, C, BM: constexpr = 16, BN: constexpr = 16):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, 16))
    b = xetile.init_tile(B, [0, n], (16, BN))
    acc = xetile.zeros((BM, BN), xetile.f64)
    for _ in range(0, A.shape[1], 16):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, 16])
        b = xetile.update_tile_offset(b, [16, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


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


def mma_of_values(A, B, C, BM: constexpr = 8, BN: constexpr = 16, K: constexpr = 40):
    """Both operands are computed; one of them is a transposed value."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.load_tile(xetile.init_tile(A, [m, 0], (BM, K)))
    b = xetile.load_tile(xetile.init_tile(B, [n, 0], (BN, K)))
    product = xetile.tile_mma(a + a, b.T) - 3.0
    xetile.store_tile(product, xetile.init_tile(C, [m, n], (BM, BN)))


def online_softmax(X, Y, BM: constexpr = 4, BN: constexpr = 16):
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
    # From the back, and over the front edge.
    for k in range(X.shape[1] - BN, -BN, -BN):
        x = xetile.load_tile(xetile.init_tile(X, [row, k], (BM, BN)))
        out = xetile.init_tile(Y, [row, k], (BM, BN))
        xetile.store_tile(xetile.exp(x - m) / s, out)


def log_softmax_backward(L, T, OUT, G, N: constexpr = 10):
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


ALL_REDUCTIONS = ("add", "mul", "max", "min", "and", "or", "xor")


def reduction(X, OUT, KIND: constexpr, DIM: constexpr, SHAPE: constexpr):
    m, n = xetile.program_id(0) * 24, xetile.program_id(1) * 20
    x = xetile.load_tile(xetile.init_tile(X, [m, n], (24, 20)), padding=1)
    reduced = xetile.tile_reduce(KIND, x, [DIM])
    at = [0, n] if DIM == 0 else [m, 0]
    xetile.store_tile(reduced, xetile.init_tile(OUT, at, SHAPE))


def arg_extremum(X, OUT, BM: constexpr = 8, N: constexpr = 40):
    m = xetile.program_id(0) * BM
    x = xetile.load_tile(xetile.init_tile(X, [m, 0], (BM, N)))
    found = x.argmax(1) * 100 + x.argmin(1)
    xetile.store_tile(found, xetile.init_tile(OUT, [m], (BM,)))


def outer_product(X, Y, OUT, BM: constexpr = 8, BN: constexpr = 24):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    x = xetile.load_tile(xetile.init_tile(X, [m], (BM,)))
    y = xetile.load_tile(xetile.init_tile(Y, [n], (BN,)))
    z = x[:, None] * y[None, :] + xetile.arange(BN).to(f32)
    xetile.store_tile(z, xetile.init_tile(OUT, [m, n], (BM, BN)))


def reshaped(X, OUT):
    x = xetile.load_tile(xetile.init_tile(X, [0, 0], (8, 12)))
    y = xetile.reshape(x, (6, 16)) * 2.0
    y = y.T + xetile.reshape(x, (16, 6))
    xetile.store_tile(xetile.reshape(y, (96,)), xetile.init_tile(OUT, [0], (96,)))


def nested_loops(X, OUT, BM: constexpr = 8, BN: constexpr = 16):
    for m in range(0, X.shape[0], BM):
        total = xetile.zeros((BM, 1), f32)
        for n in range(0, X.shape[1], BN):
            x = xetile.load_tile(xetile.init_tile(X, [m, n], (BM, BN)))
            total += x.sum(1, keepdims=True)
        for n in range(0, X.shape[1], BN):
            x = xetile.load_tile(xetile.init_tile(X, [m, n], (BM, BN)))
            xetile.store_tile(x - total, xetile.init_tile(OUT, [m, n], (BM, BN)))


def swapped_tiles(X, Y, OUT, STEPS, BM: constexpr = 8, BN: constexpr = 16):
    """Loop-carried tiles of two matrices change places in each trip."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(X, [m, n], (BM, BN))
    b = xetile.init_tile(Y, [m, n], (BM, BN))
    total = xetile.zeros((BM, BN), f32)
    for step in range(STEPS):
        total = total * 2.0 + xetile.load_tile(a) + step
        a, b = b, a
    xetile.store_tile(total, xetile.init_tile(OUT, [m, n], (BM, BN)))


def shared_memory(X, OUT, BM: constexpr = 8, BN: constexpr = 16):
    """A transpose by way of shared memory."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    shared = xetile.slm((BM, BN), f32)
    x = xetile.load_tile(xetile.init_tile(X, [m, n], (BM, BN)))
    xetile.store_tile(x, xetile.init_tile(shared, [0, 0], (BM, BN)))
    xetile.barrier()
    turned = xetile.load_tile(xetile.init_tile(shared.T, [0, 0], (BN, BM)))
    xetile.store_tile(turned + 1.0, xetile.init_tile(OUT, [n, m], (BN, BM)))

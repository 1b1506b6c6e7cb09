"""The derivative of attention: probabilities are computed again, block by block."""

from __future__ import annotations

from xetl import xetile
from xetl.ops.attention_kernel import dropout_factors, is_seen
from xetl.ops.product import matrix
from xetl.xetile import Array, Vector, constexpr


@xetile.function
def log2_scores(
    q: Vector,
    k: Vector,
    bias: Array | None,
    m: int,
    n: int,
    keys: int,
    factor: float,
    LEFT: constexpr,
    RIGHT: constexpr,
) -> Vector:
    """What powers of two are taken of: scores, biased and masked, times log2(e)."""
    scores = xetile.tile_mma(q, k.T) * factor
    if bias is not None:
        added = xetile.load_tile(xetile.init_tile(bias, [m, n], scores.shape))
        if bias.dtype == xetile.i1:
            scores = xetile.where(added, scores, -xetile.inf)
        else:
            scores = scores + added.to(scores.dtype) * 1.4426950408889634
    column = xetile.arange(scores.shape[1])[None, :] + n
    seen = column < keys
    if LEFT is not None or RIGHT is not None:
        row = xetile.arange(scores.shape[0])[:, None] + m
        seen = seen & is_seen(column, row, LEFT, RIGHT)
    return xetile.where(seen, scores, -xetile.inf)


@xetile.function
def log2_of_sums(
    rows: Vector,
    keys: Array,
    bias: Array | None,
    m: int,
    factor: float,
    LEFT: constexpr,
    RIGHT: constexpr,
    ACC: constexpr,
    BN: constexpr,
) -> Vector:
    """log2 of the sum of powers of each query; infinite where it sees no key."""
    largest = xetile.full((rows.shape[0], 1), -xetile.inf, ACC)
    total = xetile.zeros((rows.shape[0], 1), ACC)
    start, end = 0, keys.shape[0]
    if RIGHT is not None:
        end = min(end, m + rows.shape[0] + RIGHT)
    if LEFT is not None:
        start = max(m - LEFT, 0) // BN * BN
    for n in range(start, end, BN):
        tile = xetile.init_tile(keys, [n, 0], (BN, rows.shape[1]))
        block = xetile.load_tile(tile).to(ACC)
        power = log2_scores(rows, block, bias, m, n, keys.shape[0], factor, LEFT, RIGHT)
        new = xetile.maximum(largest, power.max(1, keepdims=True))
        shift = xetile.where(new == -xetile.inf, 0.0, new)
        fade = xetile.exp2(largest - shift)
        total = total * fade + xetile.exp2(power - shift).sum(1, keepdims=True)
        largest = new
    return xetile.where(total == 0, xetile.inf, largest + xetile.log2(total))


@xetile.kernel
def attention_backward(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None,
    out: Array,
    grad: Array,
    seed: Array | None,
    sums: Array,
    by_q: Array,
    by_k: Array,
    by_v: Array,
    factor: float,
    scale: float,
    p: float,
    LEFT: constexpr,
    RIGHT: constexpr,
    ACC: constexpr,
    BM: constexpr,
    BN: constexpr,
    D: constexpr,
    E: constexpr,
) -> None:
    """The gradients of attention; a program makes those of one matrix of a batch.

    With e = softmax(scores), g = grad and d = rowsum(g * out) they are v: ``e.T @ g``,
    q: ``s @ k`` and k: ``s.T @ q`` with ``s = e * (g @ v.T - d) * scale`` (Dao et al.).
    Powers are computed again from scores; nothing of s x t stands in memory.

    Args:
        q: (b, s, D); the others likewise, of one dtype.
        k: (b, t, D).
        v: (b, t, E).
        bias: see `attention`; (b, s, t) or (s, t).
        out: (b, s, E), the result.
        grad: (b, s, E), the gradient that comes in.
        seed: see `attention_with_options`; so are ``p``, LEFT and RIGHT.
        sums: (b, s, 2), temporary: log2 of the sum of powers, and d.
        by_q: (b, s, D), of ``ACC``.
        by_k: (b, t, D).
        by_v: (b, t, E).
        factor: scale * log2(e).
        scale: what scores are multiplied by.
        p: of dropout.
        LEFT: of a window.
        RIGHT: of a window.
        ACC: the dtype that is computed in.
        BM: queries of a block.
        BN: keys of a block.
        D: columns of ``q`` and ``k``.
        E: columns of ``v`` and ``out``.
    """
    b = xetile.program_id(0)
    queries, keys, values, results = q[b], k[b], v[b], out[b]
    grads, kept, to_q = grad[b], sums[b], by_q[b]
    added = None if bias is None else matrix(bias, b)
    s, t = queries.shape[0], keys.shape[0]
    for m in range(0, s, BM):
        rows = xetile.load_tile(xetile.init_tile(queries, [m, 0], (BM, D))).to(ACC)
        norm = log2_of_sums(rows, keys, added, m, factor, LEFT, RIGHT, ACC, BN)
        g = xetile.load_tile(xetile.init_tile(grads, [m, 0], (BM, E))).to(ACC)
        y = xetile.load_tile(xetile.init_tile(results, [m, 0], (BM, E))).to(ACC)
        d = (g * y).sum(1, keepdims=True)
        xetile.store_tile(norm, xetile.init_tile(kept, [m, 0], (BM, 1)))
        xetile.store_tile(d, xetile.init_tile(kept, [m, 1], (BM, 1)))
        zeros = xetile.zeros((BM, D), ACC)
        xetile.store_tile(zeros, xetile.init_tile(to_q, [m, 0], (BM, D)))
    for n in range(0, t, BN):
        block = xetile.load_tile(xetile.init_tile(keys, [n, 0], (BN, D))).to(ACC)
        value = xetile.load_tile(xetile.init_tile(values, [n, 0], (BN, E))).to(ACC)
        dk, dv = xetile.zeros((BN, D), ACC), xetile.zeros((BN, E), ACC)
        start = 0 if RIGHT is None else max(n - RIGHT, 0) // BM * BM
        end = s if LEFT is None else min(s, n + BN + LEFT)
        for m in range(start, end, BM):
            rows = xetile.load_tile(xetile.init_tile(queries, [m, 0], (BM, D))).to(ACC)
            g = xetile.load_tile(xetile.init_tile(grads, [m, 0], (BM, E))).to(ACC)
            norm = xetile.load_tile(xetile.init_tile(kept, [m, 0], (BM, 1)))
            d = xetile.load_tile(xetile.init_tile(kept, [m, 1], (BM, 1)))
            power = log2_scores(rows, block, added, m, n, t, factor, LEFT, RIGHT)
            e = xetile.exp2(power - norm)
            by_e = xetile.tile_mma(g, value.T)
            left = e
            if seed is not None:
                factors = dropout_factors(seed, b, m, n, t, p, e)
                left, by_e = e * factors, by_e * factors
            dv = xetile.tile_mma(left.T, g, dv)
            ds = e * (by_e - d) * scale
            dk = xetile.tile_mma(ds.T, rows, dk)
            tile = xetile.init_tile(to_q, [m, 0], (BM, D))
            dq = xetile.tile_mma(ds, block, xetile.load_tile(tile))
            xetile.store_tile(dq, tile)
        xetile.store_tile(dk.to(by_k.dtype), xetile.init_tile(by_k[b], [n, 0], (BN, D)))
        xetile.store_tile(dv.to(by_v.dtype), xetile.init_tile(by_v[b], [n, 0], (BN, E)))

"""The kernel behind `xetl.ops.scaled_dot_product_attention`.

A program goes with some queries over all keys, block by block (FlashAttention: Dao et
al., arXiv 2205.14135): scores never stand in memory as a whole. It keeps, for each
query, the largest score so far, the sum of the exponentials and the weighted sum of
values; when a larger score comes, both sums fade by the power of the difference.
"""

from __future__ import annotations

from xetl import xetile
from xetl.ops.product import matrix
from xetl.xetile import Array, Vector, constexpr

LEAST = -3e38
"""The largest score before any is seen: finite, for inf - inf would be NaN."""

COARSE = 2.0**27
"""Powers of two from here on are rounded to multiples of 8, in f32."""


@xetile.function
def attend(
    q: Vector,
    keys: Array,
    values: Array,
    bias: Array | None,
    n: int,
    first: int,
    largest: Vector,
    total: Vector,
    acc: Vector,
    factor: float,
    bias_factor: float,
    MASKED: constexpr,
    CAUSAL: constexpr,
    NEGATIVE: constexpr,
    BN: constexpr,
) -> tuple[Vector, Vector, Vector]:
    """One block of keys from ``n`` on; returns what has become of the three sums."""
    k = xetile.load_tile(xetile.init_tile(keys, [n, 0], (BN, q.shape[1])))
    scores = xetile.tile_mma(q, k.T)
    if NEGATIVE:
        scores = -scores
    if bias is not None:
        added = xetile.load_tile(xetile.init_tile(bias, [first, n], scores.shape))
        if bias.dtype == xetile.i1:
            scores = xetile.where(added, scores, -xetile.inf)
        else:
            scores = scores + added.to(scores.dtype) * bias_factor
    if MASKED:
        column = xetile.arange(BN)[None, :] + n
        seen = column < keys.shape[0]
        if CAUSAL:
            seen = seen & (column <= xetile.arange(q.shape[0])[:, None] + first)
        scores = xetile.where(seen, scores, -xetile.inf)
    # A score that is NaN shows in `p`, so the largest need not be NaN.
    best = scores.max(1, keepdims=True, propagate_nan=False)
    new = xetile.maximum(largest, best, propagate_nan=False)
    # `new * by` is rounded, for all keys alike: that fades out. Of scores so large that
    # exp2 could overflow by it only the largest count, whatever they are scaled by.
    scale = xetile.full(new.shape, factor, new.dtype)
    by = xetile.where(abs(new) * factor < COARSE, scale, 1.0)
    shift = new * by
    p = xetile.exp2(scores * by - shift)
    fade = xetile.exp2(largest * by - shift)
    v = xetile.load_tile(xetile.init_tile(values, [n, 0], (BN, acc.shape[1])))
    acc = xetile.tile_mma(p.to(values.dtype), v, acc * fade)
    return new, total * fade + p.sum(1, keepdims=True), acc


@xetile.kernel
def attention(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None,
    out: Array,
    factor: float,
    bias_factor: float,
    CAUSAL: constexpr,
    NEGATIVE: constexpr,
    ACC: constexpr,
    BM: constexpr,
    BN: constexpr,
    D: constexpr,
    E: constexpr,
) -> None:
    """``out = softmax(q @ k.T * scale) @ v`` for each matrix of a batch.

    Args:
        q: (..., s, D).
        k: (..., t, D), dtype of ``q``.
        v: (..., t, E), dtype of ``q``.
        bias: (..., s, t), what is added to scores, or i1: which keys are seen; None.
        out: (..., s, E); 0 where no key is seen.
        factor: size of scale * log2(e), more than 0; powers of two are cheaper than
            those of e.
        bias_factor: log2(e) / factor.
        CAUSAL: whether query i sees only the keys up to i.
        NEGATIVE: whether the scale is.
        ACC: the dtype that is computed in.
        BM: queries of a program.
        BN: keys of a block.
        D: columns of ``q`` and ``k``.
        E: columns of ``v`` and ``out``.
    """
    first, number = xetile.program_id(0) * BM, xetile.program_id(1)
    keys, values = matrix(k, number), matrix(v, number)
    queries, to = matrix(q, number), matrix(out, number)
    added = None if bias is None else matrix(bias, number)
    rows = xetile.load_tile(xetile.init_tile(queries, [first, 0], (BM, D)))
    largest = xetile.full((BM, 1), LEAST, ACC)
    total = xetile.zeros((BM, 1), ACC)
    acc = xetile.zeros((BM, E), ACC)
    end = keys.shape[0]
    whole = end // BN * BN
    if CAUSAL:
        end, whole = min(end, first + BM), min(whole, (first + 1) // BN * BN)
    # Blocks that every query sees as a whole need no mask.
    for n in range(0, whole, BN):
        largest, total, acc = attend(
            rows,
            keys,
            values,
            added,
            n,
            first,
            largest,
            total,
            acc,
            factor,
            bias_factor,
            False,
            CAUSAL,
            NEGATIVE,
            BN,
        )
    for n in range(whole, end, BN):
        largest, total, acc = attend(
            rows,
            keys,
            values,
            added,
            n,
            first,
            largest,
            total,
            acc,
            factor,
            bias_factor,
            True,
            CAUSAL,
            NEGATIVE,
            BN,
        )
    result = xetile.where(total == 0, 0.0, acc / total).to(out.dtype)
    xetile.store_tile(result, xetile.init_tile(to, [first, 0], (BM, E)))


@xetile.function
def log2_scores(
    q: Vector,
    k: Vector,
    bias: Array | None,
    m: int,
    n: int,
    keys: int,
    factor: float,
    CAUSAL: constexpr,
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
    if CAUSAL:
        seen = seen & (column <= xetile.arange(scores.shape[0])[:, None] + m)
    return xetile.where(seen, scores, -xetile.inf)


@xetile.function
def log2_of_sums(
    rows: Vector,
    keys: Array,
    bias: Array | None,
    m: int,
    factor: float,
    CAUSAL: constexpr,
    ACC: constexpr,
    BN: constexpr,
) -> Vector:
    """log2 of the sum of powers of each query; infinite where it sees no key."""
    largest = xetile.full((rows.shape[0], 1), -xetile.inf, ACC)
    total = xetile.zeros((rows.shape[0], 1), ACC)
    end = keys.shape[0]
    if CAUSAL:
        end = min(end, m + rows.shape[0])
    for n in range(0, end, BN):
        tile = xetile.init_tile(keys, [n, 0], (BN, rows.shape[1]))
        block = xetile.load_tile(tile).to(ACC)
        power = log2_scores(rows, block, bias, m, n, keys.shape[0], factor, CAUSAL)
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
    sums: Array,
    by_q: Array,
    by_k: Array,
    by_v: Array,
    factor: float,
    scale: float,
    CAUSAL: constexpr,
    ACC: constexpr,
    BM: constexpr,
    BN: constexpr,
    D: constexpr,
    E: constexpr,
) -> None:
    """The gradients of attention; a program makes those of one matrix of a batch.

    With p = softmax(scores), g = grad and d = rowsum(g * out) they are v: ``p.T @ g``,
    q: ``s @ k`` and k: ``s.T @ q`` with ``s = p * (g @ v.T - d) * scale`` (Dao et al.).
    Powers are computed again from scores; nothing of s x t stands in memory.

    Args:
        q: (b, s, D); the others likewise, of one dtype.
        k: (b, t, D).
        v: (b, t, E).
        bias: see `attention`; (b, s, t) or (s, t).
        out: (b, s, E), the result.
        grad: (b, s, E), the gradient that comes in.
        sums: (b, s, 2), temporary: log2 of the sum of powers, and d.
        by_q: (b, s, D), of ``ACC``.
        by_k: (b, t, D).
        by_v: (b, t, E).
        factor: scale * log2(e).
        scale: what scores are multiplied by.
        CAUSAL: whether query i sees only the keys up to i.
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
        norm = log2_of_sums(rows, keys, added, m, factor, CAUSAL, ACC, BN)
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
        start = n // BM * BM if CAUSAL else 0
        for m in range(start, s, BM):
            rows = xetile.load_tile(xetile.init_tile(queries, [m, 0], (BM, D))).to(ACC)
            g = xetile.load_tile(xetile.init_tile(grads, [m, 0], (BM, E))).to(ACC)
            norm = xetile.load_tile(xetile.init_tile(kept, [m, 0], (BM, 1)))
            d = xetile.load_tile(xetile.init_tile(kept, [m, 1], (BM, 1)))
            power = log2_scores(rows, block, added, m, n, t, factor, CAUSAL)
            p = xetile.exp2(power - norm)
            dv = xetile.tile_mma(p.T, g, dv)
            ds = p * (xetile.tile_mma(g, value.T) - d) * scale
            dk = xetile.tile_mma(ds.T, rows, dk)
            tile = xetile.init_tile(to_q, [m, 0], (BM, D))
            dq = xetile.tile_mma(ds, block, xetile.load_tile(tile))
            xetile.store_tile(dq, tile)
        xetile.store_tile(dk.to(by_k.dtype), xetile.init_tile(by_k[b], [n, 0], (BN, D)))
        xetile.store_tile(dv.to(by_v.dtype), xetile.init_tile(by_v[b], [n, 0], (BN, E)))

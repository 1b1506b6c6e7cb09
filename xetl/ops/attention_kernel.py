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


@xetile.function
def attend(
    q: Vector,
    keys: Array,
    values: Array,
    n: int,
    first: int,
    largest: Vector,
    total: Vector,
    acc: Vector,
    factor: float,
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
    if MASKED:
        column = xetile.arange(BN)[None, :] + n
        seen = column < keys.shape[0]
        if CAUSAL:
            seen = seen & (column <= xetile.arange(q.shape[0])[:, None] + first)
        scores = xetile.where(seen, scores, -xetile.inf)
    new = xetile.maximum(largest, scores.max(1, keepdims=True))
    # Where nothing is seen yet, inf - inf would be NaN.
    shift = xetile.where(new == -xetile.inf, 0.0, new)
    # Scaled after the difference is taken: of the largest, it is 0, not a rounding.
    p = xetile.exp2((scores - shift) * factor)
    fade = xetile.exp2((largest - shift) * factor)
    v = xetile.load_tile(xetile.init_tile(values, [n, 0], (BN, acc.shape[1])))
    acc = xetile.tile_mma(p.to(values.dtype), v, acc * fade)
    return new, total * fade + p.sum(1, keepdims=True), acc


@xetile.kernel
def attention(
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    factor: float,
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
        out: (..., s, E).
        factor: size of scale * log2(e), more than 0; powers of two are cheaper than
            those of e.
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
    rows = xetile.load_tile(xetile.init_tile(queries, [first, 0], (BM, D)))
    largest = xetile.full((BM, 1), -xetile.inf, ACC)
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
            n,
            first,
            largest,
            total,
            acc,
            factor,
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
            n,
            first,
            largest,
            total,
            acc,
            factor,
            True,
            CAUSAL,
            NEGATIVE,
            BN,
        )
    result = (acc / total).to(out.dtype)
    xetile.store_tile(result, xetile.init_tile(to, [first, 0], (BM, E)))

"""The derivative of attention: probabilities are computed again, block by block."""

from __future__ import annotations

from xetl import xetile
from xetl.ops.attention.kernel import dropout_factors, is_seen
from xetl.ops.matrices import matrix, put, take
from xetl.xetile import Array, Vector, constexpr


@xetile.function
def log2_scores(
    q: Vector,
    k: Vector,
    bias: Array | None,
    m: int,
    n: int,
    shift: int,
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
        row = xetile.arange(scores.shape[0])[:, None] + (m + shift)
        seen = seen & is_seen(column, row, LEFT, RIGHT)
    return xetile.where(seen, scores, -xetile.inf)


@xetile.function
def log2_of_sums(
    rows: Vector,
    keys: Array,
    bias: Array | None,
    m: int,
    shift: int,
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
        end = min(end, m + shift + rows.shape[0] + RIGHT)
    if LEFT is not None:
        start = max(m + shift - LEFT, 0) // BN * BN
    for n in range(start, end, BN):
        block, t = take(keys, [n, 0], (BN, rows.shape[1]), rows.dtype), keys.shape[0]
        power = log2_scores(rows, block, bias, m, n, shift, t, factor, LEFT, RIGHT)
        new = xetile.maximum(largest, power.max(1, keepdims=True))
        less = xetile.where(new == -xetile.inf, 0.0, new)
        fade = xetile.exp2(largest - less)
        total = total * fade + xetile.exp2(power - less).sum(1, keepdims=True)
        largest = new
    return xetile.where(total == 0, xetile.inf, largest + xetile.log2(total))


@xetile.function
def rows_of(
    queries: Array,
    keys: Array,
    added: Array | None,
    results: Array,
    grads: Array,
    kept: Array,
    to_q: Array,
    shift: int,
    factor: float,
    LEFT: constexpr,
    RIGHT: constexpr,
    MUL: constexpr,
    ACC: constexpr,
    BM: constexpr,
    BN: constexpr,
    D: constexpr,
    E: constexpr,
) -> None:
    """What all blocks of keys need of each query, to ``kept``; ``to_q`` is cleared."""
    for m in range(0, queries.shape[0], BM):
        rows = take(queries, [m, 0], (BM, D), MUL)
        norm = log2_of_sums(rows, keys, added, m, shift, factor, LEFT, RIGHT, ACC, BN)
        g = take(grads, [m, 0], (BM, E), ACC)
        y = take(results, [m, 0], (BM, E), ACC)
        d = (g * y).sum(1, keepdims=True)
        put(norm, kept, [m, 0])
        put(d, kept, [m, 1])
        put(xetile.zeros((BM, D), ACC), to_q, [m, 0])


@xetile.kernel
def attention_backward(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None,
    out: Array,
    grad: Array,
    seed: Array | None,
    q_starts: Array | None,
    k_starts: Array | None,
    sums: Array,
    by_q: Array,
    by_k: Array,
    by_v: Array,
    factor: float,
    scale: float,
    p: float,
    HEADS: constexpr,
    LEFT: constexpr,
    RIGHT: constexpr,
    MUL: constexpr,
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
        seed: see `attention_with_options`; so is what is not named here.
        q_starts: where the queries of each sequence begin, of a matrix for each head
            with those of all sequences; a program makes a sequence of a head. Or None.
        k_starts: the same of keys.
        sums: (b, s, 2), temporary: log2 of the sum of powers, and d.
        by_q: (b, s, D), of ``ACC``.
        by_k: (b, t, D).
        by_v: (b, t, E).
        factor: scale * log2(e).
        scale: what scores are multiplied by.
        HEADS: matrices, with ``q_starts``.
        MUL: the dtype of what is multiplied.
    """
    b, shift = xetile.program_id(0), 0
    if q_starts is not None and k_starts is not None:
        i, h = b // HEADS, b % HEADS
        one, two, begin, stop = (
            q_starts[i],
            q_starts[i + 1],
            k_starts[i],
            k_starts[i + 1],
        )
        queries, keys, values = q[h, one:two], k[h, begin:stop], v[h, begin:stop]
        results, grads, kept = out[h, one:two], grad[h, one:two], sums[h, one:two]
        to_q, to_k, to_v = by_q[h, one:two], by_k[h, begin:stop], by_v[h, begin:stop]
        shift = keys.shape[0] - queries.shape[0]
    else:
        queries, keys, values, results = q[b], k[b], v[b], out[b]
        grads, kept, to_q, to_k, to_v = grad[b], sums[b], by_q[b], by_k[b], by_v[b]
    added = None if bias is None else matrix(bias, b)
    s, t = queries.shape[0], keys.shape[0]
    what, how = (results, grads, kept, to_q, shift, factor), (LEFT, RIGHT, MUL, ACC)
    rows_of(queries, keys, added, *what, *how, BM, BN, D, E)
    for n in range(0, t, BN):
        block = take(keys, [n, 0], (BN, D), MUL)
        value = take(values, [n, 0], (BN, E), MUL)
        dk, dv = xetile.zeros((BN, D), ACC), xetile.zeros((BN, E), ACC)
        start = 0 if RIGHT is None else max(n - shift - RIGHT, 0) // BM * BM
        end = s if LEFT is None else min(s, n - shift + BN + LEFT)
        for m in range(start, end, BM):
            rows = take(queries, [m, 0], (BM, D), MUL)
            g = take(grads, [m, 0], (BM, E), MUL)
            norm = xetile.load_tile(xetile.init_tile(kept, [m, 0], (BM, 1)))
            d = xetile.load_tile(xetile.init_tile(kept, [m, 1], (BM, 1)))
            power = log2_scores(rows, block, added, m, n, shift, t, factor, LEFT, RIGHT)
            e = xetile.exp2(power - norm)
            by_e = xetile.tile_mma(g, value.T)
            left = e
            if seed is not None:
                factors = dropout_factors(seed, b, m, n, t, p, e)
                left, by_e = e * factors, by_e * factors
            dv = xetile.tile_mma(left.to(MUL).T, g, dv)
            ds = (e * (by_e - d) * scale).to(MUL)
            dk = xetile.tile_mma(ds.T, rows, dk)
            tile = xetile.init_tile(to_q, [m, 0], (BM, D))
            dq = xetile.tile_mma(ds, block, xetile.load_tile(tile))
            xetile.store_tile(dq, tile)
        put(dk, to_k, [n, 0])
        put(dv, to_v, [n, 0])

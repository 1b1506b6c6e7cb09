"""The derivative of attention, which computes probabilities again, block by block."""

from __future__ import annotations

from xetl import xetile
from xetl.ops.attention.kernel import dropout_factors, masked
from xetl.ops.matrices import matrix, put, take
from xetl.ops.rows.softmaxes import LOG2_E
from xetl.xetile import Array, Vector, constexpr


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
    """Store to ``kept`` what all blocks of keys need of each query; clear ``to_q``."""
    t = keys.shape[0]

    def log2_of_sums(rows: Vector, m: int) -> Vector:
        """Log2 of the sum of exponentials of each query; inf if it sees no key."""
        largest = xetile.full((BM, 1), -xetile.inf, ACC)
        total = xetile.zeros((BM, 1), ACC)
        start, end = 0, t
        if RIGHT is not None:
            end = min(end, m + shift + BM + RIGHT)
        if LEFT is not None:
            start = max(m + shift - LEFT, 0) // BN * BN
        for n in range(start, end, BN):
            power = xetile.tile_mma(rows, take(keys, [n, 0], (BN, D), MUL).T) * factor
            power = masked(power, added, m, n, shift, t, LOG2_E, True, LEFT, RIGHT)
            new = xetile.maximum(largest, power.max(1, keepdims=True))
            less = xetile.where(new == -xetile.inf, 0.0, new)
            fade = xetile.exp2(largest - less)
            total = total * fade + xetile.exp2(power - less).sum(1, keepdims=True)
            largest = new
        return xetile.where(total == 0, xetile.inf, largest + xetile.log2(total))

    for m in range(0, queries.shape[0], BM):
        rows = take(queries, [m, 0], (BM, D), MUL)
        norm = log2_of_sums(rows, m)
        g = take(grads, [m, 0], (BM, E), ACC)
        y = take(results, [m, 0], (BM, E), ACC)
        d = (g * y).sum(1, keepdims=True)
        put(norm, kept, [m, 0])
        put(d, kept, [m, 1])
        put(xetile.zeros((BM, D), ACC), to_q, [m, 0])


@xetile.function
def by_scores(
    e: Vector, by_e: Vector, by_bias: Array | None, b: int, m: int, n: int, scale: float
) -> Vector:
    """Return the gradient of scores before their scale; store that of the bias."""
    ds = e * by_e
    if by_bias is not None:
        put(ds, by_bias[b], [m, n])
    return ds * scale


@xetile.function
def part(x: Array, h: int, starts: Array | None, i: int) -> Array:
    """A matrix of a batch; of it, if there are ``starts``, the rows of a sequence."""
    return x[h] if starts is None else x[h, starts[i] : starts[i + 1]]


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
    by_bias: Array | None,
    factor: float,
    scale: float,
    p: float,
    HEADS: constexpr,
    SHARE: constexpr,
    LEFT: constexpr,
    RIGHT: constexpr,
    MUL: constexpr,
    ACC: constexpr,
    BM: constexpr,
    BN: constexpr,
    D: constexpr,
    E: constexpr,
) -> None:
    """The gradients of attention; a program computes those of one matrix of keys.

    With e = softmax(scores), g = grad, d = rowsum(g * out) and ``ds = e * (g @ v.T - d)
    * scale``, the gradients are ``ds @ k`` of q, ``ds.T @ q`` of k and ``e.T @ g`` of v
    (Dao et al.), and ``ds / scale`` of the bias. Exponentials are computed again from
    scores; no s x t array is stored but that.

    Args:
        q: (b * SHARE, s, D); the others likewise, of one dtype.
        k: (b, t, D).
        v: (b, t, E).
        bias: see `attention`; (b * SHARE, s, t) or (s, t).
        out: (b * SHARE, s, E), the result.
        grad: (b * SHARE, s, E), the gradient of the result.
        seed: see `attention`, as for arguments not named here.
        q_starts: the first query of each sequence, or None. With it, a matrix has all
            sequences of a head, and a program has one of them.
        k_starts: the same for keys.
        sums: (b * SHARE, s, 2), temporary: log2 of the sum of exponentials, and d.
        by_q: (b * SHARE, s, D), of ``ACC``.
        by_k: (b, t, D).
        by_v: (b, t, E).
        by_bias: (b * SHARE, s, t), or None. What no query sees is not written.
        factor: scale * log2(e).
        scale: the factor of scores.
        HEADS: b.
        SHARE: the number of matrices of queries that share one of keys.
        MUL: the dtype of products.
    """
    number = xetile.program_id(0)
    i, h, shift = number // HEADS, number % HEADS, 0
    at, place = (k_starts, i), (q_starts, i)
    keys, values, s = part(k, h, *at), part(v, h, *at), part(q, 0, *place).shape[0]
    to_k, to_v, t = part(by_k, h, *at), part(by_v, h, *at), keys.shape[0]
    if q_starts is not None:
        shift = t - s
    for b in range(h * SHARE, (h + 1) * SHARE):
        queries, results = part(q, b, *place), part(out, b, *place)
        grads, kept = part(grad, b, *place), part(sums, b, *place)
        to_q, added = part(by_q, b, *place), None if bias is None else matrix(bias, b)
        what, how = (results, grads, kept, to_q, shift, factor), (LEFT, RIGHT, MUL, ACC)
        rows_of(queries, keys, added, *what, *how, BM, BN, D, E)
    for n in range(0, t, BN):
        block = take(keys, [n, 0], (BN, D), MUL)
        value = take(values, [n, 0], (BN, E), MUL)
        dk, dv = xetile.zeros((BN, D), ACC), xetile.zeros((BN, E), ACC)
        start = 0 if RIGHT is None else max(n - shift - RIGHT, 0) // BM * BM
        end = s if LEFT is None else min(s, n - shift + BN + LEFT)
        for b in range(h * SHARE, (h + 1) * SHARE):
            queries, grads = part(q, b, *place), part(grad, b, *place)
            kept, to_q = part(sums, b, *place), part(by_q, b, *place)
            added = None if bias is None else matrix(bias, b)
            for m in range(start, end, BM):
                rows = take(queries, [m, 0], (BM, D), MUL)
                g = take(grads, [m, 0], (BM, E), MUL)
                norm = xetile.load_tile(xetile.init_tile(kept, [m, 0], (BM, 1)))
                d = xetile.load_tile(xetile.init_tile(kept, [m, 1], (BM, 1)))
                power = masked(
                    xetile.tile_mma(rows, block.T) * factor,
                    *(added, m, n, shift, t, LOG2_E, True, LEFT, RIGHT),
                )
                e = xetile.exp2(power - norm)
                by_e = xetile.tile_mma(g, value.T)
                left = e
                if seed is not None:
                    factors = dropout_factors(seed, b, m, n, t, p, e)
                    left, by_e = e * factors, by_e * factors
                dv = xetile.tile_mma(left.to(MUL).T, g, dv)
                ds = by_scores(e, by_e - d, by_bias, b, m, n, scale).to(MUL)
                dk = xetile.tile_mma(ds.T, rows, dk)
                tile = xetile.init_tile(to_q, [m, 0], (BM, D))
                dq = xetile.tile_mma(ds, block, xetile.load_tile(tile))
                xetile.store_tile(dq, tile)
        put(dk, to_k, [n, 0])
        put(dv, to_v, [n, 0])


@xetile.function
def with_bias(power: Vector, bias: Array, m: int) -> Vector:
    """Return (keys, queries) plus the bias (queries, keys) from query m on."""
    shape = (power.shape[1], power.shape[0])
    added = xetile.load_tile(xetile.init_tile(bias, [m, 0], shape))
    if bias.dtype == xetile.i1:
        seen = xetile.where(added, 1.0, 0.0).to(power.dtype).T
        return xetile.where(seen > 0, power, -xetile.inf)
    return power + added.to(power.dtype).T * LOG2_E


@xetile.kernel
def whole_backward(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None,
    out: Array,
    grad: Array,
    by_q: Array,
    by_k: Array,
    by_v: Array,
    by_bias: Array | None,
    factor: float,
    scale: float,
    CUT: constexpr,
    ACC: constexpr,
    BM: constexpr,
    BN: constexpr,
    D: constexpr,
    E: constexpr,
) -> None:
    """The gradients that `attention_backward` computes, without windows and dropout.

    A block has all scores of its queries, so their exponentials are divided by the sum,
    and scores are computed once. They are (keys, queries): then no scores have to be
    transposed for products, but the gradient of the queries, which is smaller.
    Arguments that are not named here are those of `attention_backward`, SHARE being 1.

    Args:
        k: (b, t, D); t is ``BN`` at most.
        CUT: whether t is less than ``BN``.
        ACC: the dtype of products and sums.
    """
    h = xetile.program_id(0)
    queries, results, grads, to_q = q[h], out[h], grad[h], by_q[h]
    keys, values = take(k[h], [0, 0], (BN, D), ACC), take(v[h], [0, 0], (BN, E), ACC)
    seen, turned = xetile.arange(BN)[:, None] < k.shape[1], keys.T
    dk, dv = xetile.zeros((BN, D), ACC), xetile.zeros((BN, E), ACC)
    for m in range(0, queries.shape[0], BM):
        rows = take(queries, [m, 0], (BM, D), ACC)
        g = take(grads, [m, 0], (BM, E), ACC)
        y = take(results, [m, 0], (BM, E), ACC)
        power = xetile.tile_mma(keys, rows.T) * factor
        if bias is not None:
            power = with_bias(power, matrix(bias, h), m)
        if CUT:
            power = xetile.where(seen, power, -xetile.inf)
        largest = power.max(0, keepdims=True)
        less = xetile.where(largest == -xetile.inf, 0.0, largest)
        e = xetile.exp2(power - less)
        total = e.sum(0, keepdims=True)
        e = e * xetile.where(total == 0, 0.0, 1.0 / total)
        dv = xetile.tile_mma(e, g, dv)
        d = (g * y).sum(1, keepdims=True).T
        ds = e * (xetile.tile_mma(values, g.T) - d)
        if by_bias is not None:
            put(ds.T, by_bias[h], [m, 0])
        ds = ds * scale
        dk = xetile.tile_mma(ds, rows, dk)
        put(xetile.tile_mma(turned, ds).T, to_q, [m, 0])
    put(dk, by_k[h], [0, 0])
    put(dv, by_v[h], [0, 0])

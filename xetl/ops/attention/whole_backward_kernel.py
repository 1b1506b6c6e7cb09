"""The derivative of attention, for so few keys that one block of scores has all."""

from __future__ import annotations

from xetl import xetile
from xetl.ops.matrices import matrix, put, take
from xetl.ops.rows.softmaxes import LOG2_E
from xetl.xetile import Array, Vector, constexpr


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

    Args:
        q: (b, s, D).
        k: (b, t, D); t is ``BN`` at most.
        v: (b, t, E).
        bias: see `attention`; (b, s, t) or (s, t).
        out: (b, s, E), the result.
        grad: (b, s, E), the gradient of the result.
        by_q: (b, s, D).
        by_k: (b, t, D).
        by_v: (b, t, E).
        factor: scale * log2(e).
        scale: the factor of scores.
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
        ds = e * (xetile.tile_mma(values, g.T) - d) * scale
        dk = xetile.tile_mma(ds, rows, dk)
        put(xetile.tile_mma(turned, ds).T, to_q, [m, 0])
    put(dk, by_k[h], [0, 0])
    put(dv, by_v[h], [0, 0])

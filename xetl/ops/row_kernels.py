"""The kernels behind `xetl.ops.softmax` and `xetl.ops.layer_norm`.

A program handles one row, which stays in the cache while it is read several times.
"""

from __future__ import annotations

from xetl import xetile
from xetl.ops.product import matrix
from xetl.xetile import Array, constexpr


@xetile.kernel
def softmax_rows(x: Array, out: Array, ACC: constexpr, WIDTH: constexpr) -> None:
    """``out = exp(x - max(x)) / sum(exp(x - max(x)))`` in each row.

    Args:
        x: (..., m, n).
        out: as ``x``.
        ACC: the dtype that is computed in.
        WIDTH: columns of a tile, n or more.
    """
    row, number = xetile.program_id(0), xetile.program_id(1)
    tile = xetile.init_tile(matrix(x, number), [row, 0], (1, WIDTH))
    v = xetile.load_tile(tile, padding=-xetile.inf).to(ACC)
    e = xetile.exp(v - v.max(1, keepdims=True))
    y = e / e.sum(1, keepdims=True)
    to = xetile.init_tile(matrix(out, number), [row, 0], (1, WIDTH))
    xetile.store_tile(y.to(out.dtype), to)


@xetile.kernel
def layer_norm_rows(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    out: Array,
    eps: float,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """``out = (x - mean) / sqrt(variance + eps) * weight + bias`` in each row.

    Args:
        x: (..., m, n).
        weight: (n,) or None.
        bias: (n,) or None.
        out: as ``x``.
        eps: keeps rows of equal elements from being divided by 0.
        ACC: the dtype that is computed in.
        WIDTH: columns of a tile, n or more.
    """
    row, number = xetile.program_id(0), xetile.program_id(1)
    source = matrix(x, number)
    v = xetile.load_tile(xetile.init_tile(source, [row, 0], (1, WIDTH))).to(ACC)
    n = source.shape[1]
    mean = v.sum(1, keepdims=True) / n
    # What is loaded besides the row is 0, not the mean.
    v = xetile.where(xetile.arange(WIDTH)[None, :] < n, v - mean, 0.0)
    y = v * xetile.rsqrt((v * v).sum(1, keepdims=True) / n + eps)
    if weight is not None:
        y = y * xetile.load_tile(xetile.init_tile(weight, [0], (WIDTH,))).to(ACC)
    if bias is not None:
        y = y + xetile.load_tile(xetile.init_tile(bias, [0], (WIDTH,))).to(ACC)
    to = xetile.init_tile(matrix(out, number), [row, 0], (1, WIDTH))
    xetile.store_tile(y.to(out.dtype), to)

"""``xetl.ops.softmax`` and ``xetl.ops.layer_norm``: functions of rows."""

from __future__ import annotations

from typing import Any

from xetl import xetile
from xetl.ops.batches import launches
from xetl.ops.functions import SUMS, common_dtype, place_for, public, wrong_shape
from xetl.ops.operands import Numbers, as_numpy, dtype_of
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


_LEAST = 16


@public
def softmax(x: Any, out: Any = None) -> Any:
    """``exp(x) / sum(exp(x))`` along the last dimension, without overflow.

    Computed in f32 (f64 for f64) and rounded once. There is no automatic derivative.

    Args:
        x: (..., n); f16, bf16, f32 or f64. NumPy (bf16 by ml_dtypes), torch, memory of
            a device (USM), anything with ``__dlpack__``.
        out: where the result goes: shape of ``x``, any float dtype. It may be ``x``,
            but not share memory with it otherwise.

    Returns:
        ``out``, or a new array of the library and the dtype of ``x``.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit, ``out`` overlaps
            ``x`` (X0807) or is read-only (X0806).

    >>> softmax(np.zeros((1, 4), np.float32)).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    source = as_numpy(x, "x")
    dtype = common_dtype("softmax", {"x": source})
    result, to = place_for("softmax", out, x, source.shape, dtype)
    if to.size == 0:
        return result
    for arrays, matrices in launches((_as_rows(source), _as_rows(to))):
        rows, columns = arrays[0].shape[-2:]
        softmax_rows[rows, matrices](*arrays, SUMS[dtype], _width(columns))
    return result


@public
def layer_norm(
    x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, out: Any = None
) -> Any:
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` along the last dimension.

    Mean and variance (the mean of squared differences from the mean) are a row's own.
    Computed in f32 (f64 for f64) and rounded once. There is no automatic derivative.

    Args:
        x: (..., n); f16, bf16, f32 or f64, from any library as for `softmax`.
        weight: (n,) of any float dtype that has no more bits than is computed in; None:
            ones.
        bias: the same; None: zeros.
        eps: keeps rows of equal elements from being divided by 0.
        out: where the result goes: shape of ``x``, any float dtype. It may be ``x``,
            but not share memory with an argument otherwise.

    Returns:
        ``out``, or a new array of the library and the dtype of ``x``.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit, ``out`` overlaps an
            argument (X0807) or is read-only (X0806).
    """
    source = as_numpy(x, "x")
    dtype = common_dtype("layer_norm", {"x": source})
    row, shift = (
        None if each is None else _row(each, name, source)
        for each, name in ((weight, "weight"), (bias, "bias"))
    )
    result, to = place_for("layer_norm", out, x, source.shape, dtype)
    if to.size == 0:
        return result
    for (first, last), matrices in launches((_as_rows(source), _as_rows(to))):
        rows, columns = first.shape[-2:]
        constants = (SUMS[dtype], _width(columns))
        layer_norm_rows[rows, matrices](first, row, shift, last, float(eps), *constants)
    return result


def _row(given: Any, name: str, x: Numbers) -> Numbers:
    """A row that is multiplied by or added.

    Raises:
        LaunchError: its length is not that of a row of x, or it is wider than the sums.
    """
    row = as_numpy(given, name)
    if row.shape != x.shape[-1:]:
        problem = f"`{name}` is {row.shape}, but a row of x is {x.shape[-1:]}"
        raise wrong_shape("layer_norm", problem, "pass one number for each column")
    dtype = dtype_of(row, name)
    if dtype not in SUMS or dtype.bits > SUMS[dtype_of(x, "x")].bits:
        common_dtype("layer_norm", {"x": x, name: row})
    return row


def _as_rows(x: Numbers) -> Numbers:
    """A vector as a matrix of one row."""
    return x[None, :] if x.ndim == 1 else x


def _width(columns: int) -> int:
    """The tile's: a power of two, so that rows of other lengths need no other code."""
    return max(_LEAST, 1 << (columns - 1).bit_length())

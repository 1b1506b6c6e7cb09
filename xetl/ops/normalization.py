"""``xetl.ops.softmax`` and ``xetl.ops.layer_norm``: functions of rows."""

from __future__ import annotations

from typing import Any

from xetl import xetile
from xetl.ops.batches import as_row, chain, itself, split_batch
from xetl.ops.calls import Launch, Plan, Plans, kind
from xetl.ops.functions import SUMS, checked_place, common_dtype, public, wrong_shape
from xetl.ops.operands import Numbers, as_numpy, dtype_of
from xetl.ops.product import matrix
from xetl.runtime.kernel import Kernel
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
    source, to = as_numpy(x, "x"), None if out is None else as_numpy(out, "out")
    plan = _softmax.find(
        (kind(source), kind(to)),
        lambda: _plan("softmax", softmax_rows, source, to),
    )
    return plan.run(x, out, to, (source,))


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
    names = ("weight", "bias", "out")
    source = as_numpy(x, "x")
    row, shift, to = (
        None if each is None else as_numpy(each, name)
        for each, name in zip((weight, bias, out), names)
    )

    def make() -> Plan:
        _check_row(row, "weight", source)
        _check_row(shift, "bias", source)
        return _plan("layer_norm", layer_norm_rows, source, to, rows=2)

    plan = _layer_norm.find((kind(source), kind(row), kind(shift), kind(to)), make)
    return plan.run(x, out, to, (source, row, shift), float(eps))


_softmax, _layer_norm = Plans[Plan](), Plans[Plan]()


def _plan(
    function: str, kernel: Kernel, x: Numbers, to: Numbers | None, rows: int = 0
) -> Plan:
    """Check a call, and decide how calls of its kind are done.

    Args:
        function: what an error calls it.
        kernel: takes x, rows that are the same for all, the result.
        x: the argument.
        to: where the result goes; None: to a new array.
        rows: how many rows the kernel takes.
    """
    dtype = common_dtype(function, {"x": x})
    place = checked_place(function, to, x.shape, dtype)
    if x.size == 0:
        return Plan(x.shape, dtype, None)
    matrix = as_row if x.ndim == 1 else itself
    (view, last), loops, matrices = split_batch((matrix(x), matrix(place)))
    views = (chain(matrix, view), *[None] * rows, chain(matrix, last))
    grid = (matrix(x).shape[-2], matrices, 1)
    constants = (SUMS[dtype], _width(x.shape[-1]))
    return Plan(x.shape, dtype, Launch(kernel, views, loops, grid, constants))


def _check_row(row: Numbers | None, name: str, x: Numbers) -> None:
    """Refuse a row to multiply by or add that does not fit.

    Raises:
        LaunchError: its length is not that of a row of x, or it is wider than the sums.
    """
    if row is None:
        return
    if row.shape != x.shape[-1:]:
        problem = f"`{name}` is {row.shape}, but a row of x is {x.shape[-1:]}"
        raise wrong_shape("layer_norm", problem, "pass one number for each column")
    dtype = dtype_of(row, name)
    if dtype not in SUMS or dtype.bits > SUMS[dtype_of(x, "x")].bits:
        common_dtype("layer_norm", {"x": x, name: row})


def _width(columns: int) -> int:
    """The tile's: an eighth of a power of two apart, so that there are few kernels."""
    step = max(_LEAST, (1 << (columns - 1).bit_length()) // 8)
    return -(-columns // step) * step

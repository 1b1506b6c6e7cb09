"""``xetl.ops.linear_int4``: a linear layer with weights of four bits, in groups.

Source: Frantar et al., "GPTQ", arXiv 2210.17323; torch's ``_weight_int4pack_mm``, whose
numbers these are, in a layout that needs no packing function.
"""

from __future__ import annotations

from typing import Any

from xetl import xetile
from xetl.errors import LaunchError
from xetl.language.dtypes import u8
from xetl.language.ops import cdiv
from xetl.ops.activations import copied
from xetl.ops.batches import itself
from xetl.ops.calls import Launch
from xetl.ops.declarations import ArrayLike, Call, Operand, Step, result, temporary
from xetl.ops.declare import function
from xetl.ops.operands import Numbers
from xetl.ops.product import put
from xetl.ops.rules import SUMS, wrong_shape
from xetl.ops.views import array_of, floats, size_of
from xetl.xetile import Array, Vector, constexpr

_NAME = "linear_int4"
_ROWS, _COLUMNS = (1, 4, 16, 64), 128


@xetile.function
def centred(nibbles: Vector, DTYPE: constexpr) -> Vector:
    """0 to 15 as -8 to 7."""
    return (nibbles.to(xetile.i8) - 8).to(DTYPE)


@xetile.kernel
def int4_product(
    x: Array,
    weight: Array,
    scales: Array,
    zeros: Array | None,
    bias: Array | None,
    out: Array,
    ACC: constexpr,
    HALF: constexpr,
    BM: constexpr,
    BN: constexpr,
) -> None:
    """``out = sum over groups of (x @ weight) * scales + sum(x) * zeros, + bias``.

    Args:
        x: (m, k).
        weight: (k / 2, n); of each group the lower halves of bytes are its first HALF
            rows, the upper ones the others.
        scales: (groups, n).
        zeros: the same, or None.
        bias: (n,) or None.
        out: (m, n).
        ACC: the dtype that is summed in.
        HALF: half of a group.
        BM: rows of a tile.
        BN: its columns.
    """
    m, n = xetile.program_id(1) * BM, xetile.program_id(0) * BN
    acc = xetile.zeros((BM, BN), ACC)
    for g in range(scales.shape[0]):
        tile = xetile.init_tile(weight, [g * HALF, n], (HALF, BN))
        pairs = xetile.load_tile(tile)
        at = 2 * g * HALF
        one = xetile.load_tile(xetile.init_tile(x, [m, at], (BM, HALF)))
        two = xetile.load_tile(xetile.init_tile(x, [m, at + HALF], (BM, HALF)))
        if BM == 1:  # streams the weights
            low = centred(pairs & 15, ACC) * one.to(ACC).T
            part = (low + centred(pairs >> 4, ACC) * two.to(ACC).T).sum(0)[None, :]
        else:
            part = xetile.tile_mma(one, centred(pairs & 15, x.dtype))
            part = xetile.tile_mma(two, centred(pairs >> 4, x.dtype), part)
        row = xetile.load_tile(xetile.init_tile(scales, [g, n], (1, BN)))
        acc = acc + part * row.to(ACC)
        if zeros is not None:
            row = xetile.load_tile(xetile.init_tile(zeros, [g, n], (1, BN)))
            total = (one.to(ACC) + two.to(ACC)).sum(1, keepdims=True)
            acc = acc + total * row.to(ACC)
    if bias is not None:
        row = xetile.load_tile(xetile.init_tile(bias, [n], (BN,)))
        acc = acc + row.to(ACC)
    put(acc, out, [m, n])


@function()
def linear_int4(
    input: ArrayLike,
    weight: ArrayLike,
    scales: ArrayLike,
    zeros: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    out: ArrayLike = None,
) -> Any:
    """``input @ w.T + bias`` with ``w[j, i] = (q[j, i] - 8) * scales + zeros``.

    The numbers q are 0 to 15; scales and zeros are those of the group of i, and of j.
    A group is ``k / groups`` numbers beside each other. In memory, two numbers that are
    half a group apart share a byte: of q, (n, k) of NumPy, ``weight`` is ::

        parts = q.T.reshape(groups, 2, k // groups // 2, n)
        weight = (parts[:, 1] << 4 | parts[:, 0]).reshape(k // 2, n)

    Args:
        input: (..., k); f16, bf16, f32 or f64, from any library as for `matmul`.
        weight: (k / 2, n), u8.
        scales: (groups, n); a float dtype of 32 bits or less, so are the next ones.
        zeros: (groups, n), or None for 0.
        bias: (n,) or None.
        out: (..., n), where the result goes, of any float dtype.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    groups = _check(input, weight, scales, zeros, bias)
    (*lead, k), n, m = input.shape, weight.shape[1], size_of(input.shape[:-1])
    dtype = floats(_NAME, input)

    def steps(made: Any) -> list[Step]:
        rows = next((size for size in _ROWS if size >= m), _ROWS[-1])
        x, first = input, list[Step]()
        if not array_of(x).flags.c_contiguous:
            x = temporary(x.shape, dtype)
            first.append(copied(input, x, SUMS[dtype]))

        def matrix(array: Numbers) -> Numbers:
            return array.reshape(m, -1)

        views = (matrix, itself, itself, itself, itself, matrix)
        grid = (cdiv(n, _COLUMNS), cdiv(m, rows), 1)
        constants = (SUMS[dtype], k // groups // 2, rows, _COLUMNS)
        launch = Launch(int4_product, views, (), grid, constants)
        return [*first, Step(launch, (x, weight, scales, zeros, bias, *made))]

    return Call((result((*lead, n), dtype),), steps)


def _check(
    x: Operand,
    weight: Operand,
    scales: Operand,
    zeros: Operand | None,
    bias: Operand | None,
) -> int:
    """The number of groups.

    Raises:
        LaunchError: operands do not fit.
    """
    k = x.shape[-1] if x.shape else 0
    fits = weight.ndim == scales.ndim == 2 and weight.shape[0] * 2 == k > 0
    groups = scales.shape[0] if fits else 0
    if not groups or k % (2 * groups):
        problem = f"`input` is {x.shape}, `weight` {weight.shape}, `scales` "
        help_ = "pass (..., k), (k / 2, n), (groups, n); a group has an even size"
        raise wrong_shape(_NAME, f"{problem}{scales.shape}", help_)
    n = weight.shape[1]
    for each, shape in ((scales, (groups, n)), (zeros, (groups, n)), (bias, (n,))):
        if each is None:
            continue
        if tuple(each.shape) != shape:
            problem = f"`{each.name}` is {each.shape}, but `weight` {weight.shape}"
            raise wrong_shape(_NAME, problem, f"pass {shape}")
        if not each.dtype.is_float or each.dtype.bits > 32:
            raise _wrong_dtype(each, "f32, f16 or bf16")
    if weight.dtype != u8:
        raise _wrong_dtype(weight, "u8, two numbers a byte")
    return groups


def _wrong_dtype(operand: Operand, wanted: str) -> LaunchError:
    problem = f"`{_NAME}` was given `{operand.name}` of {operand.dtype}"
    return LaunchError(problem, code="X0828", help=f"pass {wanted}")

"""Products with weights of 4 bits, in groups (``linear_int4``).

Source: Frantar et al., "GPTQ", arXiv 2210.17323. The numbers are those of torch's
``_weight_int4pack_mm``; the layout needs no packing function.
"""

from __future__ import annotations

from math import gcd, prod
from typing import Any

from xetl import xetile
from xetl.errors import LaunchError
from xetl.language.dtypes import u8
from xetl.language.ops import cdiv
from xetl.ops.activations import copied, row_major
from xetl.ops.calling.calls import Launch, View, itself
from xetl.ops.calling.declarations import (
    SUMS,
    ArrayLike,
    Call,
    Operand,
    Step,
    result,
    temporary,
    wrong_shape,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.views import array_of, floats, is_on_cpu, vectors_of
from xetl.ops.matrices import put, take
from xetl.ops.products.host_tiles import smallest
from xetl.runtime.grid import Grid
from xetl.runtime.kernel import Kernel
from xetl.xetile import Array, Vector, constexpr

_NAME = "linear_int4"
_ROWS, _COLUMNS = (1, 2, 4, 8, 16, 64), (16, 32, 64, 128, 256, 512, 1024)
_FEW = 4
"""The most rows that `int4_rows` sums at once."""
_MOST = 8
"""The most rows that `int4_rows` computes. Without AVX-512 it computes any number: a
product loses its gain by writing the converted weights ([measured] Zen 3)."""
_PROGRAMS = 4
"""Programs of `int4_rows` that share the columns: few, so that they stream long rows of
bytes."""
_PART = 16
"""Rows of bytes that `int4_rows` sums at once, each a stream from memory: 64 of them
take three times as long as 16 ([measured] Zen 3, one row, 4096 columns)."""
_WIDEST = 128
"""The most columns of a tile of a product."""
_JOINED = 64
"""The two halves of a group up to this size are one product: both fit in or near L1."""
_STEP = 16
"""Rows of bytes that a GPU multiplies at once.  [measured] ocloc 26.27, pvc: 846
instructions a step of 16 x 64 bytes and 16 rows of input, no spill (64 rows: 8,704
bytes); a group of 128 as one product, joined in shared memory, took it over 120 s."""


@xetile.kernel
def int4_product(
    x: Array,
    weight: Array,
    scales: Array,
    zeros: Array | None,
    bias: Array | None,
    out: Array,
    ACC: constexpr,
    FACTORS: constexpr,
    HALF: constexpr,
    BM: constexpr,
    BN: constexpr,
    STEP: constexpr = None,
) -> None:
    """``out = sum by group of (x @ q) * scales + sum(x) * (zeros - 8 scales) + bias``.

    Args:
        x: (m, k).
        weight: (k / 2, n). The lower halves of the bytes of a group are its first HALF
            rows of q, the upper halves are the other rows.
        scales: (groups, n).
        zeros: (groups, n), or None.
        bias: (n,) or None.
        out: (m, n).
        ACC: the dtype of the sums.
        FACTORS: the dtype of the factors.
        HALF: half of a group.
        BM: rows of a tile.
        BN: columns of a tile.
        STEP: rows of ``weight`` in one product, a divisor of HALF. None: a whole group.
    """
    m, n = xetile.program_id(1) * BM, xetile.program_id(0) * BN
    acc = xetile.zeros((BM, BN), ACC)
    for g in range(scales.shape[0]):
        if STEP is not None:
            part, total = xetile.zeros((BM, BN), ACC), xetile.zeros((BM, 1), ACC)
            for j in range(g * HALF, (g + 1) * HALF, STEP):
                pairs = take(weight, [j, n], (STEP, BN), xetile.i32)
                one = take(x, [m, j + g * HALF], (BM, STEP), FACTORS)
                two = take(x, [m, j + (g + 1) * HALF], (BM, STEP), FACTORS)
                part = xetile.tile_mma(one, (pairs & 15).to(FACTORS), part)
                part = xetile.tile_mma(two, (pairs >> 4).to(FACTORS), part)
                total = total + (one.to(ACC) + two.to(ACC)).sum(1, keepdims=True)
        else:
            # As i32, a number needs only one more step to become a float.
            pairs = take(weight, [g * HALF, n], (HALF, BN), xetile.i32)
            low, high = (pairs & 15).to(FACTORS), (pairs >> 4).to(FACTORS)
            both = take(x, [m, 2 * g * HALF], (BM, 2 * HALF), FACTORS)
            if HALF <= _JOINED:
                part = xetile.tile_mma(both, xetile.cat(low, high))
            else:
                part = xetile.tile_mma(both[:, :HALF], low)
                part = xetile.tile_mma(both[:, HALF:], high, part)
            total = both.to(ACC).sum(1, keepdims=True)
        acc = acc + scaled_group(part, total, scales, zeros, g, n, ACC, BN)
    if bias is not None:
        acc = acc + take(bias, [n], (BN,), ACC)
    put(acc, out, [m, n])


@xetile.function
def scaled_group(
    part: Vector,
    total: Vector,
    scales: Array,
    zeros: Array | None,
    g: int,
    n: int,
    ACC: constexpr,
    BN: constexpr,
) -> Vector:
    """Scale the product of a group; ``total`` has the sums of its rows of x."""
    scale = take(scales, [g, n], (1, BN), ACC)
    shift = -8 * scale
    if zeros is not None:
        shift = shift + take(zeros, [g, n], (1, BN), ACC)
    return part * scale + total * shift


@xetile.kernel
def int4_rows(
    x: Array,
    weight: Array,
    scales: Array,
    zeros: Array | None,
    bias: Array | None,
    out: Array,
    ACC: constexpr,
    HALF: constexpr,
    PART: constexpr,
    BM: constexpr,
    BN: constexpr,
    WIDTH: constexpr,
) -> None:
    """`int4_product` for few rows: weights are converted in registers, for all rows.

    Args: as for `int4_product`, except for
        PART: rows of bytes that are summed at once, a divisor of HALF.
        BN: columns whose sums stay in registers.
        WIDTH: columns of a program.
    """
    m, n = xetile.program_id(1) * BM, xetile.program_id(0) * WIDTH
    factors = xetile.slm((BM, 2 * PART), ACC)  # read without bounds checks
    acc = xetile.slm((BM, WIDTH), ACC)
    put(xetile.zeros((BM, WIDTH), ACC), acc, [0, 0])
    for first in range(0, weight.shape[0], PART):
        g = first // HALF
        one = take(x, [m, g * HALF + first], (BM, PART), ACC)
        two = take(x, [m, g * HALF + first + HALF], (BM, PART), ACC)
        total = (one + two).sum(1, keepdims=True)
        xetile.barrier()
        put(one, factors, [0, 0])
        put(two, factors, [0, PART])
        xetile.barrier()
        for c in range(0, min(WIDTH, out.shape[1] - n), BN):
            part = xetile.zeros((BM, BN), ACC)
            for i in range(PART):
                pairs = take(weight, [first + i, n + c], (1, BN), xetile.i32)
                low, high = (pairs & 15).to(ACC), (pairs >> 4).to(ACC)
                part = part + take(factors, [0, i], (BM, 1), ACC) * low
                part = part + take(factors, [0, PART + i], (BM, 1), ACC) * high
            part = scaled_group(part, total, scales, zeros, g, n + c, ACC, BN)
            put(take(acc, [0, c], (BM, BN), ACC) + part, acc, [0, c])
    xetile.barrier()
    found = take(acc, [0, 0], (BM, WIDTH), ACC)
    if bias is not None:
        found = found + take(bias, [n], (WIDTH,), ACC)
    put(found, out, [m, n])


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

    The numbers q are 0 to 15. Each row j has one scale and one zero for each group of
    ``k / groups`` neighbouring numbers. In memory, two numbers that are half a group
    apart share a byte. For a NumPy array q, (n, k), compute ``weight`` so ::

        parts = q.T.reshape(groups, 2, k // groups // 2, n)
        weight = (parts[:, 1] << 4 | parts[:, 0]).reshape(k // 2, n)
        weight = numpy.ascontiguousarray(weight)  # else each call copies it

    Args:
        input: (..., k); f16, bf16, f32 or f64, from any library as for `matmul`.
        weight: (k / 2, n), u8.
        scales: (groups, n); a float dtype of 32 bits or less, as ``zeros`` and
            ``bias``.
        zeros: (groups, n), or None for 0.
        bias: (n,) or None.
        out: the array that gets the result: (..., n), of any float dtype.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    groups = _check(input, weight, scales, zeros, bias)
    (*lead, k), n, m = input.shape, weight.shape[1], prod(input.shape[:-1])
    dtype = floats(_NAME, input)

    def steps(made: Any) -> list[Step]:
        (first, x), q = row_major(input), weight
        if array_of(weight).strides[1] != 1:  # columns would be gathered byte by byte
            q = temporary(q.shape, u8)
            first.append(copied(weight, q))

        matrix: View = lambda a: a.reshape(m, -1)
        views = (matrix, itself, itself, itself, itself, matrix)
        kernel, grid, constants = cut_int4(x, m, n, k // groups // 2)
        launch = Launch(kernel, views, (), grid, constants)
        return [*first, Step(launch, (x, q, scales, zeros, bias, *made))]

    return Call((result((*lead, n), dtype),), steps)


def cut_int4(
    x: Operand, m: int, n: int, half: int
) -> tuple[Kernel, Grid, tuple[Any, ...]]:
    """Return the kernel for m rows and n columns, its grid and its constants."""
    registers, lanes = vectors_of(x)
    rows, sums = smallest(_ROWS, m), SUMS[x.dtype]
    if not is_on_cpu(x):
        step = half if half % _STEP else _STEP
        kernel, rows, columns = int4_product, min(rows, 16), smallest(_COLUMNS[:3], n)
        constants = (sums, x.dtype, half, rows, columns, step)
    elif m <= _MOST or registers <= 16:
        columns = smallest(_COLUMNS, cdiv(n, _PROGRAMS))
        block = min(columns, registers // 2 // min(rows, _FEW) * lanes)
        kernel, rows = int4_rows, cdiv(m, cdiv(m, _FEW))
        constants = (sums, half, gcd(half, _PART), rows, block, columns)
    else:
        kernel, columns = int4_product, min(smallest(_COLUMNS, n), _WIDEST)
        constants = (sums, x.dtype, half, rows, columns)
    return kernel, (cdiv(n, columns), cdiv(m, rows), 1), constants


def _check(
    x: Operand,
    weight: Operand,
    scales: Operand,
    zeros: Operand | None,
    bias: Operand | None,
) -> int:
    """Return the number of groups; raise a LaunchError if the operands do not fit."""
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

"""Products of experts (``grouped_mm``), of 8-bit numbers (``scaled_mm``), by 4-bit.

Source: torch.nn.functional.grouped_mm; Shazeer et al., arXiv 1701.06538; Dettmers et
al., "LLM.int8()", arXiv 2208.07339. ``linear_int4``, with weights in groups: Frantar et
al., "GPTQ", arXiv 2210.17323; torch's ``_weight_int4pack_mm``, whose numbers these are,
in a layout that needs no packing function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xetl import xetile
from xetl.errors import LaunchError
from xetl.language.dtypes import f8e4m3, f8e5m2, f32, i8, i32, u8
from xetl.language.ops import cdiv
from xetl.ops.activations import copied
from xetl.ops.calling.calls import Launch, View, itself
from xetl.ops.calling.declarations import (
    SUMS,
    ArrayLike,
    Call,
    Context,
    DTypeLike,
    Operand,
    Step,
    result,
    temporary,
    wrong_shape,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.operands import Numbers
from xetl.ops.calling.views import array_of, as_dtype, floats, size_of
from xetl.ops.matrices import put, take
from xetl.ops.products.device_tiles import Product
from xetl.ops.products.plans import (
    choose_tiles,
    cut_for_device,
    smallest,
    tiles_of_device,
)
from xetl.ops.products.product import accumulated
from xetl.xetile import Array, constexpr

_BYTES = (i8, f8e4m3, f8e5m2)


@xetile.kernel
def scaled_product(
    a: Array,
    b: Array,
    scale_a: Array,
    scale_b: Array,
    bias: Array | None,
    out: Array,
    SUMS: constexpr,
    BM: constexpr,
    BN: constexpr,
    BK: constexpr,
) -> None:
    """``out = (a @ b) * scale_a * scale_b + bias``.

    Args:
        a: (m, k), 8-bit integers or floats.
        b: (k, n), dtype of ``a``.
        scale_a: (m,), or (1,) for all rows.
        scale_b: (n,), or (1,) for all columns.
        bias: (n,) or None.
        out: (m, n).
        SUMS: the dtype that products are summed in; tiles are as of `product`.
    """
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = accumulated(a, b, m, n, SUMS, BM, BN, BK).to(xetile.f32)
    if scale_a.shape[0] == 1:
        acc = acc * scale_a[0].to(xetile.f32)
    else:
        acc = acc * take(scale_a, [m], (BM,), xetile.f32)[:, None]
    if scale_b.shape[0] == 1:
        acc = acc * scale_b[0].to(xetile.f32)
    else:
        acc = acc * take(scale_b, [n], (BN,), xetile.f32)[None, :]
    if bias is not None:
        acc = acc + take(bias, [n], (BN,), xetile.f32)[None, :]
    put(acc, out, [m, n])


def _grouped_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    a, b, ends = context.saved
    found: dict[str, Any] = {}
    if context.needs("mat_a") and b.ndim == 2:
        found["mat_a"] = grouped_mm(b, grad.mT, offs=ends).mT
    elif context.needs("mat_a"):
        found["mat_a"] = grouped_mm(grad, b.mT, offs=ends)
    if context.needs("mat_b"):
        found["mat_b"] = grouped_mm(a.mT, grad, offs=ends)
    return found


@xetile.kernel
def grouped_product(
    a: Array,
    b: Array,
    ends: Array,
    out: Array,
    SUMS: constexpr,
    BM: constexpr,
    BN: constexpr,
    BK: constexpr,
) -> None:
    """A product for each group, of the rows up to its end; see `grouped_mm`.

    Any group may have all rows, so there are programs for these; most find none.
    """
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    group = xetile.program_id(2)
    begin, end = 0, ends[group]
    if group > 0:
        begin = ends[group - 1]
    if b.ndim == 3:
        left, right, to = a[begin:end], b[group], out[begin:end]
    else:
        left, right, to = a[:, begin:end], b[begin:end], out[group]
    if m < to.shape[0]:
        put(accumulated(left, right, m, n, SUMS, BM, BN, BK), to, [m, n])


@function(backward=_grouped_backward, saves=["mat_a", "mat_b", "offs"])
def grouped_mm(
    mat_a: ArrayLike, mat_b: ArrayLike, offs: ArrayLike, *, out: ArrayLike = None
) -> Any:
    """``out[rows] = mat_a[rows] @ mat_b[i]`` for the rows of each group i.

    Group i has the rows from ``offs[i - 1]`` (0 for the first) to ``offs[i]``; none are
    allowed. Of two matrices it is ``out[i] = mat_a[:, rows] @ mat_b[rows]``.

    Args:
        mat_a: (t, k); f16, bf16, f32 or f64, from any library as for `matmul`. Or
            (m, t).
        mat_b: (groups, k, n), dtype of ``mat_a``. Or (t, n).
        offs: (groups,), i32, not falling; the last one is t.
        out: where the result goes.

    Returns:
        ``out``, or a new array: (t, n), or (groups, m, n).

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    a, b = mat_a, mat_b
    dtype = floats("grouped_mm", a, b)
    by_depth = b.ndim == 2
    if a.ndim != 2 or b.ndim not in (2, 3) or a.shape[1] != b.shape[-2]:
        problem = f"cannot multiply {a.shape} by {b.shape}"
        raise wrong_shape("grouped_mm", problem, "pass (t, k), (groups, k, n)")
    if offs.ndim != 1 or not (by_depth or offs.shape[0] == b.shape[0]):
        problem = f"`offs` is {offs.shape}, but `mat_b` is {b.shape}"
        raise wrong_shape("grouped_mm", problem, "pass where each group ends")
    if offs.dtype != i32:
        problem = f"`grouped_mm` was given `offs` of {offs.dtype}"
        raise LaunchError(problem, "X0828", "pass i32")
    groups, (rows, k), n = offs.shape[0], a.shape, b.shape[-1]

    def steps(made: Any) -> list[Step]:
        # As tiles of groups that are equally large.
        m, depth = (rows, cdiv(k, groups)) if by_depth else (cdiv(rows, groups), k)
        arrays = [array_of(x) for x in (a, b)]
        work = Product(m, n, depth, groups, a.dtype)
        cut = cut_for_device(arrays, work)
        turned = arrays[1].strides[-2] < arrays[1].strides[-1]
        tiles = choose_tiles(m, n, groups, turned)
        tiles = tiles if cut is None else tiles_of_device(work, cut)
        grid = cdiv(rows, tiles.rows), tiles.grid[1], groups
        constants = (SUMS[dtype], *tiles[:3])
        launch = Launch(grouped_product, (itself,) * 4, (), grid, constants)
        return [Step(launch, (a, b, offs, *made))]

    shape = (groups, rows, n) if by_depth else (rows, n)
    return Call((result(shape, dtype),), steps if groups else _nothing)


def _nothing(made: Sequence[Operand]) -> list[Step]:
    return []


@function()
def scaled_mm(
    input: ArrayLike,
    mat2: ArrayLike,
    scale_a: ArrayLike,
    scale_b: ArrayLike,
    bias: ArrayLike | None = None,
    out_dtype: DTypeLike = None,
    *,
    out: ArrayLike = None,
) -> Any:
    """``(input @ mat2) * scale_a * scale_b + bias``: a product of quantised numbers.

    Args:
        input: (m, k); i8, or an 8-bit float (f8e4m3, f8e5m2), which are summed in i32
            and f32.
        mat2: (k, n), dtype of ``input``; the transpose of a weight (n, k) is read as it
            is.
        scale_a: (m,) or (m, 1), one for each row, or one for all; any float dtype of
            32 bits or less; so are the next ones.
        scale_b: (n,) or (1, n), one for each column, or one for all.
        bias: (n,) or None.
        out_dtype: of the result: f32 (None), f16 or bf16.
        out: where the result goes.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    a, b = input, mat2
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        problem = f"cannot multiply {a.shape} by {b.shape}"
        raise wrong_shape("scaled_mm", problem, "pass (m, k), (k, n)")
    m, n = a.shape[0], b.shape[1]
    for scale, count in ((scale_a, m), (scale_b, n), (bias, n)):
        _check_scale(scale, count)
    if a.dtype not in _BYTES or a.dtype != b.dtype:
        problem = f"`scaled_mm` was given input of {a.dtype}, mat2 of {b.dtype}"
        help_ = f"the dtypes it multiplies are {', '.join(map(str, _BYTES))}"
        raise LaunchError(problem, "X0828", help_)

    def steps(made: Any) -> Any:
        work = Product(m, n, a.shape[1], 1, a.dtype)
        cut = cut_for_device([array_of(x) for x in (a, b)], work)
        tiles = choose_tiles(m, n) if cut is None else tiles_of_device(work, cut)
        line: View = lambda x: x.reshape(-1)
        views = (itself, itself, line, line, itself, itself)
        constants = (i32 if a.dtype == i8 else f32, *tiles[:3])
        launch = Launch(scaled_product, views, (), tiles.grid, constants)
        return [Step(launch, (a, b, scale_a, scale_b, bias, *made))]

    return Call((result((m, n), as_dtype(out_dtype, f32)),), steps)


def _check_scale(scale: Operand | None, count: int) -> None:
    if scale is None:
        return
    if size_of(scale.shape) not in (1, count):
        problem = f"`{scale.name}` is {scale.shape}"
        raise wrong_shape("scaled_mm", problem, f"pass {count} numbers, or one")
    if not scale.dtype.is_float or scale.dtype.bits > 32:
        problem = f"`scaled_mm` was given `{scale.name}` of {scale.dtype}"
        raise LaunchError(problem, "X0828", "pass f32, f16 or bf16")


_NAME = "linear_int4"
_ROWS, _COLUMNS = (1, 2, 4, 8, 16, 64), (16, 32, 64, 128)
_FEW = 4
"""Rows that f32 multiplies: bf16 costs more to make than it saves."""
_JOINED = 64
"""Halves of groups up to here are one product: both fit in L1 or near it."""


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
) -> None:
    """``out = sum by group of (x @ q) * scales + sum(x) * (zeros - 8 scales) + bias``.

    Args:
        x: (m, k).
        weight: (k / 2, n); of each group the lower halves of bytes are its first HALF
            rows, the upper ones the others.
        scales: (groups, n).
        zeros: the same, or None.
        bias: (n,) or None.
        out: (m, n).
        ACC: the dtype that is summed in.
        FACTORS: the dtype that is multiplied.
        HALF: half of a group.
        BM: rows of a tile.
        BN: its columns.
    """
    m, n = xetile.program_id(1) * BM, xetile.program_id(0) * BN
    acc = xetile.zeros((BM, BN), ACC)
    for g in range(scales.shape[0]):
        # As 32 bits, a byte becomes a float in one step more.
        pairs = take(weight, [g * HALF, n], (HALF, BN), xetile.i32)
        low, high = (pairs & 15).to(FACTORS), (pairs >> 4).to(FACTORS)
        at = 2 * g * HALF
        if BM == 1:  # streams the weights
            one = take(x, [m, at], (BM, HALF), ACC)
            two = take(x, [m, at + HALF], (BM, HALF), ACC)
            part = (low * one.T + high * two.T).sum(0)[None, :]
            total = (one + two).sum(1, keepdims=True)
        else:
            both = take(x, [m, at], (BM, 2 * HALF), FACTORS)
            if HALF <= _JOINED:
                part = xetile.tile_mma(both, xetile.cat(low, high))
            else:
                part = xetile.tile_mma(both[:, :HALF], low)
                part = xetile.tile_mma(both[:, HALF:], high, part)
            total = both.to(ACC).sum(1, keepdims=True)
        scale = take(scales, [g, n], (1, BN), ACC)
        shift = -8 * scale
        if zeros is not None:
            shift = shift + take(zeros, [g, n], (1, BN), ACC)
        acc = acc + (part * scale + total * shift)
    if bias is not None:
        acc = acc + take(bias, [n], (BN,), ACC)
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
        weight = numpy.ascontiguousarray(weight)  # else each call copies it

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
        rows, columns = smallest(_ROWS, m), smallest(_COLUMNS, n)
        x, q, first = input, weight, list[Step]()
        if not array_of(x).flags.c_contiguous:
            x = temporary(x.shape, dtype)
            first.append(copied(input, x, SUMS[dtype]))
        if array_of(weight).strides[1] != 1:  # columns would be gathered byte by byte
            q = temporary(q.shape, u8)
            first.append(copied(weight, q))

        def matrix(array: Numbers) -> Numbers:
            return array.reshape(m, -1)

        views = (matrix, itself, itself, itself, itself, matrix)
        grid = (cdiv(n, columns), cdiv(m, rows), 1)
        factors = SUMS[dtype] if rows <= _FEW else dtype
        constants = (SUMS[dtype], factors, k // groups // 2, rows, columns)
        launch = Launch(int4_product, views, (), grid, constants)
        return [*first, Step(launch, (x, q, scales, zeros, bias, *made))]

    return Call((result((*lead, n), dtype),), steps)


def _check(
    x: Operand,
    weight: Operand,
    scales: Operand,
    zeros: Operand | None,
    bias: Operand | None,
) -> int:
    """The number of groups; a LaunchError if operands do not fit."""
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

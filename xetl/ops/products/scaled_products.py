"""Products of groups (``grouped_mm``) and of 8-bit numbers (``scaled_mm``).

Source: torch.nn.functional.grouped_mm; Shazeer et al., arXiv 1701.06538; Dettmers et
al., "LLM.int8()", arXiv 2208.07339.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from xetl import xetile
from xetl.errors import LaunchError
from xetl.language.dtypes import f8e4m3, f8e5m2, f32, i8, i32
from xetl.language.ops import cdiv
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
    wrong_shape,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.views import array_of, as_dtype, floats
from xetl.ops.matrices import put, take
from xetl.ops.products.device_tiles import Product
from xetl.ops.products.host_tiles import choose_tiles
from xetl.ops.products.plans import cut_for_device, tiles_of_device
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
    IS_ONE: constexpr,
    BM: constexpr,
    BN: constexpr,
    BK: constexpr,
) -> None:
    """``out = (a @ b) * scale_a * scale_b + bias``.

    Args:
        a: (m, k), 8-bit integers or floats.
        b: (k, n), dtype of ``a``.
        scale_a: (m,), or (1,) for all rows if ``IS_ONE[0]``.
        scale_b: (n,), or (1,) for all columns if ``IS_ONE[1]``.
        bias: (n,) or None.
        out: (m, n).
        SUMS: the dtype of the sums. The tile is as for `product`.
        IS_ONE: see the scales. A branch at run time would hide which rows are read.
    """
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = accumulated(a, b, m, n, SUMS, BM, BN, BK).to(xetile.f32)
    if IS_ONE[0]:
        acc = acc * scale_a[0].to(xetile.f32)
    else:
        acc = acc * take(scale_a, [m], (BM,), xetile.f32)[:, None]
    if IS_ONE[1]:
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
    """The product of each group, whose rows end at ``ends[group]``; see `grouped_mm`.

    Any group may have all rows. So each has programs for all rows, and most return.
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


@function(
    backward=_grouped_backward,
    saves=["mat_a", "mat_b", "offs"],
    only={"bias": None, "out_dtype": None},
)
def grouped_mm(
    mat_a: ArrayLike, mat_b: ArrayLike, offs: ArrayLike, *, out: ArrayLike = None
) -> Any:
    """``out[rows] = mat_a[rows] @ mat_b[i]`` for the rows of each group i.

    Group i has the rows from ``offs[i - 1]`` (0 for the first) to ``offs[i]``; a group
    may be empty. If ``mat_b`` has two dimensions, the groups divide the summed
    dimension: ``out[i] = mat_a[:, rows] @ mat_b[rows]``.

    Args:
        mat_a: (t, k), or (m, t); f16, bf16, f32 or f64, from any library as for
            `matmul`.
        mat_b: (groups, k, n), or (t, n); dtype of ``mat_a``.
        offs: (groups,), i32, in ascending order; the last one is t.
        out: the array that gets the result.

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
        # Choose the tiles for groups of equal size.
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
    return Call((result(shape, dtype),), steps if groups else lambda made: [])


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
        input: (m, k); i8, which is summed in i32, or an 8-bit float (f8e4m3, f8e5m2),
            which is summed in f32.
        mat2: (k, n), dtype of ``input``. The transpose of a weight (n, k) is read
            without a copy.
        scale_a: (m,) or (m, 1), one for each row, or one for all; any float dtype of
            32 bits or less, as ``scale_b`` and ``bias``.
        scale_b: (n,) or (1, n), one for each column, or one for all.
        bias: (n,) or None.
        out_dtype: the dtype of the result: f32 (None), f16 or bf16.
        out: the array that gets the result.

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
        is_one = tuple(prod(x.shape) == 1 for x in (scale_a, scale_b))
        constants = (i32 if a.dtype == i8 else f32, is_one, *tiles[:3])
        launch = Launch(scaled_product, views, (), tiles.grid, constants)
        return [Step(launch, (a, b, scale_a, scale_b, bias, *made))]

    return Call((result((m, n), as_dtype(out_dtype, f32)),), steps)


def _check_scale(scale: Operand | None, count: int) -> None:
    if scale is None:
        return
    if prod(scale.shape) not in (1, count):
        problem = f"`{scale.name}` is {scale.shape}"
        raise wrong_shape("scaled_mm", problem, f"pass {count} numbers, or one")
    if not scale.dtype.is_float or scale.dtype.bits > 32:
        problem = f"`scaled_mm` was given `{scale.name}` of {scale.dtype}"
        raise LaunchError(problem, "X0828", "pass f32, f16 or bf16")

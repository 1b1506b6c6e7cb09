"""``argmax`` and ``argmin``, and ``max`` and ``min`` along a dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from xetl.language.dtypes import i64
from xetl.ops.calling.declarations import (
    ArrayLike,
    Call,
    Context,
    Operand,
    Step,
    result,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.views import piece_width, rows
from xetl.ops.indexing import gather_backward
from xetl.ops.rows.reduction_kernels import (
    as_it_lies,
    by_columns,
    by_lanes,
    down_of,
    find,
    reduced,
    views_of,
    with_reduced,
)
from xetl.ops.rows.reductions import compared_in, limit_of, nothing


def _found(
    name: str, x: Operand, dim: int | None, keepdim: bool, *, largest: bool, both: bool
) -> Call:
    what = reduced(name, x, dim, keepdim)
    if what.columns == 0:
        raise nothing(name, x)
    acc = compared_in(x.dtype)
    results = (result(what.shape, i64),)
    if both:
        results = (result(what.shape, x.dtype), *results)

    # Over several dimensions, indices are counted in row-major order.
    seen = x if len(what.dims) == 1 else replace(x, order=None)

    def steps(made: Sequence[Operand]) -> list[Step]:
        source, target = views_of(seen, what.dims)
        padding = limit_of("max" if largest else "min", x.dtype)
        down = down_of(seen, what.dims, made) or by_lanes(x, source, target)
        if down is not None:
            operands = (x, made[0] if both else None, made[-1])
            return [by_columns(find, operands, down, (0, largest, padding, acc))]
        constants = (1, largest, padding, acc, piece_width(x, what.columns))
        values = made[0] if both else None
        views = (source, target if both else None, target)
        return [rows(find, (x, values, made[-1]), views, constants)]

    return Call(results, as_it_lies(seen, what.dims, steps))


@function()
def argmax(
    input: ArrayLike,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    out: ArrayLike = None,
) -> Any:
    """The index of the first largest number, or of the first NaN; i64.

    Args:
        input: any shape; floats or integers.
        dim: the dimension that is searched. None: all, in row-major order.
        keepdim: whether the result keeps it, with extent 1.
        out: the array that gets the result.

    Raises:
        LaunchError: there is nothing to search (X0827).
    """
    return _found("argmax", input, dim, keepdim, largest=True, both=False)


@function()
def argmin(
    input: ArrayLike,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    out: ArrayLike = None,
) -> Any:
    """The index of the first least number; arguments as for `argmax`."""
    return _found("argmin", input, dim, keepdim, largest=False, both=False)


def _chosen_backward(context: Context, grad: Any, _: Any) -> Mapping[str, Any]:
    shape = context.shape_of("input")
    pair = (grad, context.saved[0])
    grad, places = (with_reduced(context, each, len(shape)) for each in pair)
    return {"input": gather_backward(grad, places, shape, context["dim"])}


@function(results=2, backward=_chosen_backward, saves=["result1"])
def max_with_indices(
    input: ArrayLike, dim: int, keepdim: bool = False, *, out: ArrayLike = None
) -> Any:
    """The largest numbers along a dimension, and their indices."""
    return _found("max", input, dim, keepdim, largest=True, both=True)


@function(results=2, backward=_chosen_backward, saves=["result1"])
def min_with_indices(
    input: ArrayLike, dim: int, keepdim: bool = False, *, out: ArrayLike = None
) -> Any:
    """The least numbers along a dimension, and their indices."""
    return _found("min", input, dim, keepdim, largest=False, both=True)

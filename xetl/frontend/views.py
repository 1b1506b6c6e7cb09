"""Parts of arrays: ``X[2:5, ::2]`` is a view, with NumPy's rules for slices."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from xdsl.rewriter import InsertPoint

from xetl.dialects.base import Index
from xetl.errors import TileTypeError
from xetl.frontend.arguments import Arg
from xetl.frontend.arrays import check_count, index_array
from xetl.frontend.casts import to_int
from xetl.frontend.context import Context
from xetl.frontend.expressions import argument
from xetl.frontend.types import (
    Array,
    Extent,
    Value,
    describe,
    is_scalar,
    scalar_kind,
)
from xetl.ir.builder import Builder


def slice_array(ctx: Context, array: Array, items: Sequence[ast.expr]) -> Value:
    """The view that slices, and numbers beside them, choose.

    Raises:
        TileShapeError: more items than the array has dims.
        TileTypeError: a bound is no int, a step not known when compiling or 0.
    """
    check_count(ctx, array, len(items))
    offset, sizes, strides = array.offset, [*array.sizes], [*array.strides]
    numbers: dict[int, Arg] = {}
    for dim, item in enumerate(items):
        if not isinstance(item, ast.Slice):
            numbers[dim] = argument(ctx, item)
            continue
        step = _step(ctx, item)
        if step != 1 and dim == array.unit_dim:
            raise ctx.error(
                TileTypeError,
                "X0305",
                f"`{array.name}` is contiguous along this dim: it takes no step",
                item,
                help="index with a vector, `X[rows, cols]`, or slice before the launch",
            )
        lower, upper = (_bound(ctx, each) for each in (item.lower, item.upper))
        build = Builder(InsertPoint.at_end(ctx.block), ctx.location())
        start, sizes[dim] = _part(build, sizes[dim], lower, upper, step)
        offset = build.plus(offset, build.times(start, strides[dim]))
        strides[dim] = build.times(strides[dim], step)
    view = replace(
        array,
        name=f"{array.name}[...]",
        offset=offset,
        sizes=tuple(sizes),
        strides=tuple(strides),
        plain=False,
    )
    return index_array(ctx, view, [*numbers.values()], [*numbers]) if numbers else view


def _step(ctx: Context, item: ast.Slice) -> int:
    if item.step is None:
        return 1
    step = ctx.evaluate(item.step)
    if isinstance(step, int) and step != 0:
        return step
    raise ctx.error(
        TileTypeError,
        "X0305",
        "the step of a slice is a number known when compiling, and not 0",
        item.step,
        label=f"is {describe(step)}",
    )


def _bound(ctx: Context, node: ast.expr | None) -> Index | None:
    if node is None:
        return None
    value = ctx.evaluate(node)
    if not is_scalar(value) or scalar_kind(value) != "int":
        raise ctx.error(
            TileTypeError,
            "X0305",
            "a bound of a slice must be an int",
            node,
            label=f"is {describe(value)}",
            help="elements at vectors of indices need a vector for each dim",
        )
    return value if isinstance(value, int) else to_int(ctx, value)


def _part(
    b: Builder, size: Extent, lower: Index | None, upper: Index | None, step: int
) -> tuple[Index, Index]:
    """The first index and how many there are."""
    if step > 0:
        start = 0 if lower is None else _clamped(b, lower, size, 0, size)
        stop = size if upper is None else _clamped(b, upper, size, 0, size)
        distance = b.minus(stop, start)
    else:
        last = b.minus(size, 1)
        start = last if lower is None else _clamped(b, lower, size, -1, last)
        stop = -1 if upper is None else _clamped(b, upper, size, -1, last)
        distance = b.minus(start, stop)
    count = b.ceil_divided(b.maximum(distance, 0), abs(step))
    # The base stays in the array even where the view is empty.
    start = b.maximum(b.minimum(start, b.minus(size, 1)), 0)
    return start, count


def _clamped(b: Builder, bound: Index, size: Extent, low: Index, high: Index) -> Index:
    """A bound as an index: negative ones count from the end."""
    if isinstance(bound, int):
        bound = b.plus(size, bound) if bound < 0 else bound
    else:
        from_end = b.plus(bound, size)
        bound = b.select(b.compare("slt", bound, 0), from_end, bound)
    return b.maximum(b.minimum(bound, high), low)

"""Views of arrays with NumPy's rules: ``X[2:5, ::2]`` and ``X.reshape(-1, n)``."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce

from xdsl.ir import SSAValue

from xetl.dialects import xetile
from xetl.dialects.base import Index
from xetl.dialects.upstream import arith
from xetl.frontend.arguments import Arg, Call, wrong_kind
from xetl.frontend.arrays import check_count, index_array
from xetl.frontend.casts import to_int, whole
from xetl.frontend.context import Context
from xetl.frontend.expressions import argument
from xetl.frontend.types import Array, Extent, Value, describe, is_int
from xetl.ir.builder import Builder


def slice_array(ctx: Context, array: Array, items: Sequence[ast.expr]) -> Value:
    """Return the view that slices, and numbers beside them, select.

    Raises:
        TileShapeError: there are more items than dims.
        TileTypeError: a bound is no int, or a step is no compile-time int or 0.
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
            problem = f"`{array.name}` is contiguous along this dim: it takes no step"
            help_ = "index with a vector, `X[rows, cols]`, or slice before the launch"
            raise ctx.error("X0305", problem, item, help=help_)
        lower, upper = (_bound(ctx, each) for each in (item.lower, item.upper))
        build = ctx.builder()
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
        return whole(step, wraps=False)
    problem = "the step of a slice is a number known when compiling, and not 0"
    raise ctx.error("X0305", problem, item.step, label=f"is {describe(step)}")


def _bound(ctx: Context, node: ast.expr | None) -> Index | None:
    if node is None:
        return None
    value = ctx.evaluate(node)
    if not is_int(value):
        problem = "a bound of a slice must be an int"
        help_ = "elements at vectors of indices need a vector for each dim"
        label = f"is {describe(value)}"
        raise ctx.error("X0305", problem, node, label=label, help=help_)
    return whole(value, wraps=False) if isinstance(value, int) else to_int(ctx, value)


def _part(
    b: Builder, size: Extent, lower: Index | None, upper: Index | None, step: int
) -> tuple[Index, Index]:
    """Return the first index of a slice, and the number of its elements."""
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
    # The base stays inside of the array even if the view is empty.
    start = b.maximum(b.minimum(start, b.minus(size, 1)), 0)
    return start, count


def _clamped(b: Builder, bound: Index, size: Extent, low: Index, high: Index) -> Index:
    """Return a bound limited to ``low`` .. ``high``; if negative, from the end."""
    if isinstance(bound, int):
        bound = b.plus(size, bound) if bound < 0 else bound
    else:
        from_end = b.plus(bound, size)
        bound = b.select(b.compare("slt", bound, 0), from_end, bound)
    return b.maximum(b.minimum(bound, high), low)


# Reshape ----------------------------------------------------------------------------


def reshape_array(call: Call, array: Array, given: Sequence[Arg]) -> Array:
    """Return the view of a contiguous array with other extents; one may be -1.

    Whether the array is contiguous, and has as many elements, is known only at run
    time: if not, the view is empty and a `device_assert` fails.

    Raises:
        TileShapeError: there is no extent, a negative one or two of -1, or the array
            is known to be column-major.
        TileTypeError: an extent is no int.
    """
    ctx = call.ctx
    sizes = [_size(call, arg) for arg in given]
    if sum(isinstance(each, int) and each == -1 for each in sizes) > 1:
        raise call.error("X0203", "one extent at most can be -1")
    if not sizes or array.rank == 0 or (array.rank == 2 and array.unit_dim == 0):
        raise call.error(
            "X0209",
            f"`{array.name}` of rank {array.rank} cannot be reshaped to rank"
            f" {len(sizes)}",
            help="the elements must lie row by row: reshape before the launch, or"
            " gather with vectors of indices",
        )
    build = ctx.builder()
    old, holds = _row_by_row(build, array)
    known = build.product([_unless_rest(build, each, 1) for each in sizes])
    rest = build.divided(old, build.maximum(known, 1))
    sizes = [_unless_rest(build, each, rest) for each in sizes]
    holds.append(build.compare("eq", build.product(sizes), old))
    holds += [build.compare("sge", n, 0) for n in sizes if not isinstance(n, int)]
    is_view = reduce(partial(build.pure, arith.AndiOp), holds)
    text = f"{array.name}.reshape: another number of elements, or not contiguous"
    build.add(xetile.AssertOp(is_view, [], template=text))
    sizes = [build.select(is_view, each, 0) for each in sizes]
    return replace(
        array,
        name=f"{array.name}.reshape(...)",
        sizes=tuple(sizes),
        strides=tuple(build.row_major(sizes, array.strides[-1])),
        unit_dim=len(sizes) - 1 if array.unit_dim == array.rank - 1 else None,
        plain=False,
    )


def _size(call: Call, arg: Arg) -> Index:
    size = arg.value
    if isinstance(size, int) and size < -1:
        raise call.error("X0203", f"an extent cannot be {size}", help="-1 is the rest")
    if not is_int(size):
        raise wrong_kind(call.ctx, "an extent", "an int", arg)
    return whole(size, wraps=False) if isinstance(size, int) else to_int(call.ctx, size)


def _row_by_row(build: Builder, array: Array) -> tuple[Index, list[SSAValue]]:
    """Return the number of elements, and conditions that they are row-major."""
    holds: list[SSAValue] = []
    count = build.product(array.sizes)
    is_empty = build.compare("eq", count, 0)
    steps = build.row_major(array.sizes, array.strides[-1])
    for size, stride, step in [*zip(array.sizes, array.strides, steps)][:-1]:
        same = build.compare("eq", stride, step)
        # The stride of a dim of one element, or of an empty array, may be anything.
        free = build.compare("sle", build.select(is_empty, 0, size), 1)
        holds.append(build.pure(arith.OriOp, same, free))
    return count, holds


def _unless_rest(build: Builder, size: Index, rest: Index) -> Index:
    """Return the size, or ``rest`` if it is -1."""
    if isinstance(size, int):
        return rest if size == -1 else size
    return build.select(build.compare("eq", size, -1), rest, size)

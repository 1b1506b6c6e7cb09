"""``gather``, ``scatter_add`` and ``index_select``: access by an index.

An index outside of the array reads 0 and adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from xetl.errors import LaunchError
from xetl.language.dtypes import DType, i32, i64
from xetl.language.ops import cdiv
from xetl.ops.activations import cleared, copied
from xetl.ops.calling.calls import Launch, View, chain, split_batch, transposed
from xetl.ops.calling.declarations import (
    ArrayLike,
    Call,
    Context,
    Dims,
    Operand,
    Step,
    result,
    temporary,
    wrong_shape,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.operands import Shape
from xetl.ops.calling.views import (
    LEAST,
    array_of,
    find_dim,
    floats,
    is_on_gpu,
    sums_of,
    width_of,
)
from xetl.ops.indexing_kernels import (
    gather_few,
    gather_rows,
    scatter_columns,
    scatter_rows,
)
from xetl.ops.rows_by_number import added_rows, select_backward, selected

_WIDEST, _STRIPE, _ROW, _ROWS = 1024, 64, 256, 16
_TOGETHER = 64
"""The rows that a program gathers on a CPU, at most, if they are narrow or share their
index. [measured] Zen 4, 8 of 16 columns: 12 ns a row, then 3.7."""

_FEW = 4
"""The most columns for which lanes of a GPU go over rows."""

_SINGLE, _ELEMENTS = 24, 4096
"""Results of at most `_SINGLE` columns are gathered on a CPU without vectors, most of
which a row would not fill, `_ELEMENTS` to a program. [measured] Zen 4, an index for
each element, 3, 4 and 16 columns of 4096 rows in vectors: 30, 21 and 33 us, then 6, 7
and 27; 17 and 24 of 5000 rows: 66, then 38 and 46; 1 and 2 columns of 8192 rows, with
lanes over rows: 5.8 and 16, then 5 and 8. Down columns, Emerald Rapids, 2, 8 and 16 of
8192 rows: 55, 109 and 112, then 11, 43 and 100."""


def _check_index(name: str, index: Operand) -> None:
    if index.dtype not in (i32, i64):
        problem = f"`{name}` was given an index of {index.dtype}"
        raise LaunchError(problem, "X0828", "pass numbers of elements as i32 or i64")


def _check_extents(name: str, dim: int, index: Operand, *others: Operand) -> None:
    """Refuse an index of another rank or with larger extents.

    Along ``dim`` it may be larger than the first of the others.
    """
    for other in others:
        extents = list(zip(index.shape, other.shape))
        if other is others[0]:
            del extents[dim : dim + 1]
        if index.ndim != other.ndim or any(m > n for m, n in extents):
            problem = f"`index` is {index.shape}, but `{other.name}` is {other.shape}"
            raise wrong_shape(name, problem, "pass an index that is no larger")


def _lines(shape: Shape, dim: int, *, along: bool) -> View:
    """Return the view (..., m, n) of the part of an array that an index covers.

    The dimension ``dim`` is n if ``along``, otherwise m.
    """
    if len(shape) < 2:
        return lambda x: x.reshape(1, -1) if along else x.reshape(-1, 1)
    kept = tuple(slice(None) if i == dim else slice(0, n) for i, n in enumerate(shape))
    return lambda x: np.moveaxis(x[kept], dim, -1 if along else -2)


def _seen(
    views: Sequence[View], operands: Sequence[Operand]
) -> tuple[list[View | None], Any]:
    """Return the views for kernels, and the split of their batches."""
    arrays = [view(array_of(x)) for view, x in zip(views, operands)]
    batches = split_batch(arrays)
    return [chain(one, two) for one, two in zip(views, batches.views)], batches


def _gathered(x: Operand, dim: int, index: Operand, shape: Shape) -> Call:
    """Return the call that gathers elements; all rows share an index of rank 1."""
    is_last = dim == max(x.ndim, 1) - 1

    def steps(made: Any) -> Any:
        lines, along = _lines(shape, dim, along=is_last), is_last
        is_row = index.ndim < len(shape)
        is_gpu = is_on_gpu(x)
        if is_last and is_gpu and prod(shape[-1:]) <= _FEW:
            # Lanes go over rows.
            lines, along = chain(lines, transposed), False
        each: View = lambda a: lines(np.broadcast_to(a, shape, subok=True))
        operands, places = (x, index, *made), each if is_row else lines
        views, batches = _seen((lines, places, lines), operands)
        is_shared = along and is_row and index.ndim == 1
        if is_shared:
            views[1] = None
        m, n = lines(array_of(made[0])).shape[-2:]
        if not is_gpu and n <= _SINGLE:
            rows = cdiv(_ELEMENTS, n)
            grid = (cdiv(m, rows), batches.matrices, 1)
            launch = Launch(gather_few, views, batches.loops, grid, (along, n, rows))
            return [Step(launch, operands)]
        rows, width = 1, min(_WIDEST, width_of(n))
        if not is_gpu:
            width = min(width, 1 << (n - 1).bit_length())
            most = _TOGETHER if is_shared else min(_TOGETHER, _WIDEST // width)
            rows = min(most, 1 << (m - 1).bit_length())
        grid = (cdiv(n, width), cdiv(m, rows), batches.matrices)
        launch = Launch(gather_rows, views, batches.loops, grid, (along, width, rows))
        return [Step(launch, operands)]

    return Call((result(shape, x.dtype),), steps)


def _again(context: Context, grad: Any) -> Mapping[str, Any]:
    return {"grad": gather(grad, context["dim"], context.saved[0])}


@function(backward=_again, saves=["index"])
def gather_backward(grad: ArrayLike, index: ArrayLike, shape: Dims, dim: int) -> Any:
    """The gradient of the array of this shape that elements were gathered from."""
    dim = find_dim("gather", index, dim)
    new = result(tuple(shape), grad.dtype)
    return Call((new,), lambda made: _sum_at(None, grad, index, made[0], dim))


def _gather_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    (index,), dim = context.saved, context["dim"]
    return {"input": gather_backward(grad, index, context.shape_of("input"), dim)}


@function(backward=_gather_backward, saves=["index"], only={"sparse_grad": False})
def gather(
    input: ArrayLike, dim: int, index: ArrayLike, *, out: ArrayLike = None
) -> Any:
    """``out[i, j] = input[index[i, j], j]`` for dimension 0, and so on.

    Args:
        input: any shape and dtype, from any library as for `softmax`.
        dim: the dimension of the index.
        index: i32 or i64, with as many dimensions as ``input``, and not larger in the
            other dimensions. An index outside of the array gives 0.
        out: the array that gets the result: shape of ``index``, dtype of ``input``.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    dim = find_dim("gather", input, dim)
    _check_index("gather", index)
    _check_extents("gather", dim, index, input)
    each, line = _gathered(input, dim, index, index.shape), _line(dim, index)
    whole = selected(input, index, index.shape, dim, line)

    def steps(made: Any) -> Any:
        is_whole = _has_rows(dim, index, input, input)
        return (whole if is_whole else each).steps(made)

    return Call(each.results, steps)


def _added(
    x: Operand | None, index: Operand, src: Operand, made: Operand, dim: int, acc: DType
) -> Step:
    """Return the launch that copies lines of ``x`` and adds to them while in caches.

    Without ``x``, it adds to the elements of ``made``.
    """
    along = _is_innermost(dim, made)
    cut = _lines(index.shape, dim, along=along)
    whole = cut if x is None else _lines(made.shape, dim, along=along)
    given = [index, src, made] if x is None else [x, index, src, made]
    some, batches = _seen([cut if y is src else whole for y in given], given)
    m, n = whole(array_of(made)).shape[-2:]
    is_apart = acc != made.dtype
    is_gpu = is_on_gpu(made)
    if along:
        width = min(_ROW, width_of(n))
        block = 1 if is_gpu else max(1, min(_TOGETHER, _ROW // n))
        rows = block * (cdiv(_ROWS, block) if is_apart else 1)
        kernel, constants = scatter_rows, (width, block, rows)
        programs, held = cdiv(m, rows), (block, n)
    else:
        # Narrow columns of a wide matrix evict each other from caches.
        is_apart = x is not None
        width = min(_STRIPE, width_of(n))
        kernel, constants, programs = scatter_columns, (width, is_gpu), cdiv(n, width)
        held = (m, min(n, width))
    matrices = batches.matrices
    sums = temporary((programs * matrices, *held), acc) if is_apart else None
    views = [*(4 - len(some)) * [None], *some[:-1], None, some[-1]]
    launch = Launch(kernel, views, batches.loops, (programs, matrices, 1), constants)
    return Step(launch, (x, index, src, sums, made))


def _scatter_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    (index,), dim = context.saved, context["dim"]
    by_src = gather(grad, dim, index)
    if context.shape_of("src") != index.shape:
        places = tuple(slice(0, n) for n in index.shape)
        by_src, part = by_src.new_zeros(context.shape_of("src")), by_src
        by_src[places] = part
    return {"input": grad, "src": by_src}


@function(backward=_scatter_backward, saves=["index"])
def scatter_add(
    input: ArrayLike,
    dim: int,
    index: ArrayLike,
    src: ArrayLike,
    *,
    out: ArrayLike = None,
) -> Any:
    """``input``, with ``src[i, j]`` added at ``[index[i, j], j]`` for dimension 0.

    Sums are computed in the order of the index, in f32 (f64 for f64), so that they are
    the same each time.

    Args:
        input: any shape; floats or integers, from any library as for `softmax`.
        dim: the dimension of the index.
        index: i32 or i64, with as many dimensions as ``input``, not larger than
            ``src``, and in the other dimensions not larger than ``input``. An index
            outside of the array adds nothing.
        src: the elements that are added, dtype of ``input``.
        out: the array that gets the result: shape of ``input``.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    dim = find_dim("scatter_add", input, dim)
    _check_index("scatter_add", index)
    _check_extents("scatter_add", dim, index, input, src)
    if src.dtype != input.dtype:
        floats("scatter_add", input, src)
    new = result(input.shape, input.dtype)
    return Call((new,), lambda made: _sum_at(input, src, index, made[0], dim))


def _sum_at(
    x: Operand | None, src: Operand, index: Operand, made: Operand, dim: int
) -> list[Step]:
    """Return the launches that add elements of ``src`` to ``x``, or to zeros."""
    acc = sums_of(made.dtype) if made.dtype.is_float else made.dtype
    if _has_rows(dim, index, made if x is None else x, src):
        return added_rows((x, src, made), index, _line(dim, index), dim)
    along = _is_innermost(dim, made)
    is_narrow = prod(made.shape[dim:][:1] if along else made.shape[-1:]) < LEAST
    if x is not None and not is_narrow and _same_matrices(dim, index, x):
        return [_added(x, index, src, made, dim, acc)]
    # An array of the user may overlap `src`, which is still to be read.
    is_made = acc == made.dtype and made.is_new
    to = made if is_made else temporary(made.shape, acc)
    steps = [cleared(to) if x is None else copied(x, to, acc)]
    if prod(index.shape):
        steps.append(_added(None, index, src, to, dim, acc))
    return steps if is_made else [*steps, copied(to, made, acc)]


def _is_innermost(dim: int, x: Operand) -> bool:
    """Return whether the elements along ``dim`` are rows, perhaps those of columns."""
    return prod(x.shape[dim + 1 :]) == 1


def _line(dim: int, index: Operand) -> View:
    """Return the view of the first index of each row."""
    place = tuple(slice(None) if i == dim else 0 for i in range(index.ndim))
    return lambda a: a[place]


def _has_rows(dim: int, index: Operand, x: Operand, src: Operand) -> bool:
    """Return whether all elements of a row share an index, as in an expanded one."""
    others = [i for i in range(x.ndim) if i != dim]
    if _is_innermost(dim, x) or any(array_of(index).strides[i] for i in others):
        return False
    is_whole = all(index.shape[i] == x.shape[i] == src.shape[i] for i in others)
    given = array_of(x), array_of(src)
    return is_whole and all(each.flags.c_contiguous for each in given)


def _same_matrices(dim: int, index: Operand, x: Operand) -> bool:
    """Return whether x and index have the same extents outside of their matrices.

    A matrix has ``dim`` and the last dimension, or the last two.
    """
    last = max(x.ndim, 1) - 1
    matrix = {last, last - 1 if dim == last else dim}
    return all(
        m == n for i, (m, n) in enumerate(zip(index.shape, x.shape)) if i not in matrix
    )


def _select_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    (index,), dim = context.saved, context["dim"]
    shape = context.shape_of("input")
    if dim % len(shape) != len(shape) - 1:
        return {"input": select_backward(grad.contiguous(), index, dim, shape[dim], -1)}
    around = [1] * grad.ndim
    around[dim] = -1
    places = index.reshape(around).expand(grad.shape)
    return {"input": gather_backward(grad, places, shape, dim)}


@function(backward=_select_backward, saves=["index"])
def index_select(
    input: ArrayLike, dim: int, index: ArrayLike, *, out: ArrayLike = None
) -> Any:
    """The slices of a dimension at these indices: ``input[:, index]`` for dimension 1.

    Args:
        input: any shape and dtype, from any library as for `softmax`.
        dim: the dimension of the index.
        index: (k,), i32 or i64. An index outside of the array gives zeros.
        out: the array that gets the result: shape of ``input``, but k along ``dim``.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    dim = find_dim("index_select", input, dim)
    _check_index("index_select", index)
    if index.ndim > 1 or not input.shape:
        problem = f"`index` is {index.shape} and `input` is {input.shape}"
        raise wrong_shape("index_select", problem, "pass (k,), and no number")
    count = prod(index.shape)
    shape = (*input.shape[:dim], count, *input.shape[dim + 1 :])
    if dim == input.ndim - 1:
        return _gathered(input, dim, index, shape)

    return selected(input, index, shape, dim)

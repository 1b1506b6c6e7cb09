"""``gather``, ``scatter_add``, ``index_select``, ``embedding``: by numbers of rows.

Numbers outside of an array read as 0 and add nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xetl import xetile
from xetl.errors import LaunchError
from xetl.language.dtypes import DType, i32, i64
from xetl.language.ops import cdiv
from xetl.ops.activations import copied
from xetl.ops.calling.calls import (
    Launch,
    View,
    as_line,
    as_row,
    chain,
    itself,
    split_batch,
)
from xetl.ops.calling.declarations import (
    SUMS,
    ArrayLike,
    Call,
    Context,
    Operand,
    Step,
    result,
    temporary,
    wrong_shape,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.operands import Numbers, Shape
from xetl.ops.calling.views import (
    array_of,
    find_dim,
    floats,
    size_of,
    sums_of,
    width_of,
)
from xetl.ops.matrices import matrix, put, take
from xetl.xetile import Array, constexpr

_WIDEST, _STRIPE, _ROW, _ROWS = 1024, 64, 256, 16


@xetile.kernel
def gather_rows(
    x: Array, index: Array, out: Array, ALONG: constexpr, WIDTH: constexpr
) -> None:
    """``out[i, j] = x[index[i, j], j]``, or ``x[i, index[i, j]]`` along rows.

    All are (..., m, n), an index of one row is that of all. A program makes WIDTH
    columns of a row.
    """
    first, i = xetile.program_id(0) * WIDTH, xetile.program_id(1)
    number = xetile.program_id(2)
    places, source = matrix(index, number), matrix(x, number)
    numbers = places[min(i, places.shape[0] - 1)]
    at = xetile.load_tile(xetile.init_tile(numbers, [first], (WIDTH,)), padding=-1)
    if ALONG:
        found = xetile.load_gather(xetile.init_tile(source[i], [at]))
    else:
        columns = first + xetile.arange(WIDTH)
        found = xetile.load_gather(xetile.init_tile(source, [at, columns]))
    put(found, matrix(out, number)[i], [first])


@xetile.function
def convert(source: Array, at: int, to: Array, begin: int, SHAPE: constexpr) -> None:
    """``to[i, begin + j] = source[i, at + j]`` for j below SHAPE[1], converted."""
    for i in range(0, source.shape[0], SHAPE[0]):
        put(take(source, [i, at], SHAPE, to.dtype), to, [i, begin])


@xetile.kernel
def scatter_columns(
    x: Array | None,
    index: Array,
    source: Array,
    sums: Array | None,
    out: Array,
    WIDTH: constexpr,
) -> None:
    """``out = x; out[index[i, j], j] += source[i, j]``, one i after the other.

    A program has WIDTH columns to itself: no atomics, the same sums each time. Without
    ``x`` what is in ``out`` is added to. With ``sums``, (programs, rows, WIDTH), they
    are made there, in its dtype.
    """
    program, number = xetile.program_id(0), xetile.program_id(1)
    places, added = matrix(index, number), matrix(source, number)
    to, first, begin = matrix(out, number), program * WIDTH, program * WIDTH
    if sums is not None:
        to, begin = sums[number * xetile.num_programs(0) + program], 0
    if x is not None:
        convert(matrix(x, number), first, to, begin, (8, WIDTH))
    columns = begin + xetile.arange(WIDTH)[None, :]
    for i in range(0, places.shape[0]):
        rows = take(places, [i, first], (1, WIDTH), xetile.i64, -1)
        v = take(added, [i, first], (1, WIDTH), to.dtype)
        at = xetile.init_tile(to, [rows, columns + rows * 0])
        xetile.store_scatter(xetile.load_gather(at) + v, None, at)
    if sums is not None:
        convert(to, begin, matrix(out, number), first, (8, WIDTH))


@xetile.function
def convert_row(source: Array, to: Array, WIDTH: constexpr) -> None:
    """``to[i] = source[i]`` of two rows, in the dtype of ``to``."""
    for j in range(0, to.shape[0], WIDTH):
        put(take(source, [j], (WIDTH,), to.dtype), to, [j])


@xetile.kernel
def scatter_rows(
    x: Array | None,
    index: Array,
    source: Array,
    sums: Array | None,
    out: Array,
    WIDTH: constexpr,
    ROWS: constexpr,
) -> None:
    """``out[i] = x[i]; out[i, index[i, j]] += source[i, j]``, ROWS rows to a program.

    Without ``x`` what is in ``out`` is added to. With ``sums``, (programs, columns),
    a row is made there, in its dtype.
    """
    program, number = xetile.program_id(0), xetile.program_id(1)
    whole = matrix(out, number)
    for i in range(program * ROWS, min(program * ROWS + ROWS, whole.shape[0])):
        row = whole[i]
        to = row
        if sums is not None:
            to = sums[number * xetile.num_programs(0) + program]
        if x is not None:
            convert_row(matrix(x, number)[i], to, WIDTH)
        if i < matrix(index, number).shape[0]:
            places, added = matrix(index, number)[i], matrix(source, number)[i]
            for j in range(0, places.shape[0]):
                at = places[j]
                if at >= 0 and at < to.shape[0]:
                    to[at] = to[at] + added[j].to(to.dtype)
        if sums is not None:
            convert_row(to, row, WIDTH)


@xetile.kernel
def select_rows(index: Array, x: Array, out: Array, WIDTH: constexpr) -> None:
    """``out[i] = x[index[i]]`` of each matrix of a batch; index is (m,)."""
    first, i = xetile.program_id(0) * WIDTH, xetile.program_id(1)
    number = xetile.program_id(2)
    tile = xetile.init_tile(matrix(x, number), [index[i], first], (1, WIDTH))
    to = xetile.init_tile(matrix(out, number), [i, first], (1, WIDTH))
    xetile.store_tile(xetile.load_tile(tile), to)


def _check_index(name: str, index: Operand) -> None:
    if index.dtype not in (i32, i64):
        problem = f"`{name}` was given an index of {index.dtype}"
        raise LaunchError(problem, "X0828", "pass numbers of elements as i32 or i64")


def _check_extents(name: str, dim: int, index: Operand, *others: Operand) -> None:
    """Refuse an index of another rank or larger extents, ``dim`` of the first aside."""
    for other in others:
        extents = list(zip(index.shape, other.shape))
        if other is others[0]:
            del extents[dim : dim + 1]
        if index.ndim != other.ndim or any(m > n for m, n in extents):
            problem = f"`index` is {index.shape}, but `{other.name}` is {other.shape}"
            raise wrong_shape(name, problem, "pass an index that is no larger")


def _lines(shape: Shape, dim: int, *, along: bool) -> View:
    """(..., m, n) of the places of an index, ``dim`` as the rows, or as the columns."""
    if len(shape) < 2:
        return lambda x: x.reshape(1, -1) if along else x.reshape(-1, 1)
    kept = tuple(slice(None) if i == dim else slice(0, n) for i, n in enumerate(shape))
    return lambda x: x[kept] if along else np.moveaxis(x[kept], dim, -2)


def _seen(
    views: Sequence[View], operands: Sequence[Operand]
) -> tuple[list[View | None], Any]:
    """The views as kernels take them, and how batches are split."""
    arrays = [view(array_of(x)) for view, x in zip(views, operands)]
    batches = split_batch(arrays)
    return [chain(one, two) for one, two in zip(views, batches.views)], batches


def _gathered(x: Operand, dim: int, index: Operand, shape: Shape) -> Call:
    """Elements by number; of an index of rank 1 those of each row."""
    along = dim == max(x.ndim, 1) - 1

    def steps(made: Any) -> Any:
        lines = _lines(shape, dim, along=along)
        is_row = index.ndim < len(shape)
        operands, views = (x, index, *made), (lines, as_row, lines)
        if is_row:
            (one, three), batches = _seen((lines, lines), (x, *made))
            views = (one, as_row, three)
        else:
            views, batches = _seen([lines] * 3, operands)
        m, n = lines(array_of(made[0])).shape[-2:]
        width = min(_WIDEST, width_of(n))
        grid = (cdiv(n, width), m, batches.matrices)
        launch = Launch(gather_rows, views, batches.loops, grid, (along, width))
        return [Step(launch, operands)]

    return Call((result(shape, x.dtype),), steps)


def _gather_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    (index,), dim = context.saved, context["dim"]
    zeros = grad.new_zeros(context.shape_of("input"))
    return {"input": scatter_add(zeros, dim, index, grad)}


@function(backward=_gather_backward, saves=["index"])
def gather(
    input: ArrayLike, dim: int, index: ArrayLike, *, out: ArrayLike = None
) -> Any:
    """``out[i, j] = input[index[i, j], j]`` for dimension 0, and so on.

    Args:
        input: any shape and dtype, from any library as for `softmax`.
        dim: the dimension that numbers count.
        index: i32 or i64, of as many dimensions, no larger in the other ones. A number
            outside of the array gives 0.
        out: where the result goes: shape of ``index``, dtype of ``input``.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    dim = find_dim("gather", input, dim)
    _check_index("gather", index)
    _check_extents("gather", dim, index, input)
    return _gathered(input, dim, index, index.shape)


def _added(
    x: Operand | None, index: Operand, src: Operand, made: Operand, dim: int, acc: DType
) -> Step:
    """The launch that copies lines of ``x`` and adds to them while caches hold them.

    Without ``x`` the result is there already.
    """
    along = dim == max(made.ndim, 1) - 1
    cut = _lines(index.shape, dim, along=along)
    whole = cut if x is None else _lines(made.shape, dim, along=along)
    given = [index, src, made] if x is None else [x, index, src, made]
    some, batches = _seen([cut if y is src else whole for y in given], given)
    m, n = whole(array_of(made)).shape[-2:]
    is_apart = acc != made.dtype
    if along:
        width, rows = min(_ROW, width_of(n)), _ROWS if is_apart else 1
        kernel, constants, programs = scatter_rows, (width, rows), cdiv(m, rows)
        own = (n,)
    else:
        # Narrow columns of a wide matrix keep each other out of caches.
        is_apart = x is not None
        width = min(_STRIPE, width_of(n))
        kernel, constants, programs = scatter_columns, (width,), cdiv(n, width)
        own = (m, width)
    matrices = batches.matrices
    sums = temporary((programs * matrices, *own), acc) if is_apart else None
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

    Sums are made in the order of the index, in f32 (f64 for f64), the same each time.

    Args:
        input: any shape; floats or integers, from any library as for `softmax`.
        dim: the dimension that numbers count.
        index: i32 or i64, of as many dimensions, no larger than ``src``, and in the
            other dimensions than ``input``. A number outside adds nothing.
        src: what is added, dtype of ``input``.
        out: where the result goes: shape of ``input``.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    dim = find_dim("scatter_add", input, dim)
    _check_index("scatter_add", index)
    _check_extents("scatter_add", dim, index, input, src)
    if src.dtype != input.dtype:
        floats("scatter_add", input, src)
    acc = sums_of(input.dtype) if input.dtype.is_float else input.dtype

    def steps(made: Any) -> Any:
        if _same_matrices(dim, index, input):
            return [_added(input, index, src, made[0], dim, acc)]
        # What a user gave may be `src`, which is still to be read.
        is_made = acc == input.dtype and made[0].is_new
        to = made[0] if is_made else temporary(input.shape, acc)
        some = [copied(input, to, acc)]
        if size_of(index.shape):
            some.append(_added(None, index, src, to, dim, acc))
        return some if is_made else [*some, copied(to, made[0], acc)]

    return Call((result(input.shape, input.dtype),), steps)


def _same_matrices(dim: int, index: Operand, x: Operand) -> bool:
    """Whether both have as many matrices of ``dim`` and the last or its neighbour."""
    last = max(x.ndim, 1) - 1
    matrix = {last, last - 1 if dim == last else dim}
    return all(
        m == n for i, (m, n) in enumerate(zip(index.shape, x.shape)) if i not in matrix
    )


def _select_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    (index,), dim = context.saved, context["dim"]
    zeros = grad.new_zeros(context.shape_of("input"))
    around = [1] * grad.ndim
    around[dim] = -1
    places = index.reshape(around).expand(grad.shape)
    return {"input": scatter_add(zeros, dim, places, grad)}


@function(backward=_select_backward, saves=["index"])
def index_select(
    input: ArrayLike, dim: int, index: ArrayLike, *, out: ArrayLike = None
) -> Any:
    """The slices of a dimension that have these numbers, ``input[:, index]``, say.

    Args:
        input: any shape and dtype, from any library as for `softmax`.
        index: (k,), i32 or i64. A number outside of the array gives zeros.
        out: where the result goes: the shape of ``input``, but k along ``dim``.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    dim = find_dim("index_select", input, dim)
    _check_index("index_select", index)
    if index.ndim > 1 or not input.shape:
        problem = f"`index` is {index.shape} and `input` is {input.shape}"
        raise wrong_shape("index_select", problem, "pass (k,), and no number")
    count = size_of(index.shape)
    shape = (*input.shape[:dim], count, *input.shape[dim + 1 :])
    if dim == input.ndim - 1:
        return _gathered(input, dim, index, shape)

    outer, inner = size_of(shape[:dim]), size_of(shape[dim + 1 :])
    return _selected(input, index, shape, outer, inner)


def _selected(x: Operand, index: Operand, shape: Shape, outer: int, inner: int) -> Call:
    """The rows of ``outer`` matrices of ``inner`` columns that have these numbers."""

    def steps(made: Any) -> Any:
        count = size_of(index.shape)
        width = min(_WIDEST, width_of(inner))
        # Of one matrix, programs have no number of a batch to test.
        batch = (outer,) if outer != 1 else ()
        view: View = lambda a: a.reshape(*batch, -1, inner)
        grid = (cdiv(inner, width), count, outer)
        launch = Launch(select_rows, (as_line, view, view), (), grid, (width,))
        return [Step(launch, (index, x, *made)) if count else None]

    return Call((result(shape, x.dtype),), steps)


@xetile.kernel
def embedding_backward_columns(
    grad: Array, numbers: Array, out: Array, padding: int, WIDTH: constexpr
) -> None:
    """``out[numbers[i]] += grad[i]`` in some columns, one i after the other.

    A program has its columns to itself: no atomics, the same sums each time.
    """
    first = xetile.program_id(0) * WIDTH
    zeros = xetile.zeros((1, WIDTH), out.dtype)
    for row in range(0, out.shape[0]):
        xetile.store_tile(zeros, xetile.init_tile(out, [row, first], (1, WIDTH)))
    for i in range(0, numbers.shape[0]):
        number = numbers[i]
        if number != padding:
            tile = xetile.init_tile(out, [number, first], (1, WIDTH))
            g = take(grad, [i, first], (1, WIDTH), out.dtype)
            xetile.store_tile(xetile.load_tile(tile) + g, tile)


def _rows(x: Numbers) -> Numbers:
    return x.reshape(-1, x.shape[-1])


@function()
def embedding_backward(
    grad: ArrayLike, input: ArrayLike, rows: int, padding_idx: int
) -> Any:
    """The gradient by the table."""
    shape, acc = (rows, grad.shape[-1]), SUMS[grad.dtype]

    def steps(made: Sequence[Operand]) -> list[Step]:
        to = made[0] if acc == grad.dtype else temporary(shape, acc)
        grid = (cdiv(shape[1], _STRIPE), 1, 1)
        views = (_rows, as_line, itself)
        launch = Launch(embedding_backward_columns, views, (), grid, (_STRIPE,))
        first = Step(launch, (grad, input, to), (padding_idx,))
        return [first] if to is made[0] else [first, copied(to, made[0], acc)]

    return Call((result(shape, grad.dtype),), steps)


def _backward(context: Context, grad: Any) -> Mapping[str, Any]:
    (numbers,) = context.saved
    rows, padding = context.shape_of("weight")[0], context["padding_idx"]
    padding = -1 if padding is None else padding % rows
    return {"weight": embedding_backward(grad.contiguous(), numbers, rows, padding)}


@function(backward=_backward, saves=["input"])
def embedding(
    input: ArrayLike,
    weight: ArrayLike,
    padding_idx: int | None = None,
    *,
    out: ArrayLike = None,
) -> Any:
    """``weight[input]``: the rows of a table that have these numbers.

    Args:
        input: (...), i32 or i64. A number outside of the table gives zeros.
        weight: (rows, n), of any dtype, from any library as for `softmax`.
        padding_idx: a row that gets no gradient.
        out: where the result goes.

    Returns:
        ``out``, or a new array: (..., n), dtype of ``weight``.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    if input.dtype not in (i32, i64):
        problem = f"`embedding` was given numbers of {input.dtype}"
        raise LaunchError(problem, "X0828", "pass numbers of rows as i32 or i64")
    if weight.ndim != 2:
        problem = f"`weight` is {weight.shape}"
        raise wrong_shape("embedding", problem, "pass a table (rows, n)")
    rows, n = weight.shape
    if padding_idx is not None and not -rows <= padding_idx < rows:
        problem = f"`weight` is {weight.shape}, which has no row {padding_idx}"
        raise wrong_shape("embedding", problem, "`padding_idx` is one of its rows")
    return _selected(weight, input, (*input.shape, n), 1, n)

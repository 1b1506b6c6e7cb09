"""Views of operands for kernels: rows along a dimension, or elements in a line."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from xetl.errors import LaunchError
from xetl.language.dtypes import DType, f32, f64
from xetl.language.maps import WgMap, wg_map
from xetl.language.ops import cdiv
from xetl.ops.calling import calls
from xetl.ops.calling.declarations import (
    SUMS,
    Operand,
    Operands,
    Step,
    common_dtype_of,
    wrong_shape,
)
from xetl.ops.calling.operands import Numbers, Shape, order_of
from xetl.runtime.executables import choose_target
from xetl.runtime.kernel import Kernel
from xetl.runtime.placement import choose_backend
from xetl.runtime.usm import DEVICE_BACKEND

LEAST, _FEWEST = 16, 8
"""The least columns of a tile: those of a vector; the most that CPUs do not pad."""
_ELEMENTS = 4096
"""Elements of an elementwise program: 16 KB of f32, so all arrays stay in L1."""

_SHORT = 1024
"""Elements of a program with several short rows (at most 128 columns): the fixed costs
of a program then hardly count (`softmax` of 7 columns on Zen 4: 17.6 ns a row, then
11.5)."""

_ROWS_ACROSS = 8
"""Rows that CPUs reduce across lanes together, at most; blocks consist of these."""

_CARRIED = 64
"""Columns of a piece of a row on CPUs: four vectors of AVX-512, which hide latency."""

ROWS_OF_MESSAGE = 8
_COLUMNS_OF_SUBGROUP = 256
"""The most columns of a subgroup: of eight rows they fill half of 256 registers. The
exchange between subgroups costs the same for few columns as for many."""
BLOCK_BYTES = 64
_LEAST_WIDTH = 256
"""Each narrower row is computed by one subgroup alone."""
MOST = 32
"""The most subgroups of a program."""

STRIP = 128
"""Columns, of 4 bytes, of a program that walks down columns: their state stays in
registers [measured: Zen 5, argmax of f64, rows of 8: 5.3 ns each, then 3.4]."""


class Shared(NamedTuple):
    """The view of an operand that all rows share."""

    view: calls.View


def is_on_gpu(x: Operand | None) -> bool:
    """Return whether a GPU computes with x."""
    return choose_backend(values=[array_of(x)]).name == DEVICE_BACKEND


def is_on_cpu(x: Operand) -> bool:
    """Return whether the CPU computes with x."""
    return choose_backend(values=[array_of(x)]).name == "cpu"


def find_dim(function: str, operand: Operand, dim: int) -> int:
    """Return a dimension, counted from 0; raise a LaunchError if it does not exist."""
    rank = max(operand.ndim, 1)
    if not -rank <= dim < rank:
        problem = f"`{operand.name}` is {operand.shape}, which has no dimension {dim}"
        raise wrong_shape(function, problem, f"`dim` is {-rank} to {rank - 1}")
    return dim % rank


def width_of(columns: int, least: int = LEAST) -> int:
    """Return the width of a tile for a number of columns.

    Widths are an eighth of a power of two apart, so that few kernels are compiled.
    """
    step = max(least, (1 << (columns - 1).bit_length()) // 8)
    return max(-(-columns // step), 1) * step


def row_width(x: Operand, columns: int, least: int = LEAST) -> int:
    """Return the width of a tile of rows; ``least``: see `width_of`.

    On a CPU, few columns are not padded: a vector then has the elements of several
    rows. [measured] Emerald Rapids, softmax of f32, rows of 1, 2, 3 and 8: 18 ns each,
    then 1, 1.4, 2.5 and 7; layer norm of 1 and 4: 21 and 20, then 1 and 5.8.
    """
    is_narrow = columns <= _FEWEST and not is_on_gpu(x)
    return width_of(columns, 1 if is_narrow else least)


def piece_width(x: Operand, columns: int) -> int:
    """Return the columns of a piece of a row: few for registers of a CPU, else all."""
    width = width_of(columns)
    return min(width, _CARRIED) if is_on_cpu(x) else width


def side_by_side(rows: int, columns: int) -> int:
    """Return a divisor of ``rows``: so many beside each other are about a strip."""
    most = cdiv(STRIP, columns)
    return max(i for i in range(1, most + 1) if rows % i == 0)


class RowTile(NamedTuple):
    """The rows of a program, and how subgroups share them.

    Attributes:
        rows: the number of rows.
        map: the part that each subgroup owns; None: the compiler decides.
        is_full: whether rows are as wide as the tile, so that nothing is padded.
    """

    rows: int = 1
    map: WgMap | None = None
    is_full: bool = False


def rows_at_once(x: Operand, rows: int, width: int) -> int:
    """Return the rows of a program: several short ones on a CPU, otherwise one."""
    if 8 * width > _SHORT or is_on_gpu(x):
        return 1
    most = _SHORT // width // _ROWS_ACROSS * _ROWS_ACROSS
    return min(most, 1 << max(rows, 1).bit_length() - 1)


def row_tile(x: Operand, matrix: Sequence[int], width: int, sums: DType) -> RowTile:
    """Return the rows of a program: one, or several short ones; on a GPU eight.

    On a GPU a message brings 64 bytes of each of eight rows. Each subgroup owns some
    columns of all rows, so that a row fits their registers.

    Args:
        x: the operand, whose device computes.
        matrix: the numbers of rows and columns.
        sums: the dtype of the computation.
    """
    rows, columns = matrix
    if not is_on_gpu(x):
        return RowTile(rows_at_once(x, rows, width))
    if rows < ROWS_OF_MESSAGE or width < _LEAST_WIDTH or sums is not f32:
        return RowTile()
    for subgroups in range(max(2, cdiv(width, _COLUMNS_OF_SUBGROUP)), MOST + 1):
        if width % (LEAST * subgroups) == 0:
            own = [ROWS_OF_MESSAGE, width // subgroups]
            map_ = wg_map(sg_layout=[1, subgroups], sg_data=own)
            return RowTile(ROWS_OF_MESSAGE, map_, columns == width)
    return RowTile()


def sums_of(*dtypes: DType) -> DType:
    """Return the dtype of a computation with these: f64 if one is f64, else f32."""
    return f64 if f64 in dtypes else f32


def vectors_of(x: Operand) -> tuple[int, int]:
    """Return the number of vector registers of x's device, and sums in a vector."""
    backend = choose_backend(values=[array_of(x)])
    registers, lanes = backend.vectors(choose_target(backend))
    return registers, lanes * 32 // sums_of(x.dtype).bits


def floats(function: str, *operands: Operand | None) -> DType:
    """Return the float dtype that all operands have.

    Raises:
        LaunchError: the dtypes differ, or are no float dtypes.
    """
    dtypes = {x.name: x.dtype for x in operands if x is not None}
    return common_dtype_of(function, dtypes)


def no_wider(function: str, x: Operand, other: Operand) -> None:
    """Refuse an operand that is no float, or has more bits than the computation."""
    if other.dtype not in SUMS or other.dtype.bits > SUMS[x.dtype].bits:
        common_dtype_of(function, {x.name: x.dtype, other.name: other.dtype})


def one_for_each(
    what: str, function: str, x: Operand, shape: Shape, whole: str, *others: Any
) -> None:
    """Refuse operands of another shape than x has along ``what``, or with more bits."""
    for other in others:
        if other is not None:
            if tuple(other.shape) != shape:
                problem = f"`{other.name}` is {other.shape}, but {whole}"
                raise wrong_shape(function, problem, f"pass one number for each {what}")
            no_wider(function, x, other)


def floats_as(function: str, x: Operand, dtype: Any) -> DType:
    """Return the float dtype of a result: that of ``x``, or the one the caller names.

    Args:
        dtype: the dtype that the caller names, or None. If there is one, the input may
            be integers.

    Raises:
        LaunchError: the dtype of the result is no float dtype.
    """
    is_converted = dtype is not None and not x.dtype.is_float
    known = x.dtype if is_converted else floats(function, x)
    wanted = as_dtype(dtype, known)
    if wanted not in SUMS:
        problem = f"`{function}` of {known} was asked for a result of {wanted}"
        help_ = f"name one of {', '.join(map(str, SUMS))}, and convert the result"
        raise LaunchError(problem, "X0828", help_)
    return wanted


def same_shapes(function: str, first: Operand, *others: Operand | None) -> None:
    """Refuse operands that do not have the shape of the first."""
    for other in others:
        if other is not None and tuple(other.shape) != tuple(first.shape):
            problem = f"`{other.name}` is {other.shape}, `{first.name}` {first.shape}"
            raise wrong_shape(function, problem, "both need the same shape")


def row_view(rank: int, dim: int) -> calls.View:
    """Return the view (..., m, n) with the dimension ``dim`` last."""
    if rank <= 1:
        return calls.as_row
    if dim == rank - 1:
        return calls.itself
    return lambda x: x.swapaxes(dim, -1)


def rows(
    kernel: Kernel,
    operands: Operands,
    views: Sequence[calls.View | Shared | None],
    constants: Sequence[Any],
    numbers: tuple[float, ...] = (),
    parts: int = 1,
    rows_of_program: int = 1,
    matrices_of_program: int = 1,
) -> Step:
    """Return a launch along rows, with the grid (rows of a matrix, matrices, parts).

    Args:
        kernel: takes the operands, the numbers and the constants.
        operands: its arrays, or None.
        views: the view of each as (..., m, n), or `Shared`; None for no operand.
        constants: the compile-time arguments.
        numbers: the arguments between the operands and the constants.
        parts: programs of a row.
        rows_of_program: rows of a program.
        matrices_of_program: matrices of a program.
    """
    matrices = [
        (i, view, view(array_of(operands[i])))
        for i, view in enumerate(views)
        if view is not None and not isinstance(view, Shared)
    ]
    # The batches broadcast to that of the largest operand, which comes last.
    ordered = sorted(matrices, key=lambda each: each[2].size)
    batches = calls.split_batch([array for _, _, array in ordered])
    found: list[calls.View | None] = [None] * len(operands)
    for (i, first, _), view in zip(ordered, batches.views):
        found[i] = calls.chain(first, view)
    for i, view in enumerate(views):
        if isinstance(view, Shared) and operands[i] is not None:
            found[i] = _repeated(view.view, batches.loops)
    count = cdiv(batches.matrices, matrices_of_program)
    grid = (cdiv(matrices[0][2].shape[-2], rows_of_program), count, parts)
    launch = calls.Launch(kernel, found, batches.loops, grid, tuple(constants))
    return Step(launch, operands, numbers)


def columns(
    kernel: Kernel, operands: Sequence[Operand], dim: int, constants: Sequence[Any]
) -> Step:
    """Return a launch down columns, with the grid (strips of columns, matrices).

    Args:
        kernel: takes the operands as (..., n, m), n along ``dim``, the constants, and
            the width of a strip.
        operands: inputs, then results. Their shapes differ at most along ``dim``.
        dim: a dimension before the last one.
        constants: the compile-time arguments without the width.
    """
    arrays = [array_of(x) for x in operands]
    shape = operands[0].shape
    outer, inner = prod(shape[:dim]), prod(shape[dim + 1 :])
    flat: calls.View = lambda x: x.reshape(outer, x.shape[dim], inner)
    views, loops, matrices = [flat] * len(arrays), (), outer
    if not calls.are_views(arrays, views):
        turned: calls.View = lambda x: np.moveaxis(x, dim, -2)
        batches = calls.split_batch([turned(x) for x in arrays])
        views = [calls.chain(turned, view) for view in batches.views]
        inner, loops, matrices = turned(arrays[0]).shape[-1], *batches[1:]
    return strips(kernel, operands, views, (matrices, inner), constants, loops)


def strips(
    kernel: Kernel,
    operands: Operands,
    views: Sequence[calls.View],
    extents: tuple[int, int],
    constants: Sequence[Any],
    loops: Shape = (),
) -> Step:
    """Return a launch with a program for each strip of columns; see `columns`.

    Args:
        kernel: takes the operands, the constants, and the width of a strip.
        operands: its arrays, or None.
        views: the view of each as (..., n, m).
        extents: the numbers of matrices, and of columns of a matrix.
        constants: the compile-time arguments without the width.
        loops: see `Launch`.
    """
    matrices, inner = extents
    most = STRIP * 4 // max(4, array_of(operands[0]).itemsize)
    width = min(width_of(inner), most)
    grid = (cdiv(inner, width), matrices, 1)
    return Step(calls.Launch(kernel, views, loops, grid, (*constants, width)), operands)


def elements(
    kernel: Kernel,
    operands: Operands,
    constants: Sequence[Any],
    block: int = 1,
    repeats: bool = False,
) -> Step:
    """Return an elementwise launch, with the grid (columns, rows, matrices) of tiles.

    The order of dimensions is that of the last operand in memory, so that results are
    stored contiguously. A tile is a piece of a row, or several short rows. It is a
    square block if another operand is contiguous along another dimension.

    Args:
        kernel: takes the operands, the numbers, the constants, the shape of a tile, and
            the columns from one tile to the next (`xetl.ops.matrices.place_of`).
        operands: inputs, then results, all of one shape; inputs may have one element.
        constants: the compile-time arguments without the tile.
        block: the most rows and columns of a block; 1: no blocks.
        repeats: whether the kernel takes, before the tile, which operands repeat one
            column.
    """
    there = [x for x in operands if x is not None]
    last = array_of(there[-1])
    inward = order_of(last.shape, last.strides) or range(last.ndim)

    def turned(x: Numbers) -> Numbers:
        if x.shape != last.shape:
            x = np.broadcast_to(x, last.shape, subok=True)
        return x.transpose(inward)

    arrays = [turned(array_of(x)) for x in there]
    shape = merged(arrays)
    order = [*range(len(shape))]
    across = _across([x.reshape(shape) for x in arrays]) if block > 1 else None
    if across is not None:
        order.insert(-1, order.pop(across))
    first: calls.View = lambda x: turned(x).reshape(shape).transpose(order)
    batches = calls.split_batch([first(array_of(x)) for x in there])
    of = iter(batches.views)
    seen = [None if x is None else calls.chain(first, next(of)) for x in operands]
    m, n = (shape[dim] for dim in order[-2:])
    width = min(row_width(there[-1], n), _ELEMENTS)
    tile = rows_at_once(there[-1], m, width), width
    if across is not None:
        least = LEAST if is_on_gpu(there[-1]) else 1
        tile = min(width_of(m, least), block), min(width_of(n, least), block)
    grid = (cdiv(n, tile[1]), cdiv(m, tile[0]), batches.matrices)
    if repeats:
        views = [None if x is None else first(array_of(x)) for x in operands]
        constants = *constants, tuple(_repeats_a_column(x) for x in views)
    constants = *constants, tile, tile[1] if grid[0] > 1 else 0
    return Step(calls.Launch(kernel, seen, batches.loops, grid, constants), operands)


def merged(arrays: Sequence[Numbers]) -> list[int]:
    """Return two extents or more: neighbours are merged where all strides allow it."""
    extents, shape = arrays[0].shape, list[int]()
    dims = [dim for dim, n in enumerate(extents) if n != 1]
    for outer, dim in zip([None, *dims], dims):
        n = extents[dim]
        if outer is not None and all(
            x.strides[outer] == n * x.strides[dim] for x in arrays
        ):
            shape[-1] *= n
        else:
            shape.append(n)
    return [*[1] * (2 - len(shape)), *shape]


def _repeats_a_column(x: Numbers | None) -> bool:
    return x is not None and x.shape[-1] > 1 and x.strides[-1] == 0


def _across(arrays: Sequence[Numbers]) -> int | None:
    """Return an array's innermost dimension if it is not the last one, or None."""
    orders = [order_of(x.shape, x.strides) for x in arrays]
    inner = [order[-1] for order in orders if order is not None]
    return next((dim for dim in inner if dim != arrays[0].ndim - 1), None)


def _repeated(view: calls.View, loops: Shape) -> calls.View | None:
    """Return the view, repeated for each index of the loops on the host."""
    if loops:
        return lambda x: np.broadcast_to(view(x), (*loops, *view(x).shape), subok=True)
    return None if view is calls.itself else view


def array_of(operand: Operand | None) -> Numbers:
    """Return the array of an operand, which must have one."""
    assert operand is not None
    assert operand.array is not None
    return operand.array


def columns_of(shape: Shape, dim: int) -> int:
    """Return the extent of a dimension; 1 for an array without dimensions."""
    return shape[dim] if shape else 1


def as_dtype(dtype: Any, default: DType) -> DType:
    """Return the dtype that a caller names as NumPy's, torch's or ours, or the default.

    Raises:
        TileTypeError: there is no dtype of this name.
    """
    if dtype is None:
        return default
    is_torch = type(dtype).__module__ == "torch"
    return DType.of(str(dtype) if is_torch else dtype)

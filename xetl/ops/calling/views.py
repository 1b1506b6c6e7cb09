"""Operands as kernels take them: rows along a dimension, or elements in a line."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from xetl.errors import LaunchError
from xetl.language.dtypes import DType, f32, f64
from xetl.language.maps import WgMap, wg_map
from xetl.language.ops import cdiv
from xetl.ops.calling.calls import (
    Launch,
    View,
    as_row,
    chain,
    itself,
    misplaced,
    split_batch,
)
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

_LEAST = 16
_ELEMENTS = 4096
"""Of a program that goes through elements: 16 KB of f32, so all stays in L1."""

_CARRIED = 64
"""Columns of a piece of a row on CPUs: four vectors of AVX-512, which hide latency."""

_ROWS_OF_MESSAGE = 8
_COLUMNS_OF_SUBGROUP = 256
"""At most: of eight rows they are half of 256 registers. What subgroups tell one
another about a row costs as much for few columns as for many."""
_BLOCK_BYTES = 64
_MOST_BLOCKS = 1 << 24
"""What a message may count."""
_FOLDED_OF_SUBGROUP = 1024
"""Elements of a folded row at most: with two vectors of a row, 192 registers."""
_FOLDED_ROWS = 2
"""Of a program: what is the same for all rows is loaded once."""
_LEAST_WIDTH = 256
"""Narrower rows are one subgroup's, each by itself."""
_MOST = 32
"""Subgroups of a program."""

STRIP = 128
"""Columns of a program that goes down: what it keeps of them stays in registers."""


class Shared(NamedTuple):
    """How an operand is seen that is the same for all rows."""

    view: View


def find_dim(function: str, operand: Operand, dim: int) -> int:
    """A dimension counted from 0; a LaunchError if there is none of that number."""
    rank = max(operand.ndim, 1)
    if not -rank <= dim < rank:
        problem = f"`{operand.name}` is {operand.shape}, which has no dimension {dim}"
        raise wrong_shape(function, problem, f"`dim` is {-rank} to {rank - 1}")
    return dim % rank


def width_of(columns: int) -> int:
    """A tile's: an eighth of a power of two apart, so that there are few kernels."""
    step = max(_LEAST, (1 << (columns - 1).bit_length()) // 8)
    return max(-(-columns // step), 1) * step


def piece_width(x: Operand, columns: int) -> int:
    """Columns of a piece of a row: on a CPU what registers carry, else all of them."""
    width = width_of(columns)
    is_cpu = choose_backend(values=[array_of(x)]).name == "cpu"
    return min(width, _CARRIED) if is_cpu else width


class RowTile(NamedTuple):
    """What a program has of the rows of a matrix.

    Attributes:
        map: which subgroup owns what; None: the compiler says.
        is_full: whether rows are as wide as the tile, so nothing is padded.
    """

    rows: int = 1
    map: WgMap | None = None
    is_full: bool = False


def row_tile(x: Operand, matrix: Sequence[int], width: int, sums: DType) -> RowTile:
    """One row, or on a GPU eight: a message brings 8 rows of 64 bytes, or one.

    Subgroups own some columns of each, so that a row fits their registers.

    Args:
        x: where it is says who computes.
        matrix: rows and columns.
        sums: the dtype that is computed in.
    """
    if choose_backend(values=[array_of(x)]).name != DEVICE_BACKEND:
        return RowTile()
    rows, columns = matrix
    if rows < _ROWS_OF_MESSAGE or width < _LEAST_WIDTH or sums is not f32:
        return RowTile()
    most = _COLUMNS_OF_SUBGROUP // (1 if columns == width else 2)  # masks take the rest
    for subgroups in range(max(2, cdiv(width, most)), _MOST + 1):
        if width % (_LEAST * subgroups) == 0:
            own = [_ROWS_OF_MESSAGE, width // subgroups]
            map_ = wg_map(sg_layout=[1, subgroups], sg_data=own)
            return RowTile(_ROWS_OF_MESSAGE, map_, columns == width)
    return RowTile()


class Folded(NamedTuple):
    """Rows as blocks of 64 bytes below one another, which a message brings 32 of.

    Attributes:
        shape: of a row.
        map: which subgroup owns what of it.
        each: rows of a program.
    """

    shape: tuple[int, int]
    map: WgMap
    each: int

    def view(self, x: Numbers) -> Numbers:
        """All rows, folded, as one matrix."""
        return x.reshape(-1, self.shape[1])

    def one(self, x: Numbers) -> Numbers:
        """What is the same for all rows, as one of them."""
        return x.reshape(self.shape)

    @property
    def rows(self) -> int:
        """Of that matrix, which a program has."""
        return self.each * self.shape[0]


def folded(arrays: Operands, columns: int, sums: DType) -> Folded | None:
    """How rows are folded on a GPU; None: they are not.

    [measured] ocloc 26.27, layer norm of f32, 1,024 columns: 7.9 instructions an
    element on pvc instead of 13.6 by `row_tile`. A message is for 512 elements instead
    of 128, and what a row needs is in one subgroup: none waits for another.

    Args:
        arrays: rows, or what is the same for all of them.
        columns: of a row.
        sums: the dtype that is computed in.
    """
    there = [x for x in arrays if x is not None]
    if choose_backend(values=[array_of(there[0])]).name != DEVICE_BACKEND:
        return None
    width = _BLOCK_BYTES // min(x.dtype.itemsize for x in there)
    height, left = divmod(columns, width)
    if left or not height or sums is not f32 or not all(map(_fits_messages, there)):
        return None
    if any(size_of(x.shape) // width >= _MOST_BLOCKS for x in there):
        return None
    for subgroups in range(cdiv(columns, _FOLDED_OF_SUBGROUP), _MOST + 1):
        own, left = divmod(height, subgroups)
        if not left and (subgroups == 1 or own % _ROWS_OF_MESSAGE == 0):
            map_ = wg_map(sg_layout=[subgroups, 1], sg_data=[own, width])
            return Folded((height, width), map_, _FOLDED_ROWS)
    return None


def _fits_messages(x: Operand) -> bool:
    array = array_of(x)
    return array.flags.c_contiguous and not misplaced(array)


def sums_of(*dtypes: DType) -> DType:
    """The dtype that computes for these: f64 if one of them is."""
    return f64 if f64 in dtypes else f32


def vectors_of(x: Operand) -> tuple[int, int]:
    """How many vectors registers hold where it is, and sums that one has."""
    backend = choose_backend(values=[array_of(x)])
    registers, lanes = backend.vectors(choose_target(backend))
    return registers, lanes * 32 // sums_of(x.dtype).bits


def floats(function: str, *operands: Operand | None) -> DType:
    """The float dtype that all operands have.

    Raises:
        LaunchError: they differ, or are no floats.
    """
    return common_dtype_of(
        function, {x.name: x.dtype for x in operands if x is not None}
    )


def no_wider(function: str, x: Operand, other: Operand) -> None:
    """Refuse an operand that is no float, or has more bits than is computed in."""
    if other.dtype not in SUMS or other.dtype.bits > SUMS[x.dtype].bits:
        common_dtype_of(function, {x.name: x.dtype, other.name: other.dtype})


def floats_as(
    function: str, x: Operand, dtype: Any, *, converts: bool = False
) -> DType:
    """The float dtype of a result: that of ``x``, or what the caller names.

    Args:
        dtype: what the caller names, or None.
        converts: whether the input may be integers if the caller names a dtype.

    Raises:
        LaunchError: one of them is no float.
    """
    is_converted = converts and dtype is not None and not x.dtype.is_float
    known = x.dtype if is_converted else floats(function, x)
    wanted = as_dtype(dtype, known)
    if wanted not in SUMS:
        problem = f"`{function}` of {known} was asked for a result of {wanted}"
        help_ = f"name one of {', '.join(map(str, SUMS))}, and convert the result"
        raise LaunchError(problem, "X0828", help_)
    return wanted


def same_shapes(function: str, first: Operand, *others: Operand | None) -> None:
    """Refuse operands of another shape than the first."""
    for other in others:
        if other is not None and tuple(other.shape) != tuple(first.shape):
            problem = f"`{other.name}` is {other.shape}, `{first.name}` {first.shape}"
            raise wrong_shape(function, problem, "both need the same shape")


def row_view(rank: int, dim: int) -> View:
    """(..., m, n) with the dimension ``dim`` last."""
    if rank <= 1:
        return as_row
    if dim == rank - 1:
        return itself
    return lambda x: x.swapaxes(dim, -1)


def flat_view(x: Numbers) -> Numbers:
    """A row of all elements."""
    return x.reshape(1, -1)


def rows(
    kernel: Kernel,
    operands: Operands,
    views: Sequence[View | Shared | None],
    constants: Sequence[Any],
    numbers: tuple[float, ...] = (),
    parts: int = 1,
    rows_of_program: int = 1,
    matrices_of_program: int = 1,
) -> Step:
    """A launch with a program for each row: grid (rows of a matrix, matrices, parts).

    Args:
        kernel: takes the operands, numbers, constants.
        views: how each is seen as (..., m, n), or `Shared`; None for no operand.
        numbers: what the kernel takes behind the operands.
        parts: how many programs a row has.
        rows_of_program: how many rows a program has.
        matrices_of_program: of how many matrices it has them.
    """
    matrices = [
        (i, view, view(array_of(operands[i])))
        for i, view in enumerate(views)
        if view is not None and not isinstance(view, Shared)
    ]
    # The batch of the last operand is what those of the others broadcast to.
    ordered = sorted(matrices, key=lambda each: each[2].size)
    batches = split_batch([array for _, _, array in ordered])
    found: list[View | None] = [None] * len(operands)
    for (i, first, _), view in zip(ordered, batches.views):
        found[i] = chain(first, view)
    for i, view in enumerate(views):
        if isinstance(view, Shared) and operands[i] is not None:
            found[i] = _repeated(view.view, batches.loops)
    count = cdiv(batches.matrices, matrices_of_program)
    grid = (cdiv(matrices[0][2].shape[-2], rows_of_program), count, parts)
    launch = Launch(kernel, found, batches.loops, grid, tuple(constants))
    return Step(launch, operands, numbers)


def columns(
    kernel: Kernel, operands: Sequence[Operand], dim: int, constants: Sequence[Any]
) -> Step:
    """A launch with a program for some columns: grid (strips of columns, matrices).

    Args:
        kernel: takes the operands as (..., n, m), n along ``dim``, the constants, and
            the width of a strip.
        operands: inputs, then results, of one rank, alike but for ``dim``.
        dim: which is not the last one.
        constants: the compile-time arguments without the width.
    """
    arrays = [array_of(x) for x in operands]
    if all(x.flags.c_contiguous for x in arrays):
        shape = operands[0].shape
        outer, inner = prod(shape[:dim]), prod(shape[dim + 1 :])
        flat: View = lambda x: x.reshape(outer, -1, inner)
        views, loops, matrices = [flat] * len(arrays), (), outer
    else:
        turned: View = lambda x: np.moveaxis(x, dim, -2)
        batches = split_batch([turned(x) for x in arrays])
        views = [chain(turned, view) for view in batches.views]
        inner, loops, matrices = turned(arrays[0]).shape[-1], *batches[1:]
    return strips(kernel, operands, views, (matrices, inner), constants, loops)


def strips(
    kernel: Kernel,
    operands: Operands,
    views: Sequence[View],
    extents: tuple[int, int],
    constants: Sequence[Any],
    loops: Shape = (),
) -> Step:
    """A launch with a program for each strip of columns, as `columns` has.

    Args:
        kernel: takes the operands, the constants, and the width of a strip.
        extents: how many matrices there are, and columns of each.
        constants: the compile-time arguments without the width.
        loops: see `Launch`.
    """
    matrices, inner = extents
    width = min(width_of(inner), STRIP)
    grid = (cdiv(inner, width), matrices, 1)
    return Step(Launch(kernel, views, loops, grid, (*constants, width)), operands)


def elements(
    kernel: Kernel, operands: Operands, constants: Sequence[Any], block: int = 1
) -> Step:
    """A launch with a program for each tile: grid (columns, rows, matrices).

    A tile is a piece of a row as the last operand lies in memory, so that it is stored
    as it lies; it is a square block where another one lies along another dimension.

    Args:
        kernel: takes the operands, numbers, constants, and the shape of a tile.
        operands: inputs, then results, all of one shape.
        constants: the compile-time arguments without the tile.
        block: rows and columns of a block at most.
    """
    there = [x for x in operands if x is not None]
    arrays = [array_of(x) for x in there]
    last = arrays[-1]
    inward = [*(order_of(last.shape, last.strides) or range(last.ndim))]
    turned: View = lambda x: x.transpose(inward)
    if all(_is_flat(turned(x)) for x in arrays):
        count = arrays[0].size
        flat = chain(turned, flat_view)
        views = [None if x is None else flat for x in operands]
        width = min(width_of(count), _ELEMENTS)
        grid = (cdiv(count, width), 1, 1)
        launch = Launch(kernel, views, (), grid, (*constants, (1, width)))
        return Step(launch, operands)
    across = _across([turned(x) for x in arrays]) if block > 1 else None
    if across is not None:
        inward.insert(-1, inward.pop(across))
    first = chain(turned, row_view(last.ndim, last.ndim - 1))
    batches = split_batch([first(x) for x in arrays])
    of = iter(batches.views)
    seen = [None if x is None else chain(first, next(of)) for x in operands]
    m, n = first(arrays[0]).shape[-2:]
    tile = 1, min(width_of(n), _ELEMENTS)
    if across is not None:
        tile = min(width_of(m), block), min(width_of(n), block)
    grid = (cdiv(n, tile[1]), cdiv(m, tile[0]), batches.matrices)
    return Step(Launch(kernel, seen, batches.loops, grid, (*constants, tile)), operands)


def _is_flat(x: Numbers) -> bool:
    return x.flags.c_contiguous or not any(x.strides)


def _across(arrays: Sequence[Numbers]) -> int | None:
    """The dimension along which an array lies that does not along the last one."""
    orders = [order_of(x.shape, x.strides) for x in arrays]
    inner = [order[-1] for order in orders if order is not None]
    return next((dim for dim in inner if dim != arrays[0].ndim - 1), None)


def _repeated(view: View, loops: Shape) -> View | None:
    """The view for each index of the loops of the host."""
    if loops:
        return lambda x: np.broadcast_to(view(x), (*loops, *view(x).shape), subok=True)
    return None if view is itself else view


def array_of(operand: Operand | None) -> Numbers:
    """The elements of an operand that has some."""
    assert operand is not None
    assert operand.array is not None
    return operand.array


def columns_of(shape: Shape, dim: int) -> int:
    """The extent of a dimension; of a number, 1."""
    return shape[dim] if shape else 1


def size_of(shape: Shape) -> int:
    """How many elements."""
    return prod(shape)


def as_dtype(dtype: Any, default: DType) -> DType:
    """The dtype that a caller names as NumPy's, torch's or ours; None: the default.

    Raises:
        TileTypeError: there is none.
    """
    if dtype is None:
        return default
    is_torch = type(dtype).__module__ == "torch"
    return DType.of(str(dtype) if is_torch else dtype)

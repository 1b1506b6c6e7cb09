"""How calls of `xetl.ops.matmul` are done: which views, which tiles, which launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from xetl.backend import RecordedLaunch
from xetl.errors import LaunchError, did_you_mean
from xetl.language.dtypes import DType
from xetl.language.ops import cdiv
from xetl.ops.calling.calls import (
    Launch,
    Views,
    as_matrices,
    chained,
    fold_rows,
    itself,
    seen,
    split_batch,
    transposed,
)
from xetl.ops.calling.declarations import check_bias, check_out, dtypes_of, result_shape
from xetl.ops.calling.operands import Numbers, Shape, as_numpy, dtype_of, new_result
from xetl.ops.calling.repeated import Recorder
from xetl.ops.products.device_tiles import (
    STEP,
    DeviceTiles,
    Product,
    choose_device_tiles,
    find_gpu,
)
from xetl.ops.products.product import (
    ACTIVATIONS,
    part_of_product,
    product,
    sum_of_parts,
)
from xetl.prepacked import Prepacked
from xetl.records import record
from xetl.runtime.arrays import locate
from xetl.runtime.overlap import overlaps_itself
from xetl.runtime.placement import choose_backend
from xetl.runtime.usm import is_on_device

_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_COLUMNS = (16, 32, 64, 128, 256, 512, 1024)
STREAMED = 4
"""Up to so many rows the cpu reads B where it is, without packing it."""

_LOW = 32
"""Up to so many rows it does so where nobody else packs B; then wider pieces of its
rows are better, as long as the tile stays in the first cache or little more."""

_ENOUGH = 8
"""Programs that keep a few threads busy to the end."""

_LEAST = 64
"""Smaller tiles than this are not made just to have more programs."""

_LEAST_LOW = 128
"""Nor narrower ones where B is streamed: shorter pieces of f32 are packed."""


class Tiles(NamedTuple):
    """The tile of a program, and the grid."""

    rows: int
    columns: int
    depth: int
    grid: tuple[int, int, int]


def choose_tiles(
    m: int,
    n: int,
    matrices: int = 1,
    b_by_columns: bool = False,
    b_is_packed: bool = False,
) -> Tiles:
    """The tile for products (m, k) by (k, n).

    * Up to 4 rows: all of them, by 1024 columns (128 if B is contiguous along k): B is
      read once, in pieces of its rows that are long enough for memory to stream.
    * Up to 32 rows: all of them, by 512 columns (128 at least), if B's rows are
      contiguous and it is not packed: then its rows are streamed as well.
    * Few columns: no wider than they are, in powers of two from 16; M is split.
    * Otherwise 256 x 256, less for smaller matrices; then halved, rows first and not
      below 64, until there are 8 programs. On a CPU the tile is not what registers and
      caches see, so this only balances the load; columns are kept longest, for B is
      packed by tiles of columns and packs are shared between kernels whose tiles are
      equally wide (`xetl.ops.prepack`).

    Args:
        m: rows of the result.
        n: its columns.
        matrices: how many results there are.
        b_by_columns: whether B's columns are contiguous, not its rows.
        b_is_packed: whether it may come prepacked, for tiles of 256 columns.
    """
    rows = smallest(_ROWS, m)
    if rows <= STREAMED:
        columns = smallest(_up_to(128 if b_by_columns else 1024), n)
    else:
        is_low = rows <= _LOW and not b_by_columns and not b_is_packed
        columns = smallest(_up_to(512 if is_low else 256), n)
        least = _LEAST_LOW if is_low else _LEAST
        rows, columns = _balanced(m, n, matrices, rows, columns, least)
    grid = (cdiv(m, rows), cdiv(n, columns), matrices)
    return Tiles(rows, columns, 32, grid)


def cut_for_device(
    values: Sequence[Numbers], work: Product, *, may_split: bool = False
) -> DeviceTiles | None:
    """How a product of some values is cut on a GPU; None: a CPU computes it."""
    gpu = choose_backend(values=values).cores()
    if gpu is None:
        return None
    return choose_device_tiles(work, find_gpu(*gpu), may_split=may_split)


def tiles_of_device(work: Product, cut: DeviceTiles) -> Tiles:
    """The same, and the grid, where k is not cut."""
    grid = (cdiv(work.m, cut.rows), cdiv(work.n, cut.columns), work.matrices)
    return Tiles(cut.rows, cut.columns, STEP, grid)


def _balanced(
    m: int, n: int, matrices: int, rows: int, columns: int, least_columns: int
) -> tuple[int, int]:
    while cdiv(m, rows) * cdiv(n, columns) * matrices < _ENOUGH:
        if rows > _LEAST:
            rows = _ROWS[_ROWS.index(rows) - 1]
        elif columns > least_columns:
            columns = _COLUMNS[_COLUMNS.index(columns) - 1]
        else:
            break
    return rows, columns


def _up_to(widest: int) -> tuple[int, ...]:
    return _COLUMNS[: _COLUMNS.index(widest) + 1]


def smallest(sizes: tuple[int, ...], extent: int) -> int:
    """The first that is large enough, else the last."""
    return next((size for size in sizes if size >= extent), sizes[-1])


@record(frozen=True)
class Method:
    """Which launches make a product.

    Attributes:
        swaps: whether the kernel makes the transposed product: then b comes first.
        packs: whether b may come prepacked.
        launch: of a, b, out and bias, in the kernel's order; if there are parts of k,
            of the parts, out and bias.
        parts: what makes them; of a, b and the parts.
        sums: shape and dtype of the parts.
    """

    swaps: bool
    packs: bool
    launch: Launch
    parts: Launch | None = None
    sums: tuple[Shape, DType] | None = None

    def run(
        self,
        a: Numbers,
        b: Numbers,
        out: Numbers,
        bias: Numbers | None,
        packed: Prepacked | None,
        like: object,
        launched: list[RecordedLaunch] | None = None,
    ) -> list[Numbers]:
        """Compute the product; its launches are added to ``launched``.

        Args:
            a: as NumPy has it; so are the next ones.
            b: the array, prepacked or not.
            out: where the product goes.
            bias: or None.
            packed: what b was packed to.
            like: of whose library arrays between launches are.
            launched: see above.

        Returns:
            What one launch handed to the next.
        """
        if out.size == 0:
            return []
        operands = (b, a) if self.swaps else (a, b)
        if self.parts is not None and self.sums is not None:
            made = as_numpy(new_result(like, *self.sums), "parts")
            self.parts.run((*operands, made), launched=launched)
            self.launch.run((made, out, bias), launched=launched)
            return [made]
        arrays = self.launch.seen((*operands, out, bias))
        if packed is not None and self.packs:
            arrays[1] = packed.over(arrays[1])
        self.launch.run_seen(arrays, launched=launched)
        return []


@record()
class ProductPlan:
    """How calls of one kind are done.

    Attributes:
        shape: of the result.
        dtype: of a new result.
        method: computes it.
        recorder: says which calls are recorded.
    """

    shape: Shape
    dtype: DType
    method: Method
    recorder: Recorder = field(default_factory=Recorder)


def make_plan(
    a: Numbers,
    b: Numbers,
    out: Numbers | None,
    bias: Numbers | None,
    activation: str | None,
    is_number: bool,
    is_packed: bool,
) -> ProductPlan:
    """Check a call, and decide how calls of its kind are done.

    Args:
        a: see `xetl.ops.matmul`; so are the next ones.
        b: the array, prepacked or not.
        out: of one dimension where the user gave one without dimensions.
        bias: or None.
        activation: or None.
        is_number: whether ``out`` has no dimensions.
        is_packed: whether b is prepacked.

    Raises:
        LaunchError: the call is wrong.
    """
    shape = result_shape(a.shape, b.shape)
    dtypes = dtypes_of(dtype_of(a, "a"), dtype_of(b, "b"))
    if out is None:
        check_out(shape, dtypes.result, shape, dtypes.sums, activation)
        out = np.empty(shape or 1, dtypes.result.numpy)
    else:
        given = () if is_number else out.shape
        check_out(given, dtype_of(out, "out"), shape, dtypes.sums, activation)
        if overlaps_itself(locate(out)):
            problem = "elements of `out` of `matmul` share memory with each other"
            help_ = "pass an array in which each element has its own place"
            raise LaunchError(problem, "X0807", help_)
    if bias is not None:
        columns = b.shape[-1] if b.ndim > 1 else 1
        check_bias(bias.shape, dtype_of(bias, "bias"), columns, dtypes.sums)
    function = find_activation(activation)
    sums = dtypes.sums
    method = choose_method(a, b, out, function, sums, is_packed, may_split=True)
    return ProductPlan(shape, dtypes.result, method)


def find_activation(name: object) -> object:
    """The function that a kernel applies to its sums; None for None.

    Raises:
        LaunchError: there is none of that name.
    """
    if name is None:
        return None
    if isinstance(name, str) and name in ACTIVATIONS:
        return ACTIVATIONS[name]
    known = ", ".join(f'"{each}"' for each in ACTIVATIONS)
    raise LaunchError(
        f"`matmul` knows no activation {name!r}",
        code="X0829",
        help=did_you_mean(str(name), ACTIVATIONS)
        or f"it knows {known}; for others write a kernel (tutorials/03_gemm.py)",
    )


def choose_method(
    a: Numbers,
    b: Numbers,
    out: Numbers,
    function: object,
    sums: DType,
    is_packed: bool,
    is_scaled: bool = False,
    may_split: bool = False,
) -> Method:
    """Choose views and tiles, and whether the launch is given alpha and beta.

    * One b for a whole batch: one product with all rows.
    * More than four rows, but not columns: the transposed product, in which b (our a)
      is streamed as it lies in memory. So it is if a few rows that are not contiguous
      meet one column (``X.T @ y``, f64, 100,000 steps: 150 us, not 1000).
    * A single column is given to the kernel as a row: only so can it tell that its
      elements are neighbours.
    * On a GPU, parts of k by several programs where that is faster, if ``may_split``.
    """
    views = as_matrices(a, b)
    folded = fold_rows(*seen((a, b, out), views))
    if folded is not None:
        views = chained(views, folded)
    m, n = seen((a, b, out), views)[2].shape[-2:]
    swaps = n <= STREAMED < m or _is_seen_from_side(a, b, views)
    if swaps:
        views = chained(views, (transposed, transposed, transposed))
        m, n = n, m
    views, loops, matrices = _batched((a, b, out), views, swaps)
    operands = seen((a, b, out), views)
    right = operands[0 if swaps else 1]
    by_columns = right.strides[-2] < right.strides[-1]
    is_column = n == 1
    if is_column:
        turned = (transposed, itself) if swaps else (itself, transposed)
        views = chained(views, (*turned, itself))
    bias_dim = 0 if swaps else 1
    view_a, view_b, view_out = views
    order = (view_b, view_a) if swaps else (view_a, view_b)
    ones = () if is_scaled else (None, None)
    work = Product(m, n, right.shape[-2], matrices, dtype_of(a, "a"))
    # Arrays of the host are copied, as the parts would be.
    may_split = may_split and not loops and any(map(is_on_device, operands))
    cut = cut_for_device(operands, work, may_split=may_split)
    if cut is None:
        tiles = choose_tiles(m, n, matrices, by_columns, is_packed)
    elif work.parts(cut) > 1:
        finish = (None, None, function, bias_dim)
        started = (is_column, sums, cut.part, cut.rows, cut.columns, STEP)
        first, last = _in_parts(work, cut, (*order, view_out), started, finish)
        parts = work.matrices * work.parts(cut), m, n
        return Method(swaps, False, last, first, (parts, sums))
    else:
        tiles = tiles_of_device(work, cut)
    constants = (*ones, function, bias_dim, is_column, sums, *tiles[:3])
    packs = not swaps and tiles.rows > STREAMED and right.ndim == 2 and not loops
    launch = Launch(product, (*order, view_out, None), loops, tiles.grid, constants)
    return Method(swaps, packs, launch)


def _in_parts(
    work: Product,
    cut: DeviceTiles,
    views: Views,
    started: tuple[Any, ...],
    finish: tuple[Any, ...],
) -> tuple[Launch, Launch]:
    """What makes sums of parts of k, and what makes the product of them.

    Args:
        work: the product.
        cut: its tiles and parts.
        views: of a, b and out, as the kernels take them.
        started: what the first kernel takes behind its arrays.
        finish: of the second, but for its tile.
    """
    left, right, out = views
    x, y, parts = cdiv(work.m, cut.rows), cdiv(work.n, cut.columns), work.parts(cut)
    grid = x, y, work.matrices * parts
    first = Launch(part_of_product, (left, right, None), (), grid, started)
    rows, columns = smallest(_ROWS[:4], work.m), smallest(_up_to(64), work.n)
    grid = cdiv(work.m, rows), cdiv(work.n, columns), work.matrices
    constants = (*finish, rows, columns)
    return first, Launch(sum_of_parts, (None, out, None), (), grid, constants)


def _is_seen_from_side(a: Numbers, b: Numbers, views: Views) -> bool:
    """Whether b is a column, and a's columns are contiguous, not its rows."""
    left, right = views[0](a), views[1](b)
    rows, steps = left.shape[-2:]
    beside, below = left.strides[-1], left.strides[-2]
    is_turned = below == left.itemsize and beside >= rows * left.itemsize
    return right.shape[-1] == 1 and rows > 1 and steps > 1 and is_turned


def _batched(
    arrays: Sequence[Numbers], views: Views, swaps: bool
) -> tuple[Views, Shape, int]:
    """Views with the batch as the kernel takes it, the host's loops, its matrices."""
    left, right, out = seen(arrays, views)
    if swaps:
        left, right = right, left
    batches = split_batch((left, right, out))
    first, second, last = batches.views
    if swaps:
        first, second = second, first
    return chained(views, (first, second, last)), batches.loops, batches.matrices

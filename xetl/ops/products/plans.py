"""Plans of calls of `xetl.ops.matmul`: the views, the tiles and the launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from math import prod
from typing import Any

import numpy as np

from xetl.backend import RecordedLaunch
from xetl.errors import LaunchError, did_you_mean
from xetl.language.dtypes import DType, f32, f64
from xetl.language.ops import cdiv, next_power_of_2
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
from xetl.ops.products import device_tiles
from xetl.ops.products.host_tiles import ENOUGH, STREAMED, Tiles, choose_tiles, smallest
from xetl.ops.products.orientation import is_transposed
from xetl.ops.products.product import (
    ACTIVATIONS,
    part_of_product,
    product,
    small_products,
    sum_of_parts,
)
from xetl.prepacked import Prepacked
from xetl.records import record
from xetl.runtime.arrays import locate
from xetl.runtime.overlap import overlaps_itself
from xetl.runtime.placement import choose_backend
from xetl.runtime.usm import is_on_device

_SMALL, _LANES = 32, 64
"""The most elements of matrices that are gathered, and the matrices of a program."""

_LEAST_PART, _LEAST_WORK = 4096, 1 << 18
"""Steps of k, and products of two numbers, that a program has at least if k is cut."""


def cut_for_device(
    values: Sequence[Numbers], work: device_tiles.Product, *, may_split: bool = False
) -> device_tiles.DeviceTiles | None:
    """Return how a product of these arrays is cut on a GPU. Return None for a CPU."""
    gpu = choose_backend(values=values).cores()
    if gpu is None:
        return None
    return device_tiles.choose_device_tiles(
        work, device_tiles.find_gpu(*gpu), may_split=may_split
    )


def _cut(
    operands: Sequence[Numbers],
    work: device_tiles.Product,
    tiles: Tiles,
    *,
    may_split: bool,
) -> device_tiles.DeviceTiles | None:
    """Return how k is cut, and the tiles of a device; None: these tiles and all of k.

    On a CPU, k is cut if it is long and there are few tiles. Parts are powers of two: a
    kernel is compiled for each. They do not depend on the number of threads, so that
    results do not.
    """
    # Arrays of the host are copied to the device, and the parts would be copied too.
    is_there = may_split and any(map(is_on_device, operands))
    cut = cut_for_device(operands, work, may_split=is_there)
    if cut is not None or not may_split:
        return cut
    wanted = cdiv(ENOUGH, max(1, prod(tiles.grid)))
    least = max(_LEAST_PART, _LEAST_WORK // max(1, work.m * work.n))
    part = next_power_of_2(max(cdiv(work.k, wanted), least))
    return device_tiles.DeviceTiles(tiles.rows, tiles.columns, part)


def tiles_of_device(work: device_tiles.Product, cut: device_tiles.DeviceTiles) -> Tiles:
    """Return the tile of a cut without parts of k, with its grid."""
    grid = (cdiv(work.m, cut.rows), cdiv(work.n, cut.columns), work.matrices)
    return Tiles(cut.rows, cut.columns, device_tiles.STEP, grid)


@record(frozen=True)
class Method:
    """The launches of a product.

    Attributes:
        swaps: whether the kernel computes the transposed product, with b before a.
        packs: whether b may be prepacked.
        launch: takes a, b, out and bias, in the kernel's order. If k is cut, it takes
            the parts, out and bias.
        parts: if k is cut, the launch that computes the parts: takes a, b, the parts.
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
            a: the array as NumPy's, as all arrays here.
            b: the array, prepacked or not.
            out: the array that gets the product.
            bias: the bias or None.
            packed: the prepacked b, or None.
            like: an array of the library that temporary arrays belong to.
            launched: see above.

        Returns:
            The temporary arrays between the launches.
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
    """The plan of all calls with the same shapes, strides and dtypes.

    Attributes:
        shape: the shape of the result.
        dtype: the dtype of a new result.
        method: the launches.
        recorder: decides which calls are recorded.
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
    """Check a call, and make the plan of calls like it.

    Args:
        a: see `xetl.ops.matmul`, also for the others.
        b: the array, prepacked or not.
        out: the array or None; it has one dimension if the user's has none.
        bias: the bias or None.
        activation: its name or None.
        is_number: whether the user's ``out`` has no dimensions.
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
    """Return the function of an activation's name, or None for None.

    Raises:
        LaunchError: there is no activation of this name.
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
    """Choose views and tiles; with ``is_scaled`` the launch takes alpha and beta.

    * If the whole batch has one b, it is one product with all rows.
    * Many small matrices have a program for many of them (`_by_lanes`).
    * It may be the transposed product; see `orientation`.
    * The kernel gets a single column as a row: only then does it know that the elements
      are contiguous.
    * With ``may_split``, several programs share a long k: on a GPU if that is faster,
      on a CPU if there are few tiles.
    """
    views = as_matrices(a, b)
    folded = fold_rows(*seen((a, b, out), views))
    if folded is not None:
        views = chained(views, folded)
    m, n = seen((a, b, out), views)[2].shape[-2:]
    ones = () if is_scaled else (None, None)
    lanes = _by_lanes((a, b, out), views, (*ones, function, sums))
    if lanes is not None:
        return Method(False, False, lanes)
    swaps = is_transposed(views[0](a), views[1](b), is_packed)
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
    work = device_tiles.Product(m, n, right.shape[-2], matrices, dtype_of(a, "a"))
    may_stay = work.dtype in (f32, f64)
    tiles = choose_tiles(
        m, n, matrices, by_columns, is_packed, k=work.k, b_may_stay=may_stay
    )
    cut = _cut(operands, work, tiles, may_split=may_split and not (loops or is_packed))
    if cut is not None and work.parts(cut) > 1:
        finish = (None, None, function, bias_dim)
        started = (is_column, sums, cut.part, cut.rows, cut.columns, device_tiles.STEP)
        first, last = _in_parts(work, cut, (*order, view_out), started, finish)
        parts = work.matrices * work.parts(cut), m, n
        return Method(swaps, False, last, first, (parts, sums))
    tiles = tiles if cut is None else tiles_of_device(work, cut)
    constants = (*ones, function, bias_dim, is_column, sums, *tiles[:3])
    packs = not swaps and tiles.rows > STREAMED and right.ndim == 2 and not loops
    launch = Launch(product, (*order, view_out, None), loops, tiles.grid, constants)
    return Method(swaps, packs, launch)


def _by_lanes(
    arrays: Sequence[Numbers], views: Views, constants: tuple[Any, ...]
) -> Launch | None:
    """Return the launch of `small_products`: each lane has matrices of its own.

    Return None unless there are many matrices, so small that gathering their elements
    takes less time than a program for each ([measured] as long as 64 elements on Zen
    4). Elements of GPUs are not gathered.

    Args:
        arrays: a, b and out.
        views: their views as matrices.
        constants: those of the kernel before the shapes.
    """
    views, loops, matrices = _batched(arrays, views, swaps=False)
    left, right, out = seen(arrays, views)
    (m, k), n = left.shape[-2:], right.shape[-1]
    are_small = m * k + k * n + m * n <= _SMALL and m * k * n > 0
    if loops or out.ndim != 3 or matrices < _LANES or not are_small:
        return None
    if choose_backend(values=arrays).cores() is not None:
        return None
    beside = chained(views, (_batch_last, _batch_last, _batch_last))
    grid, sizes = (cdiv(matrices, _LANES), 1, 1), (m, k, n, _LANES)
    return Launch(small_products, (*beside, None), (), grid, (*constants, *sizes))


def _batch_last(x: Numbers) -> Numbers:
    """View matrices (batch, rows, columns) as (rows, columns, batch)."""
    return x if x.ndim == 2 else np.moveaxis(x, 0, -1)


def _in_parts(
    work: device_tiles.Product,
    cut: device_tiles.DeviceTiles,
    views: Views,
    started: tuple[Any, ...],
    finish: tuple[Any, ...],
) -> tuple[Launch, Launch]:
    """Return the launch that sums parts of k, and the launch that adds the parts.

    Args:
        work: the product.
        cut: its tiles and parts.
        views: the views of a, b and out, in the order of the kernels.
        started: the constants of the first kernel.
        finish: the constants of the second kernel, without its tile.
    """
    left, right, out = views
    x, y, parts = cdiv(work.m, cut.rows), cdiv(work.n, cut.columns), work.parts(cut)
    grid = x, y, work.matrices * parts
    first = Launch(part_of_product, (left, right, None), (), grid, started)
    rows, columns = smallest((1, 2, 4, 8), work.m), smallest((16, 32, 64), work.n)
    grid = cdiv(work.m, rows), cdiv(work.n, columns), work.matrices
    constants = (*finish, rows, columns)
    return first, Launch(sum_of_parts, (None, out, None), (), grid, constants)


def _batched(
    arrays: Sequence[Numbers], views: Views, swaps: bool
) -> tuple[Views, Shape, int]:
    """Return views, the host's loops and the kernel's matrices; see `split_batch`."""
    left, right, out = seen(arrays, views)
    if swaps:
        left, right = right, left
    batches = split_batch((left, right, out))
    first, second, last = batches.views
    if swaps:
        first, second = second, first
    return chained(views, (first, second, last)), batches.loops, batches.matrices

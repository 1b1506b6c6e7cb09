"""Calls that are planned once: the next one like it takes its views and launches.

What a call of a function needs depends on shapes, strides and dtypes alone, so it is
kept by these: the views that kernels take, the grid, the compile-time arguments.

Of a batch of matrices a kernel takes at most two dimensions before the matrix. Nothing
is copied: dimensions are merged where strides allow it, repeated where they are
broadcast, and the host loops over what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import prod
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from xetl.backend import RecordedLaunch
from xetl.ops.calling.operands import Numbers, Shape
from xetl.records import record
from xetl.runtime.grid import Grid
from xetl.runtime.kernel import Kernel
from xetl.runtime.launcher import Launcher
from xetl.runtime.placement import run
from xetl.runtime.shortcuts import Shortcuts
from xetl.runtime.usm import DeviceNumbers
from xetl.settings import config

_MOST_PLANS = 1024

P = TypeVar("P")


class Plans(Generic[P]):
    """The plans of a function, by what they depend on."""

    def __init__(self) -> None:
        self._known: dict[Hashable, P] = {}

    def find(self, key: Hashable, make: Callable[[], P]) -> P:
        """The plan kept for ``key``, else the one that ``make`` gives.

        Args:
            key: all that the plan depends on, but for the backend that is set.
            make: checks the call; what it raises is not kept.
        """
        key = key, config.backend, config.interpret
        plan = self._known.get(key)
        if plan is None:
            plan = make()
            if len(self._known) >= _MOST_PLANS:
                self._known.clear()
            self._known[key] = plan
        return plan


def kind(array: Numbers | None) -> Hashable:
    """All that a plan may depend on."""
    if array is None:
        return None
    return array.shape, array.strides, array.dtype, type(array), misplaced(array)


def misplaced(array: Numbers) -> bool:
    """Whether memory of a device begins where block messages of GPUs do not."""
    return isinstance(array, DeviceNumbers) and array.ctypes.data % _ALIGNMENT != 0


_ALIGNMENT = 64
"""Bytes; `xetl_xegpu.limits.BASE_ALIGNMENT`."""


@record()
class Launch:
    """The launches of a kernel that a call takes.

    Attributes:
        kernel: takes arrays, numbers that may differ from call to call, constants.
        views: of each array; None: it is the same for all loops, and may be None.
        loops: extents of the dimensions that the host goes through.
    """

    kernel: Kernel
    views: Sequence[View | None]
    loops: Shape
    grid: Grid
    constants: tuple[Any, ...]

    def __post_init__(self) -> None:
        self._launch = Launcher(self.kernel, self.grid, Shortcuts())

    def run(
        self,
        arrays: Sequence[Numbers | None],
        *numbers: float,
        launched: list[RecordedLaunch] | None = None,
    ) -> None:
        """Launch the kernel for each index of the loops.

        Args:
            numbers: what the kernel takes behind them.
            launched: where each launch is put.
        """
        self.run_seen(self.seen(arrays), *numbers, launched=launched)

    def seen(self, arrays: Sequence[Numbers | None]) -> list[Any]:
        """The arrays as the kernel takes them."""
        pairs = zip(self.views, arrays, strict=True)
        return [x if view is None or x is None else view(x) for view, x in pairs]

    def run_seen(
        self,
        arrays: Sequence[Any],
        *numbers: float,
        launched: list[RecordedLaunch] | None = None,
    ) -> None:
        """The same, of arrays that are seen so already."""
        for index in np.ndindex(self.loops):
            pairs = zip(self.views, arrays)
            at = [x if view is None or not index else x[index] for view, x in pairs]
            args = (*at, *numbers, *self.constants)
            if launched is None:
                self._launch(*args)
            else:
                launched.append(self._recorded(args))

    def _recorded(self, args: tuple[Any, ...]) -> RecordedLaunch:
        wanted, place, found = self.kernel.prepare(args, {})
        code = found.loaded
        run(code, self.grid, wanted.args, place)
        return RecordedLaunch(code.executable, self.grid, wanted.args, code.stored)


View: TypeAlias = Callable[[Numbers], Numbers]
"""Gives another view of an array: the same memory, another shape."""

Views: TypeAlias = tuple[View, View, View]
"""Of a, b and out."""


def itself(x: Numbers) -> Numbers:
    """No other view."""
    return x


def as_matrices(a: Numbers, b: Numbers) -> Views:
    """Vectors as matrices: a row on the left, a column on the right."""
    is_row, is_column = a.ndim == 1, b.ndim == 1
    if is_row and is_column:
        return as_row, _column, as_row
    if is_row:
        return as_row, itself, lambda x: x[..., None, :]
    return itself, _column if is_column else itself, _column if is_column else itself


def as_row(x: Numbers) -> Numbers:
    """A vector as a matrix of one row."""
    return x[None, :]


def as_line(x: Numbers) -> Numbers:
    """All elements as a vector."""
    return x.reshape(-1)


def _column(x: Numbers) -> Numbers:
    return x[..., None]


def transposed(x: Numbers) -> Numbers:
    """Rows and columns exchanged."""
    return x.swapaxes(-1, -2)


def seen(arrays: Sequence[Numbers], views: Views) -> tuple[Numbers, Numbers, Numbers]:
    """The views of a, b and out."""
    a, b, out = (view(array) for array, view in zip(arrays, views))
    return a, b, out


def chained(first: Views, then: Views) -> Views:
    """The views ``then`` of the views ``first``."""
    a, b, out = map(chain, first, then)
    return a, b, out


def chain(first: View, then: View) -> View:
    """The view ``then`` of the view ``first``."""
    if first is itself:
        return then
    if then is itself:
        return first
    return lambda x: then(first(x))


class Batches(NamedTuple):
    """How to see the operands of a function of matrices.

    Attributes:
        views: of each: ``loops`` dimensions of the host, then those of the kernel; a
            matrix that is the same for all has none.
        loops: extents of the dimensions that the host goes through.
        matrices: how many products a launch makes.
    """

    views: tuple[View, ...]
    loops: tuple[int, ...]
    matrices: int


def fold_rows(a: Numbers, b: Numbers, out: Numbers) -> Views | None:
    """One product instead of many with the same b: the rows of all a below each other.

    Of (..., m, k) and (..., k, n); None where b differs or memory does not allow it.
    """
    if a.ndim == 2 or prod(b.shape[:-2]) != 1:
        return None
    views = (_rows, _first_matrix, _rows)
    if are_views((a, b, out), views):
        return views
    return None


def split_batch(operands: Sequence[Numbers]) -> Batches:
    """Views for a kernel that takes batches of two dimensions.

    Args:
        operands: (..., rows, columns) each; the last is the result, whose batch is what
            those of the others broadcast to.
    """
    out = operands[-1]
    batch = out.shape[:-2]
    if prod(batch) == 1:
        view = itself if out.ndim == 2 else _first_matrix
        return Batches((view,) * len(operands), (), 1)
    for looped in range(len(batch)):
        rest = batch[looped:]
        for split in range(len(rest)):
            groups = [prod(rest[:split])] if split else []
            groups.append(prod(rest[split:]))
            views = tuple(_grouped(x, batch, looped, groups) for x in operands)
            if are_views(operands, views):
                return Batches(views, batch[:looped], prod(rest))
    raise AssertionError("one dimension always fits")


def _grouped(
    array: Numbers, batch: Sequence[int], looped: int, groups: Sequence[int]
) -> View:
    """See ``array`` as (loops..., groups..., rows, columns)."""
    matrix = array.shape[-2:]
    if looped == 0 and prod(array.shape[:-2]) == 1:
        return _first_matrix
    whole = (*batch, *matrix)
    shape = (*batch[:looped], *groups, *matrix)
    if whole == array.shape == shape:
        return itself
    if whole == array.shape:
        return lambda x: x.reshape(shape)
    return lambda x: np.broadcast_to(x, whole, subok=True).reshape(shape)


def _first_matrix(x: Numbers) -> Numbers:
    return x[(0,) * (x.ndim - 2)]


def _rows(x: Numbers) -> Numbers:
    return x.reshape(prod(x.shape[:-1]), x.shape[-1])


def are_views(arrays: Sequence[Numbers], views: Sequence[View]) -> bool:
    """Whether no view is a copy; an empty one, as of an empty batch, is none."""
    seen = [view(array) for array, view in zip(arrays, views)]
    return all(
        after.size == 0 or np.may_share_memory(after, before)
        for before, after in zip(arrays, seen)
    )

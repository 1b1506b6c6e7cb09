"""Plans of calls: calls of one kind are planned once and share views and launches.

A plan depends on shapes, strides and dtypes alone. It holds the views that kernels
take, the grid and the compile-time arguments.

A kernel takes at most two batch dimensions before the matrix. Views never copy:
dimensions are merged where strides allow it and repeated where they are broadcast. The
host loops over the remaining dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from math import prod
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from xetl.backend import RecordedLaunch
from xetl.errors import LaunchError
from xetl.ops.calling.operands import Numbers, Shape
from xetl.ops.calling.repeated import Recorder
from xetl.records import record
from xetl.runtime.grid import Grid
from xetl.runtime.kernel import Kernel
from xetl.runtime.launcher import Launcher
from xetl.runtime.placement import run
from xetl.runtime.shortcuts import Shortcuts
from xetl.runtime.usm import DeviceNumbers
from xetl.settings import config

_MOST_PLANS = 1024

_MANY_PLANS = 32
"""From this number on, a new plan of a function records no first call."""


class Planned(Protocol):
    """A plan, and what decides which of its calls are recorded."""

    @property
    def recorder(self) -> Recorder:
        """Decide which calls are recorded."""
        ...


P = TypeVar("P", bound=Planned)


class Plans(Generic[P]):
    """The plans of a function, found by key."""

    def __init__(self) -> None:
        self._known: dict[Hashable, P] = {}

    def find(self, key: Hashable, make: Callable[[], P]) -> P:
        """Return the plan kept for ``key``; make and keep one if there is none.

        Args:
            key: all that the plan depends on, except the backend that is set.
            make: checks the call and returns the plan. Its errors are not kept.

        Raises:
            LaunchError: an option in the key cannot be hashed (X0829).
        """
        key = key, config.backend, config.interpret
        try:
            plan = self._known.get(key)
        except TypeError as error:  # an option that names a dtype may be any object
            help_ = "pass a number, a string or a dtype, not an array or a list"
            problem = f"an option cannot be compared: {error}"
            raise LaunchError(problem, "X0829", help_) from None
        if plan is None:
            plan = make()
            plan.recorder.is_eager = len(self._known) < _MANY_PLANS
            if len(self._known) >= _MOST_PLANS:
                self._known.clear()
            self._known[key] = plan
        return plan


def kind(array: Numbers | None) -> Hashable:
    """Return all properties of an array that a plan may depend on."""
    if array is None:
        return None
    return array.shape, array.strides, array.dtype, type(array), misplaced(array)


def misplaced(array: Numbers) -> bool:
    """Whether an array in device memory begins where no block message of GPUs can."""
    return isinstance(array, DeviceNumbers) and array.ctypes.data % _ALIGNMENT != 0


_ALIGNMENT = 64
"""Bytes; `xetl_xegpu.limits.BASE_ALIGNMENT`."""


@record()
class Launch:
    """The launches of one kernel in a call: one for each index of the host's loops.

    Attributes:
        kernel: takes arrays, numbers that may differ from call to call, constants.
        views: one for each array. None: all launches get the array (which may be
            None) as it is.
        loops: extents of the dimensions that the host loops over.
    """

    kernel: Kernel
    views: Sequence[View | None]
    loops: Shape
    grid: Grid
    constants: tuple[Any, ...]

    def __post_init__(self) -> None:
        known = _calls_of(self.kernel, self.constants)
        self._launch = Launcher(self.kernel, self.grid, known)

    def run(
        self,
        arrays: Sequence[Numbers | None],
        *numbers: float,
        launched: list[RecordedLaunch] | None = None,
    ) -> None:
        """Launch the kernel for each index of the loops.

        Args:
            arrays: one for each of ``views``.
            numbers: arguments of the kernel after the arrays.
            launched: a list that each launch is appended to; None: they are not
                recorded.
        """
        self.run_seen(self.seen(arrays), *numbers, launched=launched)

    def seen(self, arrays: Sequence[Numbers | None]) -> list[Any]:
        """Return the views of the arrays that the kernel takes."""
        pairs = zip(self.views, arrays, strict=True)
        return [x if view is None or x is None else view(x) for view, x in pairs]

    def run_seen(
        self,
        arrays: Sequence[Any],
        *numbers: float,
        launched: list[RecordedLaunch] | None = None,
    ) -> None:
        """Do the same as `run`, with arrays that `seen` has returned."""
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


@lru_cache(_MOST_PLANS)
def _calls_of(kernel: Kernel, constants: tuple[Any, ...]) -> Shortcuts:
    """Return the earlier calls of a kernel with constants, for all shapes of arrays.

    So the first call with a new shape, such as a longer sequence, prepares nothing.
    """
    return Shortcuts()


View: TypeAlias = Callable[[Numbers], Numbers]
"""Returns another view of an array: the same memory, another shape."""

Views: TypeAlias = tuple[View, View, View]
"""The views of a, b and out."""


def itself(x: Numbers) -> Numbers:
    """Return the array itself: the identity among views."""
    return x


def as_matrices(a: Numbers, b: Numbers) -> Views:
    """Return views that make matrices of vectors: ``a`` a row, ``b`` a column."""
    is_row, is_column = a.ndim == 1, b.ndim == 1
    if is_row and is_column:
        return as_row, as_column, as_row
    if is_row:
        return as_row, itself, lambda x: x[..., None, :]
    view = as_column if is_column else itself
    return itself, view, view


def as_row(x: Numbers) -> Numbers:
    """View a vector as a matrix of one row, or a matrix as a batch of one."""
    return x[None]


def as_line(x: Numbers) -> Numbers:
    """View all elements as a vector."""
    return x.reshape(-1)


def flat_view(x: Numbers) -> Numbers:
    """View all elements as one row."""
    return x.reshape(1, -1)


def as_column(x: Numbers) -> Numbers:
    """View each number as a row of one."""
    return x[..., None]


def transposed(x: Numbers) -> Numbers:
    """View each matrix transposed."""
    return x.swapaxes(-1, -2)


def seen(arrays: Sequence[Numbers], views: Views) -> tuple[Numbers, Numbers, Numbers]:
    """Return the views of the arrays a, b and out."""
    a, b, out = (view(array) for array, view in zip(arrays, views))
    return a, b, out


def chained(first: Views, then: Views) -> Views:
    """Compose the views of a, b and out: ``first``, then ``then``."""
    a, b, out = map(chain, first, then)
    return a, b, out


def chain(first: View, then: View) -> View:
    """Compose two views: ``first``, then ``then``."""
    if first is itself:
        return then
    if then is itself:
        return first
    return lambda x: then(first(x))


class Batches(NamedTuple):
    """Views of the operands of a function of matrices.

    Attributes:
        views: one for each operand. A view has the ``loops`` dimensions of the host,
            then those of the kernel. A matrix that all batches share has no batch
            dimensions.
        loops: extents of the dimensions that the host loops over.
        matrices: the number of products of one launch.
    """

    views: tuple[View, ...]
    loops: tuple[int, ...]
    matrices: int


def fold_rows(a: Numbers, b: Numbers, out: Numbers) -> Views | None:
    """Return views that make one product of many with the same b, by stacking rows.

    The operands are (..., m, k) and (..., k, n). Return None if the matrices of b
    differ, or if strides do not allow these views.
    """
    if a.ndim == 2 or prod(b.shape[:-2]) != 1:
        return None
    views = (_rows, _first_matrix, _rows)
    return views if are_views((a, b, out), views) else None


def split_batch(operands: Sequence[Numbers]) -> Batches:
    """Return views for a kernel that takes at most two batch dimensions.

    Args:
        operands: (..., rows, columns) each. The last one is the result; its batch
            dimensions are those that the batches of the others broadcast to.
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
    """Return the view of ``array`` as (loops..., groups..., rows, columns)."""
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
    """Whether no view is a copy. An empty view, as of an empty batch, never is one."""
    seen = [view(array) for array, view in zip(arrays, views)]
    return all(
        after.size == 0 or np.may_share_memory(after, before)
        for before, after in zip(arrays, seen)
    )

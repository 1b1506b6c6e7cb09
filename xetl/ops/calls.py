"""Calls that are planned once: the next one like it takes its views and launches.

What a call of a function needs depends on shapes, strides and dtypes alone, so it is
kept by these: the views that kernels take, the grid, the compile-time arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from xetl.language.dtypes import DType
from xetl.ops.batches import View, itself
from xetl.ops.operands import Numbers, as_numpy, new_result
from xetl.ops.rules import Shape
from xetl.records import record
from xetl.runtime.grid import Grid
from xetl.runtime.kernel import Kernel
from xetl.runtime.launcher import Launcher
from xetl.runtime.shortcuts import Shortcuts
from xetl.runtime.tensors import note_written

_MOST_PLANS = 1024

P = TypeVar("P")


class Plans(Generic[P]):
    """The plans of a function, by what they depend on."""

    def __init__(self) -> None:
        self._known: dict[Hashable, P] = {}

    def find(self, key: Hashable, make: Callable[[], P]) -> P:
        """The plan kept for ``key``, else the one that ``make`` gives.

        Args:
            key: all that the plan depends on.
            make: checks the call; what it raises is not kept.
        """
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
    return array.shape, array.strides, array.dtype, type(array)


@record()
class Launch:
    """The launches of a kernel that a call takes.

    Attributes:
        kernel: takes arrays, numbers that may differ from call to call, constants.
        views: of each array; None: it is the same for all loops, and may be None.
        loops: extents of the dimensions that the host goes through.
        grid: of each launch.
        constants: the compile-time arguments.
    """

    kernel: Kernel
    views: Sequence[View | None]
    loops: Shape
    grid: Grid
    constants: tuple[Any, ...]

    def __post_init__(self) -> None:
        self._launch = Launcher(self.kernel, self.grid, Shortcuts())
        self._as_they_are = all(view in (None, itself) for view in self.views)

    def run(self, arrays: Sequence[Numbers | None], *numbers: float) -> None:
        """Launch the kernel for each index of the loops."""
        seen = arrays if self._as_they_are else self.seen(arrays)
        if self.loops:
            self.run_seen(seen, *numbers)
        else:  # the likely case, without another call
            self._launch(*seen, *numbers, *self.constants)

    def seen(self, arrays: Sequence[Numbers | None]) -> list[Any]:
        """The arrays as the kernel takes them."""
        if self._as_they_are:
            return list(arrays)
        pairs = zip(self.views, arrays, strict=True)
        return [x if view is None or x is None else view(x) for view, x in pairs]

    def run_seen(self, arrays: Sequence[Any], *numbers: float) -> None:
        """The same, of arrays that are seen so already."""
        if not self.loops:
            self._launch(*arrays, *numbers, *self.constants)
            return
        for index in np.ndindex(self.loops):
            pairs = zip(self.views, arrays)
            at = [x if view is None else x[index] for view, x in pairs]
            self._launch(*at, *numbers, *self.constants)


@record(frozen=True)
class Plan:
    """How calls of one kind are done.

    Attributes:
        shape: of the result.
        dtype: of a new result.
        launch: None: the result has no elements.
    """

    shape: Shape
    dtype: DType
    launch: Launch | None

    def run(
        self,
        like: Any,
        out: Any,
        to: Numbers | None,
        inputs: Sequence[Numbers | None],
        *numbers: float,
    ) -> Any:
        """Compute the result: ``out``, or a new array.

        Args:
            like: a new array is of the library that this one is from.
            out: what the user gave, or None.
            to: its elements.
            inputs: the arrays that the kernel takes before the result.
            numbers: what it takes behind it.
        """
        result = new_result(like, self.shape, self.dtype) if out is None else out
        if self.launch is not None:
            place = as_numpy(result, "out") if to is None else to
            self.launch.run((*inputs, place), *numbers)
            if out is not None:
                note_written((out,))
        return result

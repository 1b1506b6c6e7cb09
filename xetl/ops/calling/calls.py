"""Calls that are planned once: the next one like it takes its views and launches.

What a call of a function needs depends on shapes, strides and dtypes alone, so it is
kept by these: the views that kernels take, the grid, the compile-time arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from xetl.backend import RecordedLaunch
from xetl.ops.calling.batches import View
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

    def run(
        self,
        arrays: Sequence[Numbers | None],
        *numbers: float,
        launched: list[RecordedLaunch] | None = None,
    ) -> None:
        """Launch the kernel for each index of the loops.

        Args:
            arrays: of the call.
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

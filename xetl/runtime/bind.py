"""A launch with everything decided: the cheapest way to run a kernel again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from xetl.backend import Argument, Event, Executable, Place
from xetl.runtime.grid import Grid
from xetl.runtime.placement import FINISHED, run, shortcut_entry


class Plan:
    """What ``kernel.bind(...)`` returns; call it to launch.

    Attributes:
        grid: the sizes it launches.
        args: the arguments it launches with; what is in the arrays may change.
    """

    __slots__ = ("_done", "_fast", "_launch", "args", "grid")

    def __init__(
        self,
        executable: Executable,
        grid: Grid,
        views: Sequence[Argument],
        values: Sequence[Any],
        place: Place | None = None,
        waits: object = True,
    ) -> None:
        self.grid = grid
        self.args = tuple(values)
        self._done = None if waits else FINISHED
        self._launch = partial(run, executable, grid, tuple(views), place, waits)
        fast = shortcut_entry(executable, values, place, waits)
        self._fast: Callable[[], Any] = (
            _refuse if fast is None else partial(fast, *grid, *values)
        )

    def __call__(self) -> Event | None:
        """Launch; the event, if it was bound with ``wait=False``."""
        result = self._fast()
        if result == 0:
            return self._done
        return self._launch() if result == 1 else result


def _refuse() -> int:
    return 1

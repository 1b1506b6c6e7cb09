"""A launch with everything decided: the cheapest way to run a kernel again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from xetl.backend import Argument, Executable
from xetl.prepacked import fast_entry
from xetl.runtime.grid import Grid


class Plan:
    """What ``kernel.bind(...)`` returns; call it to launch.

    Attributes:
        grid: the sizes it launches.
        args: the arguments it launches with; what is in the arrays may change.
    """

    __slots__ = ("_fast", "_launch", "args", "grid")

    def __init__(
        self,
        executable: Executable,
        grid: Grid,
        views: Sequence[Argument],
        values: Sequence[Any],
    ) -> None:
        self.grid = grid
        self.args = tuple(values)
        self._launch = partial(executable.launch, grid, tuple(views))
        fast = fast_entry(executable, values)
        self._fast: Callable[[], int] = (
            _refuse if fast is None else partial(fast, *grid, *values)
        )

    def __call__(self) -> None:
        """Launch."""
        if self._fast() != 0:
            self._launch()


def _refuse() -> int:
    return 1

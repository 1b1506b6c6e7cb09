"""A progress bar, where tuning takes long and somebody looks."""

from __future__ import annotations

import importlib
import sys
from time import perf_counter
from types import TracebackType
from typing import Any, Self

_LONG = 2.0
"""Seconds before a bar appears."""


class Progress:
    """Counts steps; draws them on a terminal after a while, if rich is installed."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._done = 0
        self._start = perf_counter()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, what: str) -> None:
        """One step is done, of those called ``what``."""
        self._done += 1
        if self._bar is None and perf_counter() - self._start > _LONG:
            self._show()
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, description=what)

    def _show(self) -> None:
        if not sys.stderr.isatty():
            return
        try:
            progress: Any = importlib.import_module("rich.progress")
            console: Any = importlib.import_module("rich.console")
        except ImportError:
            return
        self._bar = progress.Progress(
            console=console.Console(stderr=True), transient=True
        )
        self._task = self._bar.add_task("tuning", total=self._steps)
        self._bar.start()

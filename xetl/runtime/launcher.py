"""What ``kernel[grid]`` is: the call that must be cheap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

from xetl.errors import XetlError
from xetl.runtime.caller import at_caller
from xetl.runtime.config import launch_state
from xetl.runtime.grid import Grid


class Shortcut(NamedTuple):
    """A call that succeeded: one like it may try the native entry first.

    Attributes:
        fast: the entry (`xetl.backend.Executable.fast`).
        given: how many arguments were given by position.
        keywords: what was given by keyword.
        state: the settings that held.
    """

    fast: Callable[..., int]
    given: int
    keywords: Mapping[str, Any]
    state: object


class Launchable(Protocol):
    """What a launcher needs of its kernel."""

    shortcuts: tuple[Shortcut, ...]

    def launch(
        self, grid: Grid, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> None:
        """Run the kernel, with all checks."""
        ...

    def grid_of(
        self,
        function: Callable[[Any], object],
        args: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> Grid:
        """What a grid function says for these arguments."""
        ...


class Launcher:
    """A kernel with a grid; call it with the arguments."""

    __slots__ = ("_function", "_kernel", "_sizes")

    def __init__(
        self, kernel: Launchable, grid: Grid | Callable[[Any], object]
    ) -> None:
        self._kernel = kernel
        self._function = grid if callable(grid) else None
        self._sizes = cast("Grid", None if callable(grid) else grid)

    def __call__(self, *args: Any, **keywords: Any) -> None:
        """Launch the kernel on ``args``.

        Args:
            args: arrays, numbers and compile-time values.
            keywords: those by name, and the options ``backend``, ``queue``, ``wait``.

        Raises:
            LaunchError: the call is wrong; nothing was written.
            CompileError: the kernel is wrong.
        """
        grid = self._sizes
        kernel = self._kernel
        try:
            if self._function is not None:
                grid = kernel.grid_of(self._function, args, keywords)
            state = launch_state()
            for fast, given, known, then in kernel.shortcuts:
                if (
                    given == len(args)
                    and then == state
                    and (_same(keywords, known) if keywords or known else True)
                    and fast(*grid, *args) == 0
                ):
                    return
            kernel.launch(grid, args, keywords)
        except XetlError as error:
            raise at_caller(error) from None


def remember(
    shortcuts: tuple[Shortcut, ...], new: Shortcut, most: int = 8
) -> tuple[Shortcut, ...]:
    """Put ``new`` in front, without an older one for the same calls."""
    if any(isinstance(value, list | dict) for value in new.keywords.values()):
        return shortcuts  # who changes it later would get the old code
    kept = [
        old
        for old in shortcuts
        if (old.fast, old.given, old.state) != (new.fast, new.given, new.state)
        or not _same(old.keywords, new.keywords)
    ]
    return (new, *kept)[:most]


def _same(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Whether both hold the very same objects: 1 and 1.0 are equal, but differ."""
    if len(left) != len(right):
        return False
    missing = object()
    return all(left.get(name, missing) is value for name, value in right.items())

"""What ``kernel[grid]`` is: the call that must be cheap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

from xetl.backend import Event
from xetl.errors import XetlError
from xetl.runtime.call_site import at_caller
from xetl.runtime.grid import Grid
from xetl.runtime.placement import FINISHED
from xetl.runtime.tensors import hide_from_dynamo
from xetl.settings import launch_state

OPTIONS = ("backend", "queue", "wait")
"""What a launch takes besides the parameters of the kernel."""

_MOST_SHORTCUTS = 8

REFUSED = object()
"""What `try_shortcuts` gives if none of them has run."""


class Shortcut(NamedTuple):
    """A call that succeeded: one like it may try the native entry first.

    The entry itself checks every argument, and compile-time values by identity; what
    is compared here is the form of the call.

    Attributes:
        fast: the entry (`xetl.backend.Executable.fast`, or `fast_at` of a queue).
        given: how many arguments were given by position.
        keywords: the names given by keyword; of options, also the values.
        rest: the values of the further parameters if there are no keywords, else their
            names and defaults; without the compile-time values at the end.
        state: the settings that held.
        unchanged: says whether captured globals are what they were; None: there are
            none.
        stored: position and name of each parameter that the kernel writes.
    """

    fast: Callable[..., Any]
    given: int
    keywords: Mapping[str, Any]
    rest: tuple[Any, ...]
    state: object
    unchanged: Callable[[], bool] | None
    stored: tuple[tuple[int, str], ...] = ()

    def stored_of(
        self, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> Iterator[Any]:
        """What such a call gives for the parameters that the kernel writes."""
        for position, name in self.stored:
            yield args[position] if position < len(args) else keywords.get(name)

    def run(self, grid: Grid, args: Sequence[Any], given: Mapping[str, Any]) -> Any:
        """Try it on a call with as many arguments: what the entry gives."""
        known = self.keywords
        if not given and not known:
            return self.fast(*grid, *args, *self.rest)
        if given.keys() != known.keys():
            return 1
        for option in OPTIONS:
            if given.get(option) is not known.get(option):
                return 1
        return self.fast(*grid, *args, *[given.get(n, d) for n, d in self.rest])


class Launchable(Protocol):
    """What a launcher needs of its kernel."""

    shortcuts: tuple[Shortcut, ...]

    def launch(
        self, grid: Grid, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> Event | None:
        """Run the kernel, with all checks; the event, if the caller does not wait."""
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

    @property
    def grid(self) -> Grid | Callable[[Any], object]:
        """The sizes, or the function of the arguments."""
        return self._function or self._sizes

    def __call__(self, *args: Any, **keywords: Any) -> Event | None:
        """Launch the kernel on ``args``.

        Args:
            args: arrays, numbers and compile-time values.
            keywords: those by name, and the options ``backend``, ``queue``, ``wait``.

        Returns:
            With ``wait=False`` an event to wait for, else None.

        Raises:
            LaunchError: the call is wrong; nothing was written.
            CompileError: the kernel is wrong.
        """
        grid = self._sizes
        kernel = self._kernel
        try:
            if self._function is not None:
                grid = kernel.grid_of(self._function, args, keywords)
            shortcuts = kernel.shortcuts
            if shortcuts and not keywords:  # the likely case, without another call
                fast, given, known, rest, state, unchanged, _ = shortcuts[0]
                if (
                    not known
                    and given == len(args)
                    and state == launch_state()
                    and (unchanged is None or unchanged())
                    and fast(*grid, *args, *rest) == 0
                ):
                    return None
            result = try_shortcuts(shortcuts, grid, args, keywords)
            if result is REFUSED:
                return kernel.launch(grid, args, keywords)
            return result
        except XetlError as error:
            raise at_caller(error) from None


hide_from_dynamo(Launcher.__call__)


def try_shortcuts(
    shortcuts: tuple[Shortcut, ...],
    grid: Grid,
    args: Sequence[Any],
    keywords: Mapping[str, Any],
    ran: list[Shortcut] | None = None,
) -> Any:
    """Run the kernel by one of ``shortcuts``.

    Args:
        shortcuts: of the kernel.
        grid: of the launch.
        args: of the call.
        keywords: of the call.
        ran: where the one that has run is put.

    Returns:
        What the launch returns, or `REFUSED`: nothing was done.
    """
    state = launch_state()
    for shortcut in shortcuts:
        if (
            shortcut.given == len(args)
            and shortcut.state == state
            and (shortcut.unchanged is None or shortcut.unchanged())
        ):
            if keywords or shortcut.keywords:
                result = shortcut.run(grid, args, keywords)
            else:  # the likely case, without another call
                result = shortcut.fast(*grid, *args, *shortcut.rest)
            if ran is not None and result != 1:
                ran.append(shortcut)
            if result == 0:
                return None if keywords.get("wait", True) else FINISHED
            if result != 1:
                return result
    return REFUSED


def remember(shortcuts: tuple[Shortcut, ...], new: Shortcut) -> tuple[Shortcut, ...]:
    """Put ``new`` in front, without an older one for the same calls."""
    kept = [
        old
        for old in shortcuts
        if (old.fast, old.given, old.state) != (new.fast, new.given, new.state)
        or old.keywords.keys() != new.keywords.keys()
    ]
    return (new, *kept)[:_MOST_SHORTCUTS]

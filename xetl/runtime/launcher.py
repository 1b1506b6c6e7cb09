"""What ``kernel[grid]`` is: the call that must be cheap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

from xetl.backend import Event
from xetl.errors import XetlError
from xetl.runtime.call_site import at_caller
from xetl.runtime.grid import Grid
from xetl.runtime.native_calls import NativelyCalled, look_around, may_be_native
from xetl.runtime.shortcuts import REFUSED, Shortcuts, answer_calls
from xetl.runtime.tensors import hide_from_dynamo


class Launchable(Protocol):
    """What a launcher needs of its kernel."""

    @property
    def shortcuts(self) -> Shortcuts:
        """What calls like earlier ones may try first."""
        ...

    def launch(
        self,
        grid: Grid,
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        shortcuts: Shortcuts,
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

    def at(self, grid: Grid) -> Launcher:
        """The kernel with a grid, all compile-time arguments given."""
        ...


class Launcher(NativelyCalled):
    """A kernel with a grid; call it with the arguments.

    Native code answers calls like earlier ones (`xetl.runtime.native_calls`), if a
    backend has such code and the grid is no function; it calls `launch` for others.
    """

    __slots__ = ("_function", "_kernel", "_shortcuts", "_sizes", "_table")

    def __init__(
        self,
        kernel: Launchable,
        grid: Grid | Callable[[Any], object],
        shortcuts: Shortcuts | None = None,
    ) -> None:
        """Take a kernel, a grid, and earlier calls, if not those of the kernel."""
        self._kernel = kernel
        self._shortcuts = kernel.shortcuts if shortcuts is None else shortcuts
        self._function = grid if callable(grid) else None
        self._sizes = cast("Grid", None if callable(grid) else grid)
        self._table: Any = None
        self._be_native()

    def __reduce__(self) -> tuple[Any, ...]:
        return Launcher, (self._kernel, self.grid)

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
        grid, kernel = self._sizes, self._kernel
        try:
            if self._function is not None:
                grid = kernel.grid_of(self._function, args, keywords)
                return kernel.at(grid)(*args, **keywords)
            result = self._shortcuts.run(grid, args, keywords)
            if result is REFUSED:
                result = kernel.launch(grid, args, keywords, self._shortcuts)
                self._be_native()
                look_around()
            return result
        except XetlError as error:
            raise at_caller(error) from None

    def _be_native(self) -> None:
        """Let native code answer calls, once there is such."""
        if self._table is None and self._function is None:
            self._table = answer_calls(
                self, self._shortcuts, self.__call__, self._sizes
            )


hide_from_dynamo(Launcher.__call__)
may_be_native(Launcher)

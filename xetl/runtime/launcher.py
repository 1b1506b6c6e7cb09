"""Launches: ``kernel[grid](...)``, whose calls must be cheap, and ``kernel.bind(...)``.

A launch takes the fast path or the slow path. On the fast path the arguments look like
those of an earlier call: a native function made for that call checks them and runs the
kernel, in well under a microsecond. If it refuses, the slow path does all steps: bind,
specialise, compile if needed, check, launch (`LaunchedKernel.launch`). A plan made by
``kernel.bind`` has all arguments fixed: it is the cheapest way to run a kernel again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias, cast

from xetl.backend import INTERPRETER, Arguments, ArrayView, Event, Place
from xetl.errors import LaunchError, XetlError, a_kind, did_you_mean
from xetl.runtime.arrays import locate
from xetl.runtime.call_site import at_caller, errors_at_caller
from xetl.runtime.executables import Loaded, Prepared
from xetl.runtime.grid import Grid, GridFunction, GridSpec, fixed
from xetl.runtime.native_calls import (
    NativelyCalled,
    answer,
    look_around,
    may_be_native,
    native,
)
from xetl.runtime.overlap import same_view
from xetl.runtime.parameters import Args, Keywords
from xetl.runtime.placement import FINISHED, run, shortcut_entry
from xetl.runtime.shortcuts import (
    REFUSED,
    Shortcut,
    Shortcuts,
    answer_calls,
    entry_table,
)
from xetl.runtime.specialize import Specialization
from xetl.runtime.tensors import (
    hide_from_dynamo,
    is_plain_tensor,
    is_tensor,
    note_written,
    settle_dynamo,
    stored_objects,
)
from xetl.settings import launch_state

_CHECKS = ("oob", "uninit", "race")
ALL_CHECKS = ",".join(_CHECKS)
_INTERPRETED = {"backend": INTERPRETER, "queue": None}
"""Options of the launch that `LaunchedKernel.interpret` does."""

_MOST_LAUNCHERS = 256
_Called: TypeAlias = Callable[..., Event | None]


class Plan(NativelyCalled):
    """A launch with fixed arguments, made by ``kernel.bind(...)``; call it to launch.

    Attributes:
        grid: the sizes of the grid.
        args: the arguments; the elements of arrays may change.
    """

    __slots__ = ("_done", "_fast", "_launch", "_table", "args", "grid")

    def __init__(
        self,
        code: Loaded,
        grid: Grid,
        found: Specialization,
        values: Args,
        place: Place | None = None,
        waits: object = True,
    ) -> None:
        self.grid = grid
        self.args = tuple(values)
        self._done = None if waits else FINISHED
        launch = code, grid, found.args, place, waits
        self._launch = partial(_run_checked, found.names, *launch)
        stored = found.positions(code.stored)
        fast = shortcut_entry(code, values, stored, place, waits)
        if any(isinstance(x, ArrayView) and type(x.obj) is tuple for x in found.args):
            fast = None  # the entry cannot check the address of an array of DLPack
        self._fast: Callable[[], Any] = lambda: 1
        objects: tuple[Any, ...] = (*grid, *values)
        seen = [x for x in found.args if isinstance(x, ArrayView) and is_tensor(x.obj)]
        addresses = {id(view.obj): view.address for view in seen}
        tensors = [i for i, x in enumerate(objects) if id(x) in addresses]
        table, by = entry_table(fast), native()
        if table is not None and by is not None:
            by.look_around()
            slow, count = self.__call__, len(objects)
            words = by.process, table, id(slow), id(self._done), count, len(tensors)
            places = [x for i in tensors for x in (i, addresses[id(objects[i])])]
            made = answer(self, by.plan, (*words, *map(id, objects), *places))
            self._table = by, fast, slow, objects, made
        elif fast is not None:
            self._fast = partial(_run_unmoved, partial(fast, *objects), seen)

    def __call__(self) -> Event | None:
        """Launch; return the event if the plan was bound with ``wait=False``.

        Raises:
            LaunchError: an array has another address or layout than when it was bound.
        """
        result = self._fast()
        if result == 0:
            return self._done
        return self._launch() if result == 1 else result


hide_from_dynamo(Plan.__call__)
may_be_native(Plan)


def _run_unmoved(fast: Callable[[], Any], tensors: Args) -> Any:
    """Launch, or return 1 if a tensor has other memory than when it was bound."""
    for view in tensors:
        if not is_plain_tensor(view.obj) or view.obj.data_ptr() != view.address:
            return 1
    return fast()


@errors_at_caller
def _run_checked(
    names: Sequence[str],
    code: Loaded,
    grid: Grid,
    args: Arguments,
    place: Place | None,
    waits: object,
) -> Event | None:
    """Launch if all arrays have the address and layout that they were bound with.

    Raises:
        LaunchError: one has moved, or cannot be read any more.
    """
    for name, arg in zip(names, args):
        # The view of an array of DLPack keeps its object and capsule, so it is valid.
        if not isinstance(arg, ArrayView) or isinstance(arg.obj, tuple):
            continue
        if not same_view(locate(arg.obj, name), arg):
            problem = f"`{name}` has other memory than when it was bound"
            raise LaunchError(problem, "X0805", "bind again")
    return run(code, grid, args, place, waits)


class LaunchedKernel:
    """Base class of kernels written in Python or as text: grid, launches, plans.

    Attributes:
        grid: the declared grid, or None.
        shortcuts: earlier calls that succeeded.
    """

    def __init__(self, grid: GridSpec | None = None) -> None:
        self.grid = grid
        self.shortcuts = Shortcuts()
        self._launchers: dict[object, _Called] = {}
        self._at: dict[Grid, Launcher] = {}

    def __getitem__(self, grid: Any) -> _Called:
        """Return the kernel with a grid; call the result with the arguments."""
        try:
            return self._launchers[grid]
        except (KeyError, TypeError):  # new, or not hashable
            try:
                return self._new_launcher(grid)
            except XetlError as error:
                raise at_caller(error) from None

    @errors_at_caller
    def bind(self, *args: Any, grid: GridSpec | None = None, **keywords: Any) -> Plan:
        """Check and compile now; return a plan that launches with these arguments.

        A plan keeps the values that captured globals have now.
        """
        instead = self._no_grid("bound", "bind(..., grid=...)")
        sizes = self._sizes(grid, args, keywords, instead)
        wanted, place, found = self.prepare(args, keywords)
        waits = keywords.get("wait", True)
        return Plan(found.loaded, sizes, wanted, wanted.values, place, waits)

    def interpret(
        self,
        *args: Any,
        grid: GridSpec | None = None,
        check: str = ALL_CHECKS,
        **keywords: Any,
    ) -> None:
        """Run the kernel in the interpreter, and check it for errors.

        Args:
            args: as in a launch.
            grid: by default the declared one.
            check: any of ``oob`` (indices outside of their array), ``uninit`` (shared
                memory is read before it is written) and ``race`` (two programs, or two
                subgroups without a barrier between, access one element, unless both
                only read it or both use atomics).
            keywords: arguments by name.

        Raises:
            CheckError: a check failed, the first one; all arrays are unchanged.
        """
        try:
            checks = _checks_of(check)
            _refuse_other_backend(keywords)
            keywords = self._known(args, keywords)
            instead = self._no_grid("interpreted", "interpret(..., grid=...)")
            sizes = self._sizes(grid, args, keywords, instead)
            wanted, _, found = self.prepare(args, {**keywords, **_INTERPRETED})
            executable: Any = found.loaded.executable
            note_written(stored_objects(wanted.args, found.loaded.stored))
            if checks:  # arrays are written when all programs and checks are done
                executable.check(sizes, wanted.args, checks)
            else:
                executable.launch(sizes, wanted.args)
        except XetlError as error:
            raise at_caller(self._shown(error)) from None

    def launch(
        self, grid: Grid, args: Args, keywords: Keywords, shortcuts: Shortcuts
    ) -> Event | None:
        """Run the kernel with all checks; return the event if it is not waited for."""
        settle_dynamo()
        result = shortcuts.run_on_plain(grid, args, keywords)
        if result is not REFUSED:
            return result
        event, new = self.launch_anew(grid, args, keywords)
        if new is not None:
            shortcuts.put(new)
        return event

    def launch_anew(
        self, grid: Grid, args: Args, keywords: Keywords
    ) -> tuple[Event | None, Shortcut | None]:
        """Run the kernel; return its event, or None, and a shortcut for such calls."""
        state = launch_state()
        prepared = self.prepare(args, keywords)
        wanted, place, (loaded, _, _) = prepared
        event = run(loaded, grid, wanted.args, place, keywords.get("wait", True))
        if not loaded.deserves_shortcut():
            return event, None
        return event, self._shortcut(prepared, args, keywords, state)

    def at(self, grid: Grid) -> Launcher:
        """Return the launcher for a grid; its calls give all constants themselves."""
        known = self._at.get(grid)
        if known is None:
            if len(self._at) >= _MOST_LAUNCHERS:
                self._at.clear()
            known = self._at[grid] = Launcher(self, grid)
        return known

    def prepare(self, args: Args, keywords: Keywords) -> Prepared:
        """Check a call, and find or compile its code; do not run it."""
        raise NotImplementedError

    def grid_of(self, function: GridFunction, args: Args, keywords: Keywords) -> Grid:
        """Return the grid that a function computes from these arguments."""
        raise NotImplementedError

    def _shortcut(
        self, prepared: Prepared, args: Args, keywords: Keywords, state: object
    ) -> Shortcut | None:
        """Return a shortcut for calls like one that has succeeded, or None."""
        raise NotImplementedError

    def _no_grid(self, what: str, instead: str) -> LaunchError:
        raise NotImplementedError

    def _known(self, args: Args, keywords: Keywords) -> dict[str, Any]:
        """Return the keywords, completed by chosen constants; never time configs."""
        return dict(keywords)

    def _shown(self, error: XetlError) -> XetlError:
        return error

    def _sizes(
        self,
        grid: GridSpec | None,
        args: Args,
        keywords: Keywords,
        missing: LaunchError,
    ) -> Grid:
        """Return the grid of a call, else the declared one; raise ``missing``."""
        spec = self.grid if grid is None else grid
        if spec is None:
            raise missing
        if callable(spec):
            return self.grid_of(spec, args, keywords)
        return fixed(spec)

    def _launcher(self, grid: Grid | GridFunction) -> _Called:
        return Launcher(self, grid) if callable(grid) else self.at(grid)

    def _new_launcher(self, grid: GridSpec) -> _Called:
        launcher = self._launcher(grid if callable(grid) else fixed(grid))
        return self._keep_launcher(grid, launcher)

    def _keep_launcher(self, grid: Any, launcher: _Called) -> _Called:
        if isinstance(grid, int | tuple):
            if len(self._launchers) >= _MOST_LAUNCHERS:
                self._launchers.clear()
            with suppress(TypeError):  # the grid holds a list
                self._launchers[grid] = launcher
        return launcher


class Launcher(NativelyCalled):
    """A kernel with a grid; call it with the arguments.

    If a backend has native code and the grid is no function, the native code answers
    calls like earlier ones (`xetl.runtime.native_calls`) and passes others on to
    `launch`.
    """

    __slots__ = ("_function", "_kernel", "_shortcuts", "_sizes", "_table")

    def __init__(
        self,
        kernel: LaunchedKernel,
        grid: Grid | GridFunction,
        shortcuts: Shortcuts | None = None,
    ) -> None:
        """Take a kernel, a grid, and earlier calls (by default those of the kernel)."""
        self._kernel = kernel
        self._shortcuts = kernel.shortcuts if shortcuts is None else shortcuts
        self._function = grid if callable(grid) else None
        self._sizes = cast("Grid", None if callable(grid) else grid)
        self._table: Any = None
        self._be_native()

    def __reduce__(self) -> tuple[Any, ...]:
        return Launcher, (self._kernel, self.grid)

    @property
    def grid(self) -> Grid | GridFunction:
        """The sizes, or the function of the arguments that computes them."""
        return self._function or self._sizes

    def __call__(self, *args: Any, **keywords: Any) -> Event | None:
        """Launch the kernel on ``args``.

        Args:
            args: arrays, numbers and compile-time values.
            keywords: arguments by name; options ``backend``, ``queue``, ``wait``.

        Returns:
            An event to wait for if ``wait=False``, else None.

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
        """Let native code answer calls, if it is available by now."""
        if self._table is None and self._function is None:
            self._table = answer_calls(
                self, self._shortcuts, self.__call__, self._sizes
            )


hide_from_dynamo(
    Launcher.__call__,
    LaunchedKernel.__getitem__,
    LaunchedKernel.bind,
    LaunchedKernel.interpret,
    LaunchedKernel.launch,
    LaunchedKernel.launch_anew,
)
may_be_native(Launcher)

# What `kernel.interpret` adds to a launch ------------------------------------------


def _checks_of(check: object) -> frozenset[str]:
    """Return the checks in a text such as ``"oob,race"``; a LaunchError if unknown."""
    if not isinstance(check, str):
        problem = f"`check=` is {a_kind(check)}, but must be a text"
        help_ = f'write check="{ALL_CHECKS}", some of these, or ""'
        raise LaunchError(problem, "X0817", help_)
    names = [name.strip() for name in check.split(",") if name.strip()]
    for name in names:
        if name not in _CHECKS:
            listed = ", ".join(f"`{each}`" for each in _CHECKS)
            help_ = did_you_mean(name, _CHECKS) or f"the checks are {listed}"
            raise LaunchError(f"there is no check called `{name}`", "X0817", help_)
    return frozenset(names)


def _refuse_other_backend(options: Keywords) -> None:
    """Refuse another ``backend=``: the interpreter is a backend itself."""
    name = options.get("backend")
    if name not in (None, INTERPRETER):
        problem = f"`interpret` runs on backend `{INTERPRETER}`, not on `{name}`"
        raise LaunchError(problem, "X0810", "leave out `backend=`")

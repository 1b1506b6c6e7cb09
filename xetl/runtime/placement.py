"""Choose the backend of a launch, and where it runs: on the host, or on a queue.

A backend without queues runs on the host, at once, and reads only host memory. A
backend with queues chooses one (`BackendBase.place`): the user's ``queue=``, or that of
the arrays, or its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, cast

from xetl.backend import (
    DEFAULT_BACKEND,
    INTERPRETER,
    Arguments,
    ArrayView,
    BackendBase,
    Event,
    Place,
    QueuedExecutable,
    find_backend,
    other_backends,
)
from xetl.errors import LaunchError, a_kind
from xetl.prepacked import fast_entry
from xetl.runtime import usm
from xetl.runtime.executables import Loaded
from xetl.runtime.grid import Grid
from xetl.runtime.tensors import needs_derivative, note_written, stored_objects
from xetl.runtime.usm import settle
from xetl.settings import config


def choose_backend(
    name: object = None,
    values: Iterable[Any] = (),
    *,
    target: str | None = None,
    shows: Callable[[BackendBase], bool] | None = None,
) -> BackendBase:
    """Choose the backend of a call.

    It is the named one; or else that of arrays in device memory; or else the usual one.
    A call that launches nothing may ask for a target or stage that the usual backend
    does not have: then it is the first backend that has it.

    Args:
        target: ``target=`` of a call that launches nothing.
        shows: tells whether a backend has the stage that such a call asks for.

    Raises:
        LaunchError: there is no such backend.
    """
    if config.interpret:
        return find_backend(INTERPRETER)
    if name is not None and not isinstance(name, str):
        problem = f"`backend=` is {a_kind(name)}, but must be a name"
        raise LaunchError(problem, code="X0810")
    if name is not None:
        return find_backend(name)
    if any(usm.is_on_device(value) for value in values):
        return find_backend(usm.DEVICE_BACKEND)
    usual = find_backend(config.backend or DEFAULT_BACKEND)
    if target is not None:
        return _first(lambda each: target in (*each.targets, *each.runs_as), usual)
    return usual if shows is None else _first(shows, usual)


def _first(has: Callable[[BackendBase], bool], usual: BackendBase) -> BackendBase:
    """Return the first backend for which ``has`` is true; the usual one if none is."""
    if has(usual):
        return usual
    return next((each for each in other_backends(usual) if has(each)), usual)


class Finished:
    """The event of a launch that has finished when it returns."""

    done = True

    def wait(self) -> None:
        """Do nothing."""


FINISHED = Finished()


def find_place(
    backend: BackendBase, queue: object, names: Sequence[str], args: Arguments
) -> Place | None:
    """Return the queue that a launch with these arguments runs on; None: the host.

    ``queue`` is that of the user, or None; constants are left out of ``args``.

    Raises:
        LaunchError: the queue or an array belongs to another device.
    """
    place = backend.place(queue, names, args)
    if place is not None:
        return place
    if queue is not None:
        problem = f"`queue=` was given, but backend `{backend.name}` has no queues"
        raise LaunchError(problem, "X0813")
    for name, arg in zip(names, args):
        if isinstance(arg, ArrayView):
            settle(arg, name)
    return None


def run(
    code: Loaded, grid: Grid, args: Arguments, place: Place | None, waits: object = True
) -> Event | None:
    """Run a kernel; return the event if the caller does not wait."""
    # Before the launch: a kernel that fails may have written, too.
    note_written(stored_objects(args, code.stored))
    if place is None:
        code.executable.launch(grid, args)
        return None if waits else FINISHED
    event = cast("QueuedExecutable", code.executable).submit(grid, args, place)
    if not waits:
        return event
    event.wait()
    return None


def shortcut_entry(
    code: Loaded,
    values: Sequence[object],
    stored: Sequence[int],
    place: Place | None,
    waits: object,
) -> Callable[..., Any] | None:
    """Return the fast entry for calls with values of these types, or None.

    There is a value for each parameter; those at the indices ``stored`` are written.
    """
    if place is None:
        return fast_entry(code.executable, values)
    fast = cast("QueuedExecutable", code.executable).fast_at(place, waits=bool(waits))
    return None if fast is None else partial(_run_on_device, fast, stored)


def _run_on_device(fast: Callable[..., Any], stored: Sequence[int], *args: Any) -> Any:
    """Call an entry of a device; it takes any tensors, so autograd is checked here."""
    objects = args[3:]  # after the grid
    if any(map(needs_derivative, objects)):
        return 1
    result = fast(*args)
    if result != 1:
        note_written(objects[index] for index in stored)
    return result

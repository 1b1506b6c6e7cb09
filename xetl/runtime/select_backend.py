"""Which backend a call is for, and which machine of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from xetl.backend import BackendBase, backend_names, find_backend
from xetl.errors import LaunchError
from xetl.runtime import usm
from xetl.settings import config

DEFAULT_BACKEND = "cpu"
INTERPRETER = "reference"


def choose_backend(
    name: object = None,
    values: Iterable[Any] = (),
    *,
    target: str | None = None,
    shows: Callable[[BackendBase], bool] | None = None,
) -> BackendBase:
    """The backend of a call.

    The one that is named; else that of arrays which live on a device; else the usual
    one.  Where nothing is launched it may lack what is asked for: then the one that
    has it.

    Args:
        name: ``backend=`` of the call.
        values: its arguments, as they were given.
        target: the machine that is asked about.
        shows: whether a backend has the stage that is asked for.

    Raises:
        LaunchError: there is no such backend.
    """
    if config.interpret:
        return find_backend(INTERPRETER)
    if name is not None:
        return find_backend(_checked(name))
    if any(usm.is_on_device(value) for value in values):
        return find_backend(usm.DEVICE_BACKEND)
    usual = find_backend(config.backend or DEFAULT_BACKEND)
    if target is not None:
        return _first(lambda each: target in each.targets, usual)
    return usual if shows is None else _first(shows, usual)


def _checked(name: object) -> str:
    if isinstance(name, str):
        return name
    raise LaunchError(
        f"`backend=` is a {type(name).__name__}, but must be a name", code="X0810"
    )


def _first(has: Callable[[BackendBase], bool], usual: BackendBase) -> BackendBase:
    """The usual backend if it has something, or if none has; else one that has."""
    if has(usual):
        return usual
    return next((each for each in others(usual) if has(each)), usual)


def others(usual: BackendBase) -> Iterator[BackendBase]:
    """The backends that can be imported, without the interpreter."""
    for name in backend_names():
        if name in (usual.name, INTERPRETER):
            continue
        try:
            yield find_backend(name)
        except (ImportError, LaunchError):  # what it needs is not installed
            continue

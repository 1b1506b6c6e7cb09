"""Modules that load whole, or not at all, whatever signals come meanwhile.

An exception of a signal handler, such as Ctrl-C, in the middle of an import leaves some
modules loaded and others not, and may leave the lock of all imports taken for ever.
"""

from __future__ import annotations

import _thread
import dataclasses
import gc
import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from types import FrameType, ModuleType, SimpleNamespace
from typing import Any

_MOST_NEW = 400_000
"""Objects after which the garbage collector looks all the same."""


@contextmanager
def collecting_rarely() -> Generator[None]:
    """Have the garbage collector look seldom while modules or IR are made.

    Almost none of it is garbage, but the collector walks through all of it again each
    time it has grown by a quarter: 60 ms of a cold compile.
    """
    first, second, third = gc.get_threshold()
    is_ours = 0 < first < _MOST_NEW  # 0: the user has switched it off
    if is_ours:
        gc.set_threshold(_MOST_NEW, second, third)
    try:
        yield
    finally:
        if is_ours:
            gc.set_threshold(first, second, third)


_make_method: Callable[..., Any] | None = getattr(dataclasses, "_create_fn", None)
"""What writes and compiles a method of a dataclass; Python 3.13 has none of its own."""


PATIENT = (
    *("xdsl.", "xetl.dialects.", "xetl.findings.", "xetl.pipeline.", "xetl.runtime."),
    *("xetl.transforms.", "xetl_cpu."),
)
"""Packages whose dataclasses get their methods when these are first called.

Most never are: there are 900 of them, which take a tenth of a cold compile. Classes
that users make are not among them: there it is the methods that say what to give.
"""


def _is_patient(module: str) -> bool:
    return f"{module}.".startswith(PATIENT)


def _method_later(
    name: str, *rest: Any, globals: dict[str, Any] | None = None, **named: Any
) -> Any:
    """A method that is written and compiled when it is first called, if so wanted."""
    assert _make_method is not None
    make, made = (
        partial(_make_method, name, *rest, globals=globals, **named),
        list[Any](),
    )
    if not _is_patient((globals or {}).get("__name__", "")):
        return make()

    def method(self: object, *args: object, **others: object) -> object:
        if not made:
            made.append(make())
            made[0].__qualname__ = method.__qualname__
            for each in type(self).__mro__:
                if vars(each).get(name) is method:
                    type.__setattr__(each, name, made[0])
        return made[0](self, *args, **others)

    method.__name__ = method.__qualname__ = name
    return method


def _signature_if_shown(cls: type) -> object:
    """What dataclasses without a text get as theirs: nobody reads those of packages."""
    return "" if _is_patient(cls.__module__) else inspect.signature(cls)


_is_type: Callable[..., bool] | None = getattr(dataclasses, "_is_type", None)
"""Whether an annotation that is a text names one of a few types of fields."""


def _is_type_if_named(annotation: str, cls: type, *rest: Any) -> bool:
    """As `_is_type`, asked three times for each field; packages name them so."""
    assert _is_type is not None
    may_be = "Var" in annotation or "KW_ONLY" in annotation
    return (may_be or not _is_patient(cls.__module__)) and _is_type(
        annotation, cls, *rest
    )


_QUICK_INSPECT = SimpleNamespace(**vars(inspect) | {"signature": _signature_if_shown})

_LOADS = list[None]()
"""One for each load that goes on: the last one that ends cleans up."""


@contextmanager
def _loading() -> Generator[None]:
    """Have modules load quickly: what they make stays, and is used in part."""
    _LOADS.append(None)
    try:
        if _make_method is not None:
            setattr(dataclasses, "_create_fn", _method_later)  # noqa: B010 (not public)
        if _is_type is not None:
            setattr(dataclasses, "_is_type", _is_type_if_named)  # noqa: B010 (the same)
        setattr(dataclasses, "inspect", _QUICK_INSPECT)  # noqa: B010 (the same)
        with collecting_rarely():
            yield
            if gc.isenabled() and not gc.get_freeze_count():
                # All that there is becomes old, or the collector looks at it at once.
                gc.freeze()
                gc.unfreeze()
    finally:
        _LOADS.pop()
        if not _LOADS:
            setattr(dataclasses, "inspect", inspect)  # noqa: B010
            if _make_method is not None:
                setattr(dataclasses, "_create_fn", _make_method)  # noqa: B010
            if _is_type is not None:
                setattr(dataclasses, "_is_type", _is_type)  # noqa: B010 (not public)


def import_whole(name: str) -> ModuleType:
    """The module called ``name``, loaded by a thread that no handler interrupts.

    Handlers run in the main thread, which waits here; what they raise ends the waiting.
    The module is then loaded all the same, and the next call waits for it. The lock
    to wait with is of this call alone: an exception may leave it taken.
    """
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    if module is not None and not getattr(spec, "_initializing", False):
        return module
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or _is_importing():
        with _loading():
            return importlib.import_module(name)
    found: list[ModuleType | BaseException] = []
    is_loading = _thread.allocate_lock()
    is_loading.acquire()
    _thread.start_new_thread(_load, (name, found, is_loading))
    is_loading.acquire()
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def late(module: str, name: str) -> Callable[..., Any]:
    """A function of a module that is loaded when it is first called."""

    def call(*given: object) -> object:
        return getattr(import_whole(module), name)(*given)

    return call


def _is_importing() -> bool:
    """Whether this thread loads a module now: another one might wait for that."""
    frame: FrameType | None = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _load(
    name: str, found: list[ModuleType | BaseException], is_loading: _thread.LockType
) -> None:
    try:
        with _loading():
            found.append(importlib.import_module(name))
    except BaseException as error:
        found.append(error)
    finally:
        is_loading.release()

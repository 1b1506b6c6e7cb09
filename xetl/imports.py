"""Imports that signals cannot interrupt, and faster imports of dataclasses.

If a signal handler raises in the middle of an import, as Ctrl-C does, some modules stay
loaded in part, and the import lock may stay locked for ever.
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
"""The number of new objects after which the garbage collector runs nevertheless."""


@contextmanager
def collecting_rarely() -> Generator[None]:
    """Run the garbage collector seldom while modules or IR are made.

    Almost none of these objects are garbage, but the collector visits all of them each
    time their number has grown by a quarter: 60 ms of a cold compile.
    """
    first, second, third = gc.get_threshold()
    is_ours = 0 < first < _MOST_NEW  # 0: the user has switched the collector off
    if is_ours:
        gc.set_threshold(_MOST_NEW, second, third)
    try:
        yield
    finally:
        if is_ours:
            gc.set_threshold(first, second, third)


_make_method: Callable[..., Any] | None = getattr(dataclasses, "_create_fn", None)
"""The function of `dataclasses` that compiles one method; Python 3.13 has none."""


LAZY = (
    *("xdsl.", "xetl.dialects.", "xetl.findings.", "xetl.pipeline.", "xetl.runtime."),
    *("xetl.transforms.", "xetl_cpu."),
)
"""Packages whose dataclasses compile a method at its first call.

Most methods are never called: there are 900, and all of them take a tenth of a cold
compile. Dataclasses of users are not treated so, because signatures of their methods
must be visible.
"""


def _is_lazy(module: str) -> bool:
    return f"{module}.".startswith(LAZY)


def _lazy_method(
    name: str, *rest: Any, globals: dict[str, Any] | None = None, **named: Any
) -> Any:
    """Return a method of a dataclass; in `LAZY` its first call compiles it."""
    assert _make_method is not None
    make, made = (
        partial(_make_method, name, *rest, globals=globals, **named),
        list[Any](),
    )
    if not _is_lazy((globals or {}).get("__name__", "")):
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


def _signature_if_shown(cls: type, **how: Any) -> object:
    """Return the signature for a dataclass's docstring; none for those in `LAZY`."""
    return "" if _is_lazy(cls.__module__) else inspect.signature(cls, **how)


_is_type: Callable[..., bool] | None = getattr(dataclasses, "_is_type", None)
"""The function of `dataclasses` that finds ``ClassVar`` and the like in annotations."""


def _is_type_if_named(annotation: str, cls: type, *rest: Any) -> bool:
    """Do what `_is_type` does, but faster: it is called three times for each field.

    Packages in `LAZY` use these types only by names with ``Var`` or ``KW_ONLY``.
    """
    assert _is_type is not None
    may_be = "Var" in annotation or "KW_ONLY" in annotation
    return (may_be or not _is_lazy(cls.__module__)) and _is_type(annotation, cls, *rest)


_QUICK_INSPECT = SimpleNamespace(**vars(inspect) | {"signature": _signature_if_shown})

_LOADS = list[None]()
"""One item for each import in progress: the last one that ends cleans up."""


@contextmanager
def _loading() -> Generator[None]:
    """Make imports fast: few methods are compiled, and few garbage collections run."""
    _LOADS.append(None)
    try:
        if _make_method is not None:
            setattr(dataclasses, "_create_fn", _lazy_method)  # noqa: B010 (not public)
        if _is_type is not None:
            setattr(dataclasses, "_is_type", _is_type_if_named)  # noqa: B010 (the same)
        setattr(dataclasses, "inspect", _QUICK_INSPECT)  # noqa: B010 (the same)
        with collecting_rarely():
            yield
            if gc.isenabled() and not gc.get_freeze_count():
                # This makes all objects old; else a collection would visit them now.
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
    """Return the module ``name``, loaded by a thread that no signal handler interrupts.

    Handlers run in the main thread, which waits here; their exceptions end the waiting.
    The other thread still loads the module, and the next call waits for it. Each call
    waits on a lock of its own, because an exception may leave this lock locked.
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
    """Return a function of a module, which its first call loads."""

    def call(*given: object) -> object:
        return getattr(import_whole(module), name)(*given)

    return call


def _is_importing() -> bool:
    """Whether this thread is importing: a second thread might wait for its lock."""
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

"""How kernels go to other processes: by name where that finds them, else by value.

So do helpers of kernels. Functions go by name, too, but the name of a kernel finds the
kernel and not the function it is made of. In ``__main__`` a name finds it only in
processes of `multiprocessing`; those of joblib and Dask get functions of ``__main__``
by value, and so kernels as well, by the same means (cloudpickle, which is loaded where
it is used). With a value goes the text it was written in: cloudpickle keeps the code of
a function and, since 3.1.2, not the file it came from.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from xetl.language.source_lines import carry_lines, lines_of

_BY_VALUE = ("cloudpickle", "joblib.externals.cloudpickle")
MAIN = "__main__"

Made = tuple[Any, ...]
"""The arguments a kernel or helper is made with."""

_INSIDE = ContextVar("inside cloudpickle", default=False)
"""Whether what is pickled becomes the value of another."""


def reduced(
    made_object: object, made: Made, fn: Callable[..., Any]
) -> tuple[Callable[..., Any], tuple[Any, ...]] | tuple[Any, Any, Made]:
    """For ``__reduce__`` of an object of ``fn``; ``__setstate__`` is given ``made``."""
    kind = type(made_object)
    module, name = fn.__module__, fn.__qualname__
    found = _named(module, name)
    if found is not made_object or (_INSIDE.get() and module == MAIN):
        # Made in a function, or the name stands for something else by now.
        return _unmade, (kind, fn.__code__.co_filename, "".join(lines_of(fn))), made
    value = _by_value(made_object) if module == MAIN else None
    return _restored, (kind, module, name, value)


def _unmade(kind: type[object], path: str, text: str) -> object:
    carry_lines(path, text)
    return object.__new__(kind)


def _restored(kind: type, module: str, name: str, value: bytes | None) -> Any:
    found = _named(module, name)
    if value is not None and not isinstance(found, kind):
        # What cloudpickle writes, pickle reads.
        pickle: Any = importlib.import_module("pickle")
        return pickle.loads(value)
    if module != MAIN:
        importlib.import_module(module)
        found = _named(module, name)
    if not isinstance(found, kind):
        raise AttributeError(f"`{module}` has no kernel `{name}` in this process")
    return found


def _named(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _by_value(made_object: object) -> bytes | None:
    for name in _BY_VALUE:
        by_value: Any = sys.modules.get(name)
        if by_value is not None:
            token = _INSIDE.set(True)
            try:
                return by_value.dumps(made_object)
            finally:
                _INSIDE.reset(token)
    return None

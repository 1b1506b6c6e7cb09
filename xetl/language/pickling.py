"""Pickling of kernels and their helpers: by name if the name finds them, or by value.

Python pickles functions by name, too, but the name of a kernel finds the kernel and not
its function. Names in ``__main__`` are found only in processes of `multiprocessing`.
Joblib and Dask send functions of ``__main__`` by value, by cloudpickle; if cloudpickle
is loaded, kernels of ``__main__`` are pickled in the same way. The source text is
pickled with a value, because cloudpickle keeps the code of a function but (since 3.1.2)
not its file name.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from xetl.language.source_lines import carry_lines, lines_of

MAIN = "__main__"

Made = tuple[Any, ...]
"""The arguments with which a kernel or helper was made."""

_INSIDE = ContextVar("inside cloudpickle", default=False)
"""Whether cloudpickle is pickling an object by value for `_by_value`."""


def reduced(
    made_object: object, made: Made, fn: Callable[..., Any]
) -> tuple[Callable[..., Any], tuple[Any, ...]] | tuple[Any, Any, Made]:
    """Return the result of ``__reduce__`` for a kernel or helper of ``fn``.

    ``__setstate__`` of the new object gets ``made``.
    """
    kind = type(made_object)
    module, name = fn.__module__, fn.__qualname__
    found = _named(module, name)
    if found is not made_object or (_INSIDE.get() and module == MAIN):
        # The kernel was made in a function, or its name now means another object.
        return _unmade, (kind, fn.__code__.co_filename, "".join(lines_of(fn))), made
    value = _by_value(made_object) if module == MAIN else None
    return _restored, (kind, module, name, value)


def _unmade(kind: type[object], path: str, text: str) -> object:
    carry_lines(path, text)
    return object.__new__(kind)


def _restored(kind: type, module: str, name: str, value: bytes | None) -> Any:
    found = _named(module, name)
    if value is not None and not isinstance(found, kind):
        # Pickle can read the output of cloudpickle.
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
    for name in ("cloudpickle", "joblib.externals.cloudpickle"):
        by_value: Any = sys.modules.get(name)
        if by_value is not None:
            token = _INSIDE.set(True)
            try:
                return by_value.dumps(made_object)
            finally:
                _INSIDE.reset(token)
    return None

"""How kernels go to other processes: by name where that finds them, else by value.

Functions go by name, too, but the name of a kernel finds the kernel and not the
function it is made of. In ``__main__`` a name finds it only in processes of
`multiprocessing`; those of joblib and Dask get functions of ``__main__`` by value, and
so kernels as well, by the same means (cloudpickle, which is loaded where it is used).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

_BY_VALUE = ("cloudpickle", "joblib.externals.cloudpickle")
MAIN = "__main__"

Made = tuple[Any, ...]
"""The arguments a kernel is made with."""


def reduced(
    kernel: object, made: Made, fn: Callable[..., Any]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """For ``__reduce__``: what `_restored` needs in the other process."""
    kind = type(kernel)
    module, name = fn.__module__, fn.__qualname__
    found = _named(module, name)
    if found is not kernel:
        # Made in a function, or the name stands for something else by now.
        return kind, made
    value = _by_value(made) if module == MAIN else None
    return _restored, (kind, module, name, value)


def _restored(kind: type, module: str, name: str, value: bytes | None) -> Any:
    found = _named(module, name)
    if value is not None and not isinstance(found, kind):
        # What cloudpickle writes, pickle reads.
        pickle: Any = importlib.import_module("pickle")
        return kind(*pickle.loads(value))
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


def _by_value(made: Made) -> bytes | None:
    for name in _BY_VALUE:
        by_value: Any = sys.modules.get(name)
        if by_value is not None:
            return by_value.dumps(made)
    return None

"""Conversion of options of `xetl.ops` to plain Python values.

Options are a part of the key of a plan, and derivatives read them. So each number has
one form (``np.int64(1)`` becomes ``1``), and values of another kind are refused.
"""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from xetl.errors import LaunchError
from xetl.runtime.call_site import at_caller


def _int(value: Any) -> Any:
    if type(value) in EXACT["int"]:
        return value
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)


def _float(value: Any) -> float:
    if isinstance(value, str | bytes):
        raise TypeError
    return float(value)


def _dims(value: Any) -> Any:
    if value is None:
        return ()
    if isinstance(value, tuple | list):
        return tuple(map(_int, cast("list[Any]", value)))
    return _int(value)


def _bool(value: Any) -> bool:
    if not isinstance(value, np.bool_):
        raise TypeError
    return bool(cast("Any", value))


def _nothing(value: Any) -> Any:
    raise TypeError


EXACT: dict[str, set[type]] = {
    "int": {int},
    "float": {float},
    "Number": {float},
    "bool": {bool},
    "str": {str},
    "Dims": {int},
    "None": {type(None)},
}
"""Classes of values that need no conversion, by kind. `torch_calls` adds torch's."""


def refuse_other(function: str, name: str, value: object, only: object) -> None:
    """Refuse another value than ``only`` for an argument of torch that we lack.

    Args:
        function: its name in errors.
        name: the argument.
        value: what the user passed.
        only: the value that changes nothing, or the class of all such values.

    Raises:
        LaunchError: the value is another (X0829). The error points at the user's line.
    """
    fits = isinstance(value, only) if isinstance(only, type) else value is only
    if not fits:
        problem = f"`{function}` was given {name}={reprlib.repr(value)}"
        help_ = f"it takes only {only.__name__ if isinstance(only, type) else only}"
        raise at_caller(LaunchError(problem, "X0829", help_))


_KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "int": ("an int", _int),
    "float": ("a number", _float),
    "Number": ("a number", _float),
    "bool": ("a bool", _bool),
    "str": ("a string", _nothing),
    "Dims": ("an int, or ints", _dims),
    "None": ("None", _nothing),
}


def plain(name: str, kind: str, value: Any) -> Any:
    """Return the value of an option as rules take it.

    Args:
        name: the name of the option in errors.
        kind: the annotation without ``| None``.
        value: what the user passed. The caller handles None where it is allowed.

    Raises:
        LaunchError: the value is of another kind (X0829). The error points at the
            user's line.
    """
    if type(value) in EXACT[kind]:
        return value
    wanted, convert = _KINDS[kind]
    try:
        return convert(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        problem = f"`{name}` is {reprlib.repr(value)}, but must be {wanted}"
        help_ = f"pass {wanted}" if kind != "None" else "`reduction` says it"
        error = LaunchError(problem, "X0829", help_)
    raise at_caller(error)

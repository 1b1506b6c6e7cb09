"""Compile-time values: their conversion, and when two of them are the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from xetl.errors import LaunchError, a_kind
from xetl.language.dtypes import DType
from xetl.language.signature import Record, fields_of, leaves
from xetl.runtime.usm import states

_NUMBERS = {int, float, bool, str, type(None), DType}
_KNOWN: dict[Hashable, object] = {}
"""For each set of equal tuples the first one: native code compares them by identity.

Only tuples of numbers, strings, None and dtypes are kept, so nothing large is.
"""


def _record_of(value: object, constant: Callable[[Any], object]) -> Record | None:
    """Return a named tuple or dataclass as a record of constants; None for others."""
    fields = fields_of(value)
    if fields is None:
        return None
    items = [constant(each) for each in fields.values()]
    return Record.make(type(value).__name__, list(fields), items)


def constant_of(name: str, value: Any) -> object:
    """Convert a value to the compile-time value that kernels are compiled for.

    Raises:
        LaunchError: the value is an array or not hashable.
    """
    if isinstance(value, tuple) or not _is_hashable(value):
        record = _record_of(cast("object", value), partial(constant_of, name))
        if record is not None:
            return _first_of(record)
    if isinstance(value, list | tuple):
        made = tuple(constant_of(name, each) for each in cast("Sequence[Any]", value))
        return _first_of(made)
    if isinstance(value, np.generic):
        return cast("Any", value).item()
    # Tensors are hashable, but their elements may change.
    if not _is_hashable(value) or states(value, "__dlpack__"):
        raise LaunchError(
            f"`{name}` is a compile-time parameter, but {a_kind(value)} cannot be one",
            code="X0805",
            help="compile-time values must be hashable: numbers, strings, tuples, "
            "functions, dtypes, maps",
        )
    return value


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def typed(value: object) -> Hashable:
    """Return a key in which 1, 1.0, True and -0.0, 0.0 differ, but NaN equals NaN."""
    if isinstance(value, Record):
        return (value.form, *map(typed, value))
    if isinstance(value, tuple):
        return tuple(typed(each) for each in cast("tuple[object, ...]", value))
    if isinstance(value, float):
        return (float, value.hex())
    return (type(value), value)


def _first_of(made: tuple[object, ...] | Record) -> object:
    """Return the first of all equal tuples or records that were seen."""
    if not _is_of_numbers(made):
        return made
    return _KNOWN.setdefault(typed(made), made)


def _is_of_numbers(value: object) -> bool:
    return all(type(each) in _NUMBERS for each in leaves([value]))


def known_constant(value: object) -> object:
    """Convert a list or tuple of numbers to a constant; return others as they are."""
    return constant_of("", value) if _is_of_numbers(value) else value

"""Structures among the arguments of a call, taken apart."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, cast

from xetl.errors import LaunchError
from xetl.language.signature import TupleParam
from xetl.language.structures import Record, fields_of, items_by_path, leaves
from xetl.runtime.arrays import describe_if_array
from xetl.runtime.signature_text import Described

_MOST = 256
"""Leaves of a structure: more are data, which belongs into an array."""

Leaf = Callable[[str, Any, bool], None]
"""Takes what is in a structure: its name, the value, whether numbers are constants."""


def is_structure(name: str, value: object) -> bool:
    """Whether a value is taken apart: it has fields, or holds arrays.

    Lists and tuples of numbers alone are none: they are data, or constants.
    """
    if fields_of(value) is not None:
        return True
    if not isinstance(value, list | tuple):
        return False
    first = islice(leaves([cast("object", value)]), _MOST)
    return any(
        isinstance(each, Described) or describe_if_array(each, name) is not None
        for each in first
    )


def take_apart(name: str, value: object, leaf: Leaf) -> TupleParam:
    """Give all that a structure holds to ``leaf``, and say how it was put together.

    Raises:
        LaunchError: it holds too much.
    """
    if sum(1 for _ in islice(leaves([value]), _MOST + 1)) > _MOST:
        raise LaunchError(
            f"`{name}` holds more than the {_MOST} values that a kernel takes",
            code="X0805",
            help=f"pass an array: `np.asarray({name})`",
        )
    return _take_apart(name, value, leaf, is_constant=False)


def _take_apart(name: str, value: object, leaf: Leaf, is_constant: bool) -> TupleParam:
    fields = fields_of(value)
    is_constant = is_constant or fields is not None
    items: list[str | TupleParam] = []
    for path, item in (items_by_path(name, value) or {}).items():
        if items_by_path(path, item) is not None:
            items.append(_take_apart(path, item, leaf, is_constant))
        else:
            leaf(path, item, is_constant)
            items.append(path)
    if fields is None:
        return TupleParam(name, tuple(items))
    kind = value.kind if isinstance(value, Record) else type(value).__name__
    return TupleParam(name, tuple(items), (kind, *fields))


def constant_record(value: object, constant: Callable[[Any], object]) -> Record | None:
    """A compile-time named tuple or dataclass, its items made constants."""
    fields = fields_of(value)
    if fields is None:
        return None
    items = [constant(each) for each in fields.values()]
    return Record.make(type(value).__name__, list(fields), items)

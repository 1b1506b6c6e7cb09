"""Structures (tuples, dataclasses) among the arguments of a call, taken apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, cast

from xetl.errors import LaunchError
from xetl.language.signature import Record, TupleParam, fields_of, items_by_path, leaves
from xetl.runtime.arrays import describe_if_array
from xetl.runtime.parameters import Parameters
from xetl.runtime.signature_text import Described

_MOST = 256
"""The most leaves of a structure: larger ones are data, which belong into an array."""

Leaf = Callable[[str, Any, bool], None]
"""Receives each leaf: its name, its value, and whether a number is a constant."""


def is_structure(name: str, value: object) -> bool:
    """Whether a value is taken apart: it has fields, or holds arrays.

    Lists and tuples of only numbers are no structures: they are data, or constants.
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
    """Pass all leaves of a structure to ``leaf``; return how it is composed of them.

    Raises:
        LaunchError: the structure has too many leaves.
    """
    if sum(1 for _ in islice(leaves([value]), _MOST + 1)) > _MOST:
        problem = f"`{name}` holds more than the {_MOST} values that a kernel takes"
        raise LaunchError(problem, "X0805", f"pass an array: `np.asarray({name})`")
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


# Calls like an earlier one -----------------------------------------------------------


class Form(NamedTuple):
    """The form of a structure: two of the same form can be taken apart the same way.

    Attributes:
        kind: its class.
        names: the names of its fields; None: it has items instead.
        items: the form of each item, None for those that are no structures.
    """

    kind: type
    names: tuple[str, ...] | None
    items: tuple[Form | None, ...]

    def put(self, value: Any, found: list[Any]) -> bool:
        """Append the leaves of ``value``; return whether it has this form."""
        if type(value) is not self.kind:
            return False
        if self.names is not None:
            value = [getattr(value, name) for name in self.names]
        if len(value) != len(self.items):
            return False
        for form, item in zip(self.items, value):
            if form is None:
                found.append(item)
            elif not form.put(item, found):
                return False
        return True


def form_of(value: Any) -> Form | None:
    """Return the form of a structure; None for any other value."""
    items = items_by_path("", value)
    if items is None:
        return None
    fields = fields_of(value)
    inner = tuple(form_of(item) for item in items.values())
    return Form(type(value), None if fields is None else tuple(fields), inner)


def flat_entry(
    fast: Callable[..., Any],
    parameters: Parameters,
    tuples: Sequence[TupleParam],
    values: Sequence[Any],
    given: int,
) -> Callable[..., Any]:
    """Return a fast entry for positional calls like an earlier one with structures.

    Args:
        fast: the entry that takes their leaves (`xetl.backend.Executable.fast`).
    """
    names = {each.name for each in tuples}
    forms = [
        form_of(value) if parameter.name in names else None
        for parameter, value in zip(parameters.each, values)
    ]
    first = parameters.positional
    has_rest = parameters.has_rest
    rest = slice(first, max(given, first)) if has_rest else None
    tail = values[min(given, first) + (has_rest and given >= first) :]
    return partial(_run_flat, fast, forms, rest, tail)


def _run_flat(
    fast: Callable[..., Any],
    forms: Sequence[Form | None],
    rest: slice | None,
    tail: Sequence[Any],
    *call: Any,
) -> Any:
    grid, objects = call[:3], call[3:]
    if rest is not None and len(objects) >= rest.start:
        objects = (*objects[: rest.start], objects[rest])
    flat: list[Any] = []
    for form, value in zip(forms, (*objects, *tail)):
        if form is None:
            flat.append(value)
        elif not form.put(value, flat):
            return 1
    return fast(*grid, *flat)


def places_of(names: Sequence[str], parameters: Parameters) -> list[tuple[int, str]]:
    """Return index and name of arguments that are no leaves: ``Y``, or ``rest[1]``."""
    known = {each.name: i for i, each in enumerate(parameters.each) if not each.is_rest}
    for each in parameters.each:
        if each.is_rest:
            many = range(parameters.positional, parameters.positional + _MOST)
            known |= {f"{each.name}[{k}]": at for k, at in enumerate(many)}
    return [(known[name], name) for name in names if name in known]

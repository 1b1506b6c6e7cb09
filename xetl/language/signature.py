"""The signature that a kernel is specialised for, from the runtime to the front end.

Arguments may be structures: tuples, lists, named tuples, dataclasses. Arrays in them
are run-time arguments, each with a name such as ``weights[0]`` or ``layer.bias``.
Numbers in plain tuples and lists are run-time arguments as well. Numbers in named
tuples and dataclasses are known when compiling, as are functions, dtypes and the like.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from xetl.language.dtypes import DType
from xetl.records import record


@record(frozen=True)
class ArrayParam:
    """An array argument; its shape and strides are known at the launch only.

    ``unit_dim`` is the dimension whose stride is 1 (`xetl.runtime.arrays.unit_dim`),
    ``None`` if none is.  Two arrays that are the very same view carry the same
    ``alias``.  ``shape`` and ``strides`` are what files for programs without xetl must
    check: the numbers in the type that a text gives the array, else None.
    """

    name: str
    dtype: DType
    rank: int
    unit_dim: int | None
    alias: int | None = None
    shape: tuple[int | None, ...] = ()
    strides: tuple[int | None, ...] = ()

    @property
    def needed(self) -> list[tuple[str, int, int]]:
        """Return the sizes and strides that the code relies on: kind, dim and value."""
        strides = list(self.strides or [None] * self.rank)
        if self.unit_dim is not None:
            strides[self.unit_dim] = 1
        every = [("size", d, n) for d, n in enumerate(self.shape)]
        every += [("stride", d, n) for d, n in enumerate(strides)]
        return [(what, dim, n) for what, dim, n in every if n is not None]


@record(frozen=True)
class ScalarParam:
    """A number that is known at the launch only."""

    name: str
    kind: Literal["i64", "f64", "i1"]


@record(frozen=True)
class ConstParam:
    """A compile-time argument: constexpr, None, a function, a dtype or a map."""

    name: str
    value: object


RuntimeParam: TypeAlias = ArrayParam | ScalarParam
Param: TypeAlias = RuntimeParam | ConstParam


@record(frozen=True)
class TupleParam:
    """A parameter that stands for several: a tuple, a named tuple, a dataclass.

    ``items`` are the names of others, such as ``weights[0]``, and tuples within;
    ``form`` is the class and the names of the fields, if there are such.
    """

    name: str
    items: tuple[str | TupleParam, ...]
    form: tuple[str, ...] = ()

    def leaves(self) -> Iterator[str]:
        """Yield the names of all parameters that it stands for."""
        for item in self.items:
            if isinstance(item, str):
                yield item
            else:
                yield from item.leaves()


@record(frozen=True)
class Signature:
    """All parameters, in order; items of those in ``tuples`` are at their position."""

    params: tuple[Param, ...]
    tuples: tuple[TupleParam, ...] = ()

    @property
    def runtime(self) -> dict[int, RuntimeParam]:
        """The run-time arguments, by position among all."""
        every = enumerate(self.params)
        return {i: p for i, p in every if not isinstance(p, ConstParam)}

    @property
    def constants(self) -> dict[str, object]:
        """The compile-time arguments, by name."""
        return {p.name: p.value for p in self.params if isinstance(p, ConstParam)}


class Record(tuple[Any, ...]):
    """The fields of a named tuple or a dataclass: items with names.

    Attributes:
        names: of the items.
        kind: the name of the user's class.
    """

    names: tuple[str, ...]
    kind: str

    @staticmethod
    def make(kind: str, names: Sequence[str], items: Sequence[Any]) -> Record:
        """A record of a class called ``kind``."""
        found = Record(items)
        found.names, found.kind = tuple(names), kind
        return found

    def field(self, name: str) -> Any:
        """The item called ``name``."""
        return self[self.names.index(name)]

    @property
    def form(self) -> tuple[str, ...]:
        """The class and field names, which distinguish records with the same items."""
        return (self.kind, *self.names)


def fields_of(value: Any) -> dict[str, Any] | None:
    """The fields of a named tuple or of an instance of a dataclass; else None.

    Our own classes, such as dtypes and maps, are values, and so are arrays.
    """
    if isinstance(value, Record):
        return dict(zip(value.names, value))
    kind = cast("type[Any]", type(value))
    if isinstance(value, type) or kind.__module__.partition(".")[0] == "xetl":
        return None
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        names: tuple[str, ...] = cast("Any", kind)._fields
        return dict(zip(names, cast("tuple[Any, ...]", value)))
    if dataclasses.is_dataclass(kind) and not hasattr(kind, "__dlpack__"):
        owner = cast("object", value)
        return {f.name: getattr(owner, f.name) for f in dataclasses.fields(kind)}
    return None


def items_by_path(path: str, value: object) -> dict[str, Any] | None:
    """Return the items of a structure called ``path`` by name, or None for others."""
    fields = fields_of(value)
    if fields is not None:
        return {f"{path}.{name}": item for name, item in fields.items()}
    if isinstance(value, list | tuple):
        listed = cast("Sequence[Any]", value)
        return {f"{path}[{index}]": item for index, item in enumerate(listed)}
    return None


def leaves(values: Sequence[Any]) -> Iterator[Any]:
    """Yield all arguments, and in place of structures their items."""
    for value in values:
        items = items_by_path("", value)
        if items is None:
            yield value
        else:
            yield from leaves(list(items.values()))


def replaced(path: str, value: Any, new: Mapping[str, Any]) -> Any:
    """Return a value with the objects replaced that have a name in ``new``."""
    if path in new:
        return new[path]
    items = items_by_path(path, value)
    made = {n: replaced(n, item, new) for n, item in (items or {}).items()}
    if items is None or all(made[name] is items[name] for name in items):
        return cast("object", value)
    make, fields = cast("Any", type(value)), fields_of(value)
    if fields is None:
        return make(made.values())
    return make(**dict(zip(fields, made.values())))

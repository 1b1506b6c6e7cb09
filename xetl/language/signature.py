"""What a kernel was specialised for: the seam from the runtime to the front end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from xetl.language.dtypes import DType
from xetl.records import record


@record(frozen=True)
class ArrayParam:
    """An array argument; its shape and strides are known at the launch only.

    ``unit_dim`` is the dimension whose stride is 1 (the last one if several are),
    ``None`` if none is.  Two arrays that are the very same view carry the same
    ``alias``.
    """

    name: str
    dtype: DType
    rank: int
    unit_dim: int | None
    alias: int | None = None


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
        """The names of all that it stands for."""
        for item in self.items:
            if isinstance(item, str):
                yield item
            else:
                yield from item.leaves()


@record(frozen=True)
class Signature:
    """All parameters of a kernel, in its order.

    What stands in ``tuples`` has its items among ``params``, in its place.
    """

    params: tuple[ArrayParam | ScalarParam | ConstParam, ...]
    tuples: tuple[TupleParam, ...] = ()

    @property
    def constants(self) -> dict[str, object]:
        """The compile-time arguments, by name."""
        return {p.name: p.value for p in self.params if isinstance(p, ConstParam)}

"""The grid of a launch (the number of programs in each dimension), and subgroups."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import floor
from numbers import Real
from typing import Any, cast

from xetl.errors import LaunchError, a_kind, did_you_mean
from xetl.runtime.arrays import describe_if_array
from xetl.runtime.parameters import MISSING, Parameters

Grid = tuple[int, int, int]
GridFunction = Callable[[Any], object]
GridSpec = int | Sequence[int] | Callable[[Any], Any]
"""The types that a user may write in ``kernel[...]``."""

_FORMS = "a grid is an int, a tuple of up to 3 ints, or a function of the arguments"
_LARGEST = (1 << 31) - 1
_ONES = ((), (1, 1), (1,), ())
"""By the number of sizes of a grid: the ones that extend it to three sizes."""


class BoundArguments:
    """The argument of a grid function: arguments by name, ``m.BM`` or ``m["BM"]``."""

    def __init__(self, values: dict[str, Any]) -> None:
        """Take ``values``, in which ``__kernel__`` is the name of the kernel."""
        self.__dict__ = values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python itself looks for such, as for copies
            raise AttributeError(name)
        kernel = self.__dict__["__kernel__"]
        names = [each for each in self.__dict__ if each != "__kernel__"]
        raise LaunchError(
            f"the grid of `{kernel}` asks for `{name}`, which is no parameter of it",
            code="X0802",
            help=did_you_mean(name, names)
            or "its parameters are " + ", ".join(f"`{each}`" for each in names),
        )

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


def show_shapes(arguments: BoundArguments) -> bool:
    """Replace arrays without ``shape`` (DLPack, SYCL's memory) by views.

    Returns:
        Whether there were any.

    Raises:
        LaunchError: kernels cannot read arrays of the kind of one.
    """
    views = {
        name: describe_if_array(value, name)
        for name, value in vars(arguments).items()
        if not hasattr(value, "shape")
    }
    found = {name: view for name, view in views.items() if view is not None}
    vars(arguments).update(found)
    return bool(found)


class Binder:
    """Makes the `BoundArguments` of one kernel; it takes half a us in each launch."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self._names = parameters.names
        each = parameters.each
        self._defaults: dict[str, Any] = {"__kernel__": parameters.kernel}
        self._defaults.update((p.name, p.default) for p in each)
        # By the number of positional arguments: names that may and that must follow.
        given = range(parameters.positional + 1)
        self._may = [frozenset(p.name for p in each[n:]) for n in given]
        self._must = [
            frozenset(p.name for p in each[n:] if p.default is MISSING) for n in given
        ]

    def bind(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> BoundArguments:
        """Return the arguments of a call, options left out.

        Raises:
            LaunchError: an argument is missing, unknown, given twice or too many.
        """
        values = self._defaults.copy()
        given, named = len(args), keywords.keys()
        if given < len(self._may) and self._must[given] <= named <= self._may[given]:
            values.update(zip(self._names, args))
            values.update(keywords)
        else:  # there is something wrong
            values.update(zip(self._names, self._parameters.bind(args, keywords)))
        return BoundArguments(values)


def fixed(spec: object) -> Grid:
    """Convert a grid that is no function to three sizes, or raise a LaunchError."""
    if type(spec) is int and 0 < spec <= _LARGEST:
        return (spec, 1, 1)
    if type(spec) is tuple:  # the usual case, which must be fast
        given = cast("tuple[int, ...]", spec)
        for size in given:
            if type(size) is not int or not 0 < size <= _LARGEST:
                break
        else:
            if 1 <= len(given) <= 3:
                return cast("Grid", given + _ONES[len(given)])
    return _any_fixed(cast("object", spec))


def _any_fixed(spec: object) -> Grid:
    if isinstance(spec, tuple | list):
        sizes = list(cast("Sequence[object]", spec))
    else:
        sizes = [spec]
    if not 1 <= len(sizes) <= 3:
        problem = f"a grid of {len(sizes)} sizes was given"
        raise LaunchError(problem, code="X0802", help=_FORMS)
    found = [_size(size, cast("object", spec)) for size in sizes]
    return cast("Grid", tuple(found + [1] * (3 - len(found))))


def _size(value: object, spec: object) -> int:
    # Launchers are kept in a dict, for which 2.0 is 2: so it is one here as well.
    if isinstance(value, Real) and value == value // 1:
        value = floor(value)
    try:
        size = operator.index(cast("int", value))
    except TypeError:
        problem = f"the grid {spec!r} holds {a_kind(value)} instead of an int"
        raise LaunchError(problem, "X0802", _FORMS) from None
    if size <= 0:
        what = "an empty" if size == 0 else "a negative"
        help_ = "each size is the number of programs in that dimension, 1 or more"
        raise LaunchError(f"{what} grid was given: {spec!r}", "X0802", help_)
    if size > _LARGEST:
        help_ = f"a dimension has at most {_LARGEST} programs: let each do more"
        raise LaunchError(f"the grid {spec!r} is too large", "X0802", help_)
    return size


def checked_subgroups(name: str, subgroups: object) -> tuple[int, int] | None:
    """Return the rows and columns of subgroups of a workgroup, or None.

    Raises:
        LaunchError: ``subgroups`` is not None and not two positive ints.
    """
    if subgroups is None:
        return None
    sizes: list[Any] = []
    if isinstance(subgroups, Iterable):
        sizes += cast("Iterable[Any]", subgroups)
    if len(sizes) != 2 or any(type(s) is not int or s < 1 for s in sizes):
        help_ = "write subgroups=[rows, columns], two positive ints"
        raise LaunchError(f"`subgroups` of `{name}` is {subgroups!r}", "X0809", help_)
    return (sizes[0], sizes[1])

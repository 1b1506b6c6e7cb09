"""The grid of a launch: how many programs run in each of three dimensions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xetl.errors import LaunchError, did_you_mean

Grid = tuple[int, int, int]
GridSpec = int | Sequence[int] | Callable[[Any], Any]
"""What a user may write in ``kernel[...]``."""

_FORMS = "a grid is an int, a tuple of up to 3 ints, or a function of the arguments"
_LARGEST = (1 << 31) - 1


class BoundArguments:
    """What a grid function is given: the arguments of the call by name."""

    def __init__(self, kernel: str, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)
        self.__dict__["__kernel__"] = kernel

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python itself asks, for copies and the like
            raise AttributeError(name)
        kernel = self.__dict__["__kernel__"]
        names = [each for each in self.__dict__ if each != "__kernel__"]
        raise LaunchError(
            f"the grid of `{kernel}` asks for `{name}`, which is no parameter of it",
            code="X0802",
            help=did_you_mean(name, names)
            or "its parameters are " + ", ".join(f"`{each}`" for each in names),
        )


def resolve(spec: object, arguments: Callable[[], BoundArguments]) -> Grid:
    """Turn what the user wrote into three sizes.

    Args:
        spec: an int, up to three of them, or a function.
        arguments: makes what the function is given, if there is one.

    Raises:
        LaunchError: it is something else, or a size is not positive.
        Exception: whatever the function raises.
    """
    if callable(spec):
        return fixed(cast("Callable[[Any], object]", spec)(arguments()))
    return fixed(spec)


def fixed(spec: object) -> Grid:
    """As `resolve`, for a grid that is no function."""
    if isinstance(spec, tuple | list):
        sizes = list(cast("Sequence[object]", spec))
    else:
        sizes = [spec]
    if not 1 <= len(sizes) <= 3:
        raise LaunchError(
            f"a grid of {len(sizes)} sizes was given", code="X0802", help=_FORMS
        )
    found = [_size(size, cast("object", spec)) for size in sizes]
    return cast("Grid", tuple(found + [1] * (3 - len(found))))


def _size(value: object, spec: object) -> int:
    try:
        size = operator.index(cast("int", value))
    except TypeError:
        raise LaunchError(
            f"the grid {spec!r} holds a {type(value).__name__} instead of an int",
            code="X0802",
            help=_FORMS,
        ) from None
    if size <= 0:
        what = "an empty" if size == 0 else "a negative"
        raise LaunchError(
            f"{what} grid was given: {spec!r}",
            code="X0802",
            help="each size is the number of programs in that dimension, 1 or more",
        )
    if size > _LARGEST:
        raise LaunchError(f"the grid {spec!r} is too large", code="X0802")
    return size

"""Calls of kernels of texts that succeeded, and how the like are run at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute

from xetl.runtime.grid import Grid

_MOST = 8
_Array = tuple[int, tuple[int, ...], tuple[int, ...]]


class TextShortcut(NamedTuple):
    """A call that succeeded.

    Attributes:
        fast: the native entry.
        subgroups: what was given as such.
        state: the settings that held.
        arity: how many arguments there were.
        arrays: position, shape and strides (bytes) of each array.
        numbers: position, least value and limit of each narrow integer.
    """

    fast: Callable[..., int]
    subgroups: Grid | None
    state: object
    arity: int
    arrays: tuple[_Array, ...]
    numbers: tuple[tuple[int, int, int], ...]

    def run(self, grid: Grid, args: Sequence[Any]) -> bool:
        """Whether it ran the kernel."""
        if len(args) != self.arity:
            return False
        for place, shape, strides in self.arrays:
            array = args[place]
            if type(array) is not np.ndarray or array.shape != shape:
                return False
            if array.strides != strides:
                return False
        for place, low, high in self.numbers:
            number = args[place]
            if type(number) is not int or not low <= number < high:
                return False
        return self.fast(*grid, *args) == 0


def shortcut(
    fast: Callable[..., int],
    subgroups: Grid | None,
    state: object,
    types: Sequence[Attribute],
    args: Sequence[Any],
) -> TextShortcut:
    """The shortcut for calls like one with ``args``, which has succeeded."""
    arrays: list[_Array] = []
    numbers: list[tuple[int, int, int]] = []
    for place, (type_, given) in enumerate(zip(types, args)):
        if type(given) is np.ndarray:
            array = cast("np.ndarray[Any, Any]", given)
            arrays.append((place, array.shape, array.strides))
        elif isinstance(type_, IntegerType) and 1 < type_.bitwidth < 64:
            bits = type_.bitwidth
            numbers.append((place, -(1 << (bits - 1)), 1 << bits))
    return TextShortcut(
        fast, subgroups, state, len(args), tuple(arrays), tuple(numbers)
    )


def remember(
    known: tuple[TextShortcut, ...], new: TextShortcut
) -> tuple[TextShortcut, ...]:
    """Put ``new`` in front, without an equal one."""
    return (new, *(old for old in known if old != new))[:_MOST]

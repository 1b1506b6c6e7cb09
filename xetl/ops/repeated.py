"""What is left to do in calls of a function that are known to fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from xetl.ops.calls import Launch
from xetl.ops.rules import Shape

New: TypeAlias = "tuple[Shape, np.dtype[Any]]"
Taker: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]


class Repeated(NamedTuple):
    """How calls like an earlier one are done.

    Attributes:
        new: makes the result, of rank 1 at least.
        is_number: whether it has no dimensions.
        temporary: shape and dtype of what steps hand to one another.
        steps: launches, what takes their arrays from the arguments, numbers.
        numbers: which arguments are numbers that all kernels take.
    """

    new: Callable[[], Any]
    is_number: bool
    temporary: list[New]
    steps: list[tuple[Launch, Taker, tuple[float, ...]]]
    numbers: Sequence[int]

    def run(self, values: list[Any]) -> Any:
        """Do as the earlier call did, with other elements: nothing is left to check.

        Args:
            values: all arguments, ``out`` last; temporary arrays are put behind them.
        """
        new, is_number, temporary, steps, given = self
        numbers = [float(values[i]) for i in given] if given else ()
        made = values[-1]
        if made is None:
            made = values[-1] = new()
        for each in temporary:
            values.append(np.empty(*each))
        for launch, take, fixed in steps:
            launch.run(take(values), *fixed, *numbers)
        return made.reshape(()) if is_number else made


def again(
    made: list[New],
    steps: Sequence[tuple[Launch, Sequence[int | None], tuple[float, ...]]],
    arrays: Sequence[int],
    numbers: Sequence[int],
    count: int,
) -> Repeated:
    """How to repeat a call.

    Args:
        made: shape and dtype of its result and of what steps hand to one another.
        steps: launches, which of the arrays each takes (inputs, the result, temporary
            ones), numbers.
        arrays: which arguments are inputs.
        numbers: which are numbers.
        count: of all arguments but ``out``.
    """
    (shape, dtype), *temporary = made
    places = [*arrays, *range(count, count + len(made))]
    taken = [
        (launch, _taker([None if i is None else places[i] for i in where]), fixed)
        for launch, where, fixed in steps
    ]
    new = partial(np.empty, shape or (1,), dtype)
    return Repeated(new, not shape, temporary, taken, numbers)


def _taker(places: Sequence[int | None]) -> Taker:
    """What takes the items at these places, and None where there is none."""
    known = [each for each in places if each is not None]
    if len(known) == len(places) > 1:
        return itemgetter(*known)
    return lambda values: [None if i is None else values[i] for i in places]

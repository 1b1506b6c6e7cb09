"""Calls that torch is to record, like earlier ones that it did not record.

What all of them have in common is found once, when the first has been computed: where
their arrays stand, and all that torch's graph keeps but the arrays. Native code calls
what is made here in place of the function (`xetl.runtime.shortcuts`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from xetl.errors import XetlError
from xetl.ops.calling.repeated import Arguments, own
from xetl.runtime.call_site import at_caller
from xetl.runtime.tensors import is_tensor

if TYPE_CHECKING:
    from xetl.ops.calling.declare import Function

Again: TypeAlias = Callable[..., Any]
"""Takes the arguments of a call as they were given."""


class Completing(NamedTuple):
    """How the arguments of a call are put in order, ``out`` last.

    Attributes:
        complete: checks them.
        in_order: takes anything in place of them.
    """

    complete: Callable[[Sequence[Any], Mapping[str, Any]], list[Any]]
    in_order: Callable[[Sequence[Any], Mapping[str, Any]], list[Any]]


def picker(places: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """What gives the items at ``places`` of a sequence: `itemgetter`, of any number."""
    if len(places) > 1:
        return itemgetter(*places)
    first = places[0] if places else 0
    return itemgetter(slice(first, first + len(places)))


def again_of(
    declared: Function, below: Callable[..., Any], how: Completing, call: Arguments
) -> Again | None:
    """What computes calls like one, and has torch record them.

    Args:
        below: computes it.
        how: completes calls of ``below``.

    Returns:
        None where the general way is to do it.
    """
    found = _placed(declared, how, call)
    if found is None or declared.backward is None:
        return None
    values, places = found
    given, numbers = picker(places), declared.numbers
    declared.drop_arrays(values)

    def again(*args: Any, **kwargs: Any) -> Any:
        known = values
        if numbers:
            known = how.complete(args, kwargs)
            declared.drop_arrays(known)
        arrays = given((*args, *kwargs.values(), None))
        try:
            return declared.recorder((below, args, kwargs, known), *arrays)
        except XetlError as error:
            raise at_caller(error) from None

    return again


def again_by(
    declared: Function,
    inner: Callable[..., Any],
    arguments: Callable[..., Sequence[Any]],
    finish: Callable[[Any], Any],
    call: Arguments,
) -> Again | None:
    """What does calls like one of a function that torch knows as another one.

    Args:
        arguments: of it, by those of the function.
        finish: gives the result of the function by that of the other one.
    """
    found = _placed(declared, declared.completing, call)
    if found is None:
        return None
    values, places = found
    pairs = [(values[i], place) for i, place in zip(declared.arrays, places)]
    given = [(id(x), place) for x, place in pairs if x is not None]
    of_arrays = dict(given)
    if len(of_arrays) < len(given):
        return None  # nobody can tell which is which
    passed = [own(value) for value in arguments(*values[:-1])]
    known = [None if id(x) in of_arrays else x for x in passed]
    if any(map(is_tensor, known)):
        return None  # a view, say
    at = len(call[0]) + len(call[1]) + 1
    chosen = picker([of_arrays.get(id(x), at + i) for i, x in enumerate(passed)])

    def again(*args: Any, **kwargs: Any) -> Any:
        return finish(inner(*chosen((*args, *kwargs.values(), None, *known))))

    return again


def _placed(
    declared: Function, how: Completing, call: Arguments
) -> tuple[list[Any], list[int]] | None:
    """All arguments, and where each array is among those given, with None behind them.

    None where an array is not simply what was given, or cannot be recorded.
    """
    args, kwargs = call
    count = len(args)
    values = [own(value) for value in how.complete(args, kwargs)]
    named = dict(zip(kwargs, range(count, count + len(kwargs))))
    places = how.in_order(range(count), named)
    found = [-1 if places[i] is None else places[i] for i in declared.arrays]
    every = (*args, *kwargs.values(), None)
    for i, place in zip(declared.arrays, found):
        x = values[i]
        if x is not every[place] or not (x is None or is_tensor(x)):
            return None
    if declared.writes or values[-1] is not None:
        return None
    return values, found

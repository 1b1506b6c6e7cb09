"""Faster calls that torch records, if they are like an earlier call.

The first call finds what all of them have in common: the places of arrays among the
arguments, and the other arguments, which torch's graph keeps. Native code then calls a
function made here in place of the general one (`xetl.runtime.shortcuts`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from xetl.errors import XetlError
from xetl.ops.calling.repeated import Arguments, copy_if_list
from xetl.runtime.call_site import at_caller
from xetl.runtime.tensors import is_tensor

if TYPE_CHECKING:
    from xetl.ops.calling.declare import Function
    from xetl.ops.calling.facades import Facade

Repeat: TypeAlias = Callable[..., Any]
"""A function of the arguments of a call as the user passes them."""


class Completing(NamedTuple):
    """Two functions that put the arguments of a call in order, ``out`` last.

    Attributes:
        complete: also checks and converts the arguments.
        in_order: checks nothing, so it also takes indices in place of arguments.
    """

    complete: Callable[[Sequence[Any], Mapping[str, Any]], list[Any]]
    in_order: Callable[[Sequence[Any], Mapping[str, Any]], list[Any]]


def picker(places: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return `itemgetter` for any number of places: it always gives a sequence."""
    if len(places) > 1:
        return itemgetter(*places)
    first = places[0] if places else 0
    return itemgetter(slice(first, first + len(places)))


def again_of(
    declared: Function, below: Callable[..., Any], how: Completing, call: Arguments
) -> Repeat | None:
    """Make a function that computes calls like ``call`` and records them in torch.

    Args:
        declared: the function that torch records.
        below: computes a call without recording it.
        how: puts the arguments of ``below`` in order.
        call: the arguments of the first call.

    Returns:
        The function; None if such calls must go the general way.
    """
    found = _placed(declared, how, call)
    if found is None or declared.backward is None:
        return None
    values, places = found
    pick_arrays, numbers = picker(places), declared.numbers
    declared.drop_arrays(values)

    def repeat(*args: Any, **kwargs: Any) -> Any:
        kept = values
        if numbers:
            kept = how.complete(args, kwargs)
            declared.drop_arrays(kept)
        arrays = pick_arrays((*args, *kwargs.values(), None))
        try:
            return declared.recorder((below, args, kwargs, kept), *arrays)
        except XetlError as error:
            raise at_caller(error) from None

    return repeat


def again_by(declared: Facade, inner: Function, call: Arguments) -> Repeat | None:
    """Make a function for calls like ``call``, if torch records ``inner`` in its place.

    Args:
        declared: the function that the user calls.
        inner: the function that torch records.
        call: the arguments of the first call.

    Returns:
        The function; None if such calls must go the general way.
    """
    found = _placed(declared, declared.completing, call)
    if found is None:
        return None
    values, places = found
    pairs = [(values[i], place) for i, place in zip(declared.arrays, places)]
    given = [(id(x), place) for x, place in pairs if x is not None]
    of_arrays = dict(given)
    if len(of_arrays) < len(given):
        return None  # one array is passed twice: its places cannot be told apart
    passed = [copy_if_list(value) for value in declared.arguments(*values[:-1])]
    form = partial(declared.form, declared.ranks_of(values))
    known = [None if id(x) in of_arrays else x for x in passed]
    repeated = again_of(inner, inner.compute, inner.completing, (passed, {}))
    if repeated is None or any(map(is_tensor, known)):
        return None  # as for a tensor that was not passed, but is a view of one
    at = len(call[0]) + len(call[1]) + 1
    chosen = picker([of_arrays.get(id(x), at + i) for i, x in enumerate(passed)])

    def repeat(*args: Any, **kwargs: Any) -> Any:
        return form(repeated(*chosen((*args, *kwargs.values(), None, *known))))

    return repeat


def _placed(
    declared: Function, how: Completing, call: Arguments
) -> tuple[list[Any], list[int]] | None:
    """Return all arguments, and the index of each array among those of the call.

    An array that the call leaves out has index -1, which is that of a None behind the
    arguments. Return None if an array was converted, or if torch cannot record the
    call.
    """
    args, kwargs = call
    count = len(args)
    values = [copy_if_list(value) for value in how.complete(args, kwargs)]
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

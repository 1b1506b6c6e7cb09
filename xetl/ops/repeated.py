"""What is left to do in calls of a function that are known to fit.

Such calls differ from an earlier one in the elements of their arrays alone. So they
launch the same kernels, and the backend does that for all of them at once
(`xetl.backend.BackendBase.replay`), after a look at the arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeAlias, cast

import numpy as np

from xetl.backend import ArrayView, RecordedLaunch
from xetl.language.dtypes import DType
from xetl.ops.operands import Numbers, dtype_of
from xetl.ops.rules import Shape
from xetl.runtime.select_backend import choose_backend
from xetl.settings import launch_state

New: TypeAlias = "tuple[Shape, np.dtype[Any]]"

REPEATED: set[type] = {np.ndarray}
"""Classes of arrays whose calls are repeated; torch's tensors are added with torch."""

PLAIN: set[type] = {type(None), bool, int, float, str}
"""The types of options that are compared as they are."""

_MOST_KINDS = 1024
_MOST_LAYOUTS = 4
"""How many strides of arrays of the same shapes are remembered."""

REFUSED = object()
"""What `Repeated.run` gives if the call must be done as a first one."""


Arguments: TypeAlias = "tuple[Sequence[Any], Mapping[str, Any]]"
"""Of a call: by position, by name."""


class Repeated(NamedTuple):
    """How calls like an earlier one are done.

    Attributes:
        replay: launches the kernels, given operands and numbers.
        state: the settings that held.
        blocked: whether something is on that must see the call; None: nothing can be.
        inputs: which arguments are operands.
        new: makes a result each, where the caller gives none.
        temporary: shape and dtype of what kernels hand to one another.
        numbers: which arguments are numbers that all kernels take.
        gives: whether there is one result, or a tuple; None: there is none.
    """

    replay: Callable[..., int]
    state: object
    blocked: Callable[[], bool] | None
    inputs: Sequence[int]
    new: Sequence[Callable[[], Any]]
    temporary: Sequence[New]
    numbers: Sequence[int]
    gives: int

    def run(self, flat: Sequence[Any]) -> Any:
        """Do as the earlier call did; `REFUSED`: these arrays are not like those.

        Args:
            flat: all arguments, those by name last.
        """
        replay, state, blocked, inputs, new, temporary, numbers, gives = self
        if state != launch_state() or (blocked is not None and blocked()):
            return REFUSED
        given = [flat[i] for i in inputs]
        for make in new:
            given.append(make())
        made = given[len(given) - gives :]
        for each in temporary:
            given.append(np.empty(*each))
        for i in numbers:
            given.append(float(flat[i]))
        if replay(*given) != 0:
            return REFUSED
        return made[0] if gives == 1 else tuple(made) or None


class Calls:
    """The calls of a function that can be repeated, by all they depend on."""

    _any: ClassVar[bool] = False
    """Whether a call of any function has been made ready for repetition."""

    def __init__(self, numbers: Sequence[int]) -> None:
        """Begin without any.

        Args:
            numbers: which arguments are numbers that may differ from call to call.
        """
        self._numbers = numbers
        self._known: dict[Hashable, list[Repeated]] = {}

    def run(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Do as an earlier call did; `REFUSED`: there was none like this one."""
        flat = (*args, *kwargs.values()) if kwargs else args
        for known in self._known.get(self._key(flat, kwargs), ()):
            found = known.run(flat)
            if found is not REFUSED:
                return found
        return REFUSED

    def _key(self, flat: Sequence[Any], names: Iterable[str]) -> Hashable:
        """All that a call depends on but strides; None: it cannot be repeated."""
        key: list[Any] = [*names]
        for value in flat:
            kind = cast("Any", type(value))
            if kind in REPEATED:
                try:
                    key += kind, value.shape, value.dtype
                except RuntimeError:  # nested tensors have no shape
                    return None
            elif kind is float and self._numbers:
                key.append(kind)
            elif kind in PLAIN or _is_plain(value):
                key.append(value)
            else:
                return None
        return tuple(key)

    def record(self, given: Arguments) -> list[RecordedLaunch] | None:
        """Where the launches of a call are to be put; None: it is not repeated."""
        args, kwargs = given
        if self._numbers and kwargs:
            return None
        key = self._key((*args, *kwargs.values()), kwargs)
        if key is None:
            return None
        if len(self._known) >= _MOST_KINDS:
            self._known.clear()
        is_new = key not in self._known
        known = self._known.setdefault(key, [])
        if len(known) >= _MOST_LAYOUTS:
            known[:] = [each for each in known if each.state == launch_state()]
        if len(known) >= _MOST_LAYOUTS or (is_new and not Calls._any):
            return None  # the first time costs LLVM's start: many calls come once
        return []

    def remember(
        self,
        given: Arguments,
        launches: list[RecordedLaunch] | None,
        objects: Sequence[Any],
        arrays: Sequence[Numbers | None],
        gives: int,
        temporary: Sequence[Numbers] = (),
    ) -> None:
        """Keep how a call was done, if it can be repeated.

        Args:
            given: its arguments.
            launches: if they were recorded.
            objects: its inputs and results, as the user has them, or None.
            arrays: their memory, as NumPy's arrays.
            gives: how many of the last ones are results.
            temporary: what kernels handed to one another.
        """
        if not launches:
            return
        flat = (*given[0], *given[1].values())
        pairs = [(x, a) for x, a in zip(objects, arrays) if a is not None]
        inputs = _places(flat, [x for x, _ in pairs])
        known = self._known.setdefault(self._key(flat, given[1]), [])
        if inputs is None:  # which array is which cannot be told, nor another time
            known.append(Repeated(_refuse, launch_state(), None, (), (), (), (), 0))
            return
        Calls._any = True
        views = [_view(*each) for each in pairs] + [_view(x, x) for x in temporary]
        backend = choose_backend(values=[array for _, array in pairs])
        fresh = len(views) - len(inputs)
        replay = backend.replay(launches, views, fresh, len(self._numbers))
        is_numpy = all(type(x) is np.ndarray for x, _ in pairs)
        repeated = Repeated(
            replay or _refuse,
            launch_state(),
            None if is_numpy else sys.modules["xetl.ops.torch_calls"].has_modes,
            inputs,
            [_maker(each) for each, _ in pairs[len(inputs) :]],
            [(each.shape, each.dtype) for each in temporary],
            self._numbers,
            gives,
        )
        known.append(repeated)


def _places(flat: Sequence[Any], operands: Sequence[Any]) -> list[int] | None:
    """Which arguments the operands are, those first that are any.

    What is given twice is as many operands: the replay then asks for one array again,
    so that it does not matter which of them is which.

    Args:
        flat: the arguments of a call.
        operands: objects among them, and then new ones.

    Returns:
        One for each that is an argument; None: it cannot be told.
    """
    places: list[int] = []
    for each in operands:
        where = [i for i, x in enumerate(flat) if x is each and i not in places]
        places += where[:1]
    given = operands[: len(places)]
    is_told = all(flat[i] is x for i, x in zip(places, given))
    uses = sum(1 for x in flat if any(x is each for each in given))
    return places if is_told and uses == len(places) else None


def _is_plain(value: object) -> bool:
    if type(value) is tuple:
        return all(type(each) in PLAIN for each in cast("tuple[object, ...]", value))
    return isinstance(value, np.dtype | DType)


def _refuse(*_: Any) -> int:
    return 1


def _maker(made: Any) -> Callable[[], Any]:
    if type(made) is np.ndarray:
        return partial(np.empty, made.shape, made.dtype)
    torch = sys.modules["torch"]
    shape, strides = tuple(made.shape), made.stride()  # the quickest of torch's ways:
    return partial(torch.empty_strided, shape, strides, dtype=made.dtype, device="cpu")


def _view(given: Any, seen: Numbers) -> ArrayView:
    """An operand as the user has it."""
    dtype = dtype_of(seen, "operand")
    if type(given) is np.ndarray:
        strides = tuple(each // dtype.itemsize for each in given.strides)
    else:
        strides = tuple(given.stride())
    address = seen.__array_interface__["data"][0]
    return ArrayView(address, dtype, tuple(given.shape), strides, False, given)

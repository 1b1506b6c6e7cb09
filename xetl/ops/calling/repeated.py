"""Calls of a function that can be repeated by native code.

Such calls differ from an earlier one in the elements of their arrays alone. So they
launch the same kernels, and the backend does that for all of them at once
(`xetl.backend.BackendBase.replay`), after a look at the arrays. What is known of
earlier calls is kept as for launches of a kernel (`xetl.runtime.shortcuts`).

Functions whose calls native code answers if they are like earlier ones.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial, update_wrapper
from types import MethodType
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from xetl.backend import ArrayView, RecordedCall, RecordedLaunch
from xetl.language.dtypes import DType
from xetl.ops.calling.operands import Numbers, dtype_of, order_of
from xetl.ops.calling.recycling import LARGE, new_array, new_tensor
from xetl.prepacked import Prepacked
from xetl.runtime.native_calls import NativelyCalled, look_around, may_be_native, native
from xetl.runtime.placement import choose_backend
from xetl.runtime.shortcuts import Shortcut, Shortcuts, answer_calls, shapes_key
from xetl.settings import launch_state

REPEATED: set[type] = {np.ndarray}
"""Classes of arrays whose calls are repeated; torch's tensors are added with torch."""

PLAIN: set[type] = {type(None), bool, int, float, str, DType}
"""The types of options that are compared as they are."""

SEQUENCES: set[type] = {tuple, list}
"""Those of options; torch's sizes are added with torch."""

_MOST = 256
"""Earlier calls of a function."""

_MOST_OF_PLAN = 64
"""Recorded calls of one plan, which differ in settings, classes and forms."""

Arguments: TypeAlias = "tuple[Sequence[Any], Mapping[str, Any]]"
"""Of a call: by position, by name."""


class Recording(NamedTuple):
    """A call, and what it has launched.

    Attributes:
        launches: if they were recorded.
        objects: its inputs and results, as the user has them, or None.
        arrays: their memory, as NumPy's arrays.
        gives: how many of the last ones are results.
        temporary: what kernels handed to one another.
        numbers: which arguments, by place or by name, are the last numbers of all
            launches.
    """

    given: Arguments
    launches: list[RecordedLaunch] | None
    objects: Sequence[Any]
    arrays: Sequence[Numbers | None]
    gives: int
    temporary: Sequence[Numbers] = ()
    numbers: Sequence[str | int] = ()


class Recorder:
    """Which calls of one plan are recorded: the second, or the first.

    The first is if native code is at hand; else it costs the start of LLVM, and many
    calls come once.
    """

    def __init__(self) -> None:
        self._was_called = False
        self._left = _MOST_OF_PLAN

    def begin(self, given: Arguments) -> list[RecordedLaunch] | None:
        """Where the launches of a call are to be put; None: it is not recorded."""
        may = self._was_called or native() is not None
        self._was_called = True
        if not self._left or not may or not all(map(_is_known, _flat(given))):
            return None
        return []

    def end(self, public: NativeFunction, call: Recording) -> bool:
        """Keep how a call was done; whether it can be repeated."""
        if not call.launches:
            return False
        found = _recorded(call, call.launches)
        if found is None:
            self._left -= 1
            return False
        seen = [array for array in call.arrays if array is not None]
        fast = choose_backend(values=seen).replay(found)
        self._left = self._left - 1 if fast else 0
        if not fast:
            return False
        args, kwargs = call.given
        key, names = shapes_key(_flat(call.given), REPEATED), tuple(kwargs)
        keywords, rest = dict.fromkeys(names), (None,) * len(names)
        state = launch_state()
        form = fast, len(args), keywords, names, rest, state
        new = Shortcut(*form, None, key=key, recorded=public.recorded_like(call.given))
        public.known.put(new, _MOST)
        for each in _flat(call.given):
            if isinstance(each, Prepacked):  # with it goes what is packed
                weakref.finalize(each, public.known.forget, new).atexit = False
        look_around()
        return True


def _flat(given: Arguments) -> list[Any]:
    return [*given[0], *given[1].values()]


def _is_known(value: object) -> bool:
    """Whether native code can tell it from others."""
    kind = cast("Any", type(value))
    if kind in SEQUENCES:
        return all(type(each) in PLAIN for each in cast("tuple[object, ...]", value))
    if type(value) is Prepacked:
        return type(value.array) in REPEATED
    return kind in PLAIN or kind in REPEATED or isinstance(value, np.dtype)


def _recorded(
    call: Recording, launches: Sequence[RecordedLaunch]
) -> RecordedCall | None:
    """What a backend needs to repeat a call; None: which array is which is not told."""
    (args, kwargs), flat = call.given, _flat(call.given)
    arguments = list(map(own, flat))
    made: list[tuple[ArrayView, Callable[..., Any], tuple[Any, ...]]] = []
    places: list[int] = []
    inputs = len(call.objects) - call.gives
    for i, (each, array) in enumerate(zip(call.objects, call.arrays)):
        if each is None or array is None:
            continue
        same = [i for i, x in enumerate(flat) if x is each]
        where = [i for i in same if i not in places] or same  # one may be two operands
        if where:
            arguments[where[0]] = _view(each, array)
        elif i < inputs:
            return None  # it was drawn for this call: a seed
        else:
            where = [len(flat) + len(made)]
            made.append((_view(each, array), *_maker(each)))
        places += where[:1]
    results = places[len(places) - call.gives :]
    made += [(_view(each, each), *_maker(each)) for each in call.temporary]
    if any(type(each) in REPEATED for each in arguments):
        return None
    order = [*range(len(args)), *kwargs]
    wanted = [order.index(i) if i in order else None for i in call.numbers]
    numbered = [None if i is None or type(flat[i]) is not float else i for i in wanted]
    return RecordedCall(launches, arguments, numbered, made, results)


def own(value: Any) -> Any:
    """The value, or a copy of a list, which may change."""
    return copy(value) if type(cast("object", value)) is list else value


def _maker(made: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function and its arguments that make an array like this one."""
    if type(made) is np.ndarray:
        kind = made.shape, made.dtype
        order = order_of(made.shape, made.strides)
        if order is not None:
            return new_array, (*kind, order)
        return (np.empty if made.nbytes < LARGE else new_array), kind
    torch = sys.modules["torch"]
    place = tuple(made.shape), made.stride()
    if made.nbytes >= LARGE:
        return new_tensor, (*place, made.dtype)
    quickest = getattr(torch._C._dynamo.guards, "_empty_strided_cpu", None)
    if quickest is not None:  # what code of torch.compile calls
        return quickest, (*place, made.dtype)
    return partial(torch.empty_strided, dtype=made.dtype, device="cpu"), place


def _view(given: Any, seen: Numbers) -> ArrayView:
    """An operand as the user has it."""
    dtype = dtype_of(seen, "operand")
    array: Any = given.array if type(given) is Prepacked else given
    if type(array) is np.ndarray:
        strides = tuple(each // dtype.itemsize for each in array.strides)
    else:
        strides = tuple(array.stride())
    address = seen.__array_interface__["data"][0]
    return ArrayView(address, dtype, tuple(given.shape), strides, False, given)


class NativeFunction(NativelyCalled):
    """A function; name, signature and documentation are those of another one.

    It is pickled by name, bound to objects and shown by ``help`` as functions are.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        known: Shortcuts,
        shown: Callable[..., Any] | None = None,
        recorded_like: Callable[[Arguments], Any] | None = None,
    ) -> None:
        """Take a function.

        Args:
            function: what does calls that are like no earlier one.
            known: earlier calls.
            shown: whose name and signature it has; None: those of ``function``.
            recorded_like: of a call: a function that does calls like it that torch is
                to record, or None; None: ``function`` does them.
        """
        update_wrapper(cast("Callable[..., Any]", self), shown or function)
        self._function, self.known = function, known
        self._records = recorded_like is not None
        self.recorded_like = recorded_like or _generally
        self._table: object = None
        self.be_native()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self._function(*args, **kwargs)

    def __get__(self, instance: object, owner: object = None) -> Any:
        """The function, or with ``instance`` as its first argument."""
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str:
        return cast("Any", self).__qualname__

    def __repr__(self) -> str:
        return f"<function {cast('Any', self).__qualname__} at {id(self):#x}>"

    def be_native(self) -> None:
        """Let native code answer calls, once there is such."""
        if self._table is None:
            own = self.known, self._function
            self._table = answer_calls(self, *own, records=self._records)


may_be_native(NativeFunction)


def _generally(_: Arguments) -> Any:
    """Nothing but the function itself does calls that torch is to record."""


def remember(
    recorder: Recorder, call: Recording, natives: Sequence[NativeFunction]
) -> None:
    """Let native code do what is like a call, if it can.

    Args:
        recorder: of the plan of the call.
        natives: the functions that are called so, the public one first; they share
            what is known.
    """
    if recorder.end(natives[0], call):
        for each in natives:
            each.be_native()

"""Calls of a function that native code repeats.

Such calls differ from an earlier one only in the elements of their arrays. So they
launch the same kernels: native code of the backend checks the arrays and makes all
launches (`xetl.backend.BackendBase.replay`). Records of earlier calls are kept as for
launches of a kernel (`xetl.runtime.shortcuts`).
"""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from functools import partial, update_wrapper
from types import MethodType
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from xetl.backend import ArrayView, RecordedCall, RecordedLaunch
from xetl.language.dtypes import DType
from xetl.ops.calling.operands import Numbers, dtype_of
from xetl.ops.calling.recycling import LARGE, new_array, new_tensor
from xetl.prepacked import Prepacked
from xetl.runtime.native_calls import NativelyCalled, look_around, may_be_native, native
from xetl.runtime.placement import choose_backend
from xetl.runtime.shortcuts import Shortcut, Shortcuts, answer_calls, shapes_key
from xetl.settings import launch_state

REPEATED: set[type] = {np.ndarray}
"""Classes of arrays whose calls are repeated; torch's tensors are added with torch."""

PLAIN: set[type] = {type(None), bool, int, float, str, DType, type}
"""Classes of options that native code compares; ``np.float32`` is of class `type`."""

SEQUENCES: set[type] = {tuple, list}
"""Classes of options that are sequences; torch's sizes are added with torch."""

_MOST = 256
"""The number of earlier calls that are kept for a function."""

_MOST_OF_PLAN = 64
"""The number of recorded calls of one plan. They differ in settings, in classes of
arguments and in the form of the call."""

Arguments: TypeAlias = "tuple[Sequence[Any], Mapping[str, Any]]"
"""The arguments of a call by position, and by name."""


class Recording(NamedTuple):
    """A call, and its launches.

    Attributes:
        given: the arguments of the call.
        launches: None if they were not recorded.
        objects: inputs and results as the user has them; None: an input was left out.
        arrays: NumPy arrays over the memory of ``objects``.
        gives: the number of results, which are the last of ``objects``.
        temporary: arrays that one launch writes and a later one reads.
        numbers: the arguments, by index or by name, that are the last numbers of all
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
    """Decides which calls of one plan are recorded.

    Of each form, these are the calls number 1, 2, 4, 8 and so on that come here: if
    calls of other shapes replace a record again and again, it does not pay.

    Attributes:
        is_eager: whether the first call is recorded. If native code is not loaded yet,
            recording would start LLVM, and it is not. Neither is it if the function has
            many plans: shapes such as those of a growing sequence often come only once.
    """

    def __init__(self) -> None:
        self.is_eager = True
        self._calls = Counter[Hashable]()
        self._left = _MOST_OF_PLAN

    def begin(self, given: Arguments) -> list[RecordedLaunch] | None:
        """Return a list for the launches of a call; None: it is not recorded."""
        if not self._left:
            return None
        flat = _flat(given)
        form = *map(type, flat), *given[1], str(launch_state())
        return [] if self._is_due(form) and all(map(_is_known, flat)) else None

    def _is_due(self, form: Hashable) -> bool:
        self._calls[form] += 1
        count = self._calls[form]
        if count == 1:
            return self.is_eager and native() is not None
        return count & (count - 1) == 0

    def end(self, public: NativeFunction, call: Recording) -> bool:
        """Keep a recorded call for native code. Return whether it can be repeated."""
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
            if isinstance(each, Prepacked):  # the packed elements die with it
                weakref.finalize(each, public.known.forget, new).atexit = False
        look_around()
        return True


def _flat(given: Arguments) -> list[Any]:
    return [*given[0], *given[1].values()]


def _is_known(value: object) -> bool:
    """Whether native code can compare a value with those of earlier calls."""
    kind = cast("Any", type(value))
    if kind in SEQUENCES:
        return all(type(each) in PLAIN for each in cast("tuple[object, ...]", value))
    if type(value) is Prepacked:
        return type(value.array) in REPEATED
    return kind in PLAIN or kind in REPEATED or isinstance(value, np.dtype)


def _recorded(
    call: Recording, launches: Sequence[RecordedLaunch]
) -> RecordedCall | None:
    """Return what repeats a call; None if arrays of kernels match no arguments."""
    (args, kwargs), flat = call.given, _flat(call.given)
    arguments = list(map(copy_if_list, flat))
    made: list[tuple[ArrayView, Callable[..., Any], tuple[Any, ...]]] = []
    places: list[int] = []
    inputs = len(call.objects) - call.gives
    for i, (each, array) in enumerate(zip(call.objects, call.arrays)):
        if each is None or array is None:
            continue
        same = [i for i, x in enumerate(flat) if x is each]
        # An array may be passed for two operands.
        where = [i for i in same if i not in places] or same
        if where:
            arguments[where[0]] = _view(each, array)
        elif i < inputs:
            return None  # made for this call, such as a random seed
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


def copy_if_list(value: Any) -> Any:
    """Return the value, or a copy of a list, because the user may change the list."""
    return copy(value) if type(cast("object", value)) is list else value


def _maker(made: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a function, and its arguments, that make an array like ``made``."""
    if type(made) is np.ndarray:
        kind = made.shape, made.dtype
        # Unlike `order_of`: dimensions of one element keep their strides, too.
        each = enumerate(zip(made.shape, made.strides))
        places = [(-stride, n == 1, d) for d, (n, stride) in each]
        order = tuple(d for *_, d in sorted(places))
        if order != tuple(range(made.ndim)):
            return new_array, (*kind, order)
        return (np.empty if made.nbytes < LARGE else new_array), kind
    torch = sys.modules["torch"]
    place = tuple(made.shape), made.stride()
    if made.nbytes >= LARGE:
        return new_tensor, (*place, made.dtype)
    quickest = getattr(torch._C._dynamo.guards, "_empty_strided_cpu", None)
    if quickest is not None:  # code that torch.compile generates calls it, too
        return quickest, (*place, made.dtype)
    return partial(torch.empty_strided, dtype=made.dtype, device="cpu"), place


def _view(given: Any, seen: Numbers) -> ArrayView:
    """Return the view of an operand as the user passed it."""
    dtype = dtype_of(seen, "operand")
    array: Any = given.array if type(given) is Prepacked else given
    if type(array) is np.ndarray:
        strides = tuple(each // dtype.itemsize for each in array.strides)
    else:
        strides = tuple(array.stride())
    address = seen.__array_interface__["data"][0]
    return ArrayView(address, dtype, tuple(given.shape), strides, False, given)


class NativeFunction(NativelyCalled):
    """A function whose calls native code answers if they are like earlier ones.

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
            function: computes calls that are like no earlier one.
            known: the records of earlier calls.
            shown: the function whose name, signature and documentation are shown;
                None: ``function``.
            recorded_like: takes a call and returns a function for calls like it that
                torch records, or None. None: ``function`` computes such calls.
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
        """Return the function, or a method bound to ``instance``."""
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str:
        return cast("Any", self).__qualname__

    def __repr__(self) -> str:
        return f"<function {cast('Any', self).__qualname__} at {id(self):#x}>"

    def be_native(self) -> None:
        """Let native code answer calls, if it is loaded."""
        if self._table is None:
            parts = self.known, self._function
            self._table = answer_calls(self, *parts, records=self._records)


may_be_native(NativeFunction)


def _generally(_: Arguments) -> Any:
    """Return None: no faster way exists for calls that torch records."""


def remember(
    recorder: Recorder, call: Recording, natives: Sequence[NativeFunction]
) -> None:
    """Let native code answer calls like this one, if it can.

    ``natives`` are the functions that take such calls, the public one first. They share
    the records of earlier calls.
    """
    if recorder.end(natives[0], call):
        for each in natives:
            each.be_native()

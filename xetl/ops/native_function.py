"""Functions whose calls native code answers if they are like earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from types import MethodType
from typing import Any, cast

from xetl.ops.repeated import Recorder, Recording
from xetl.runtime.native_calls import NativelyCalled, may_be_native
from xetl.runtime.shortcuts import Shortcuts, answer_calls


class NativeFunction(NativelyCalled):
    """A function; name, signature and documentation are those of another one.

    It is pickled by name, bound to objects and shown by ``help`` as functions are.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        known: Shortcuts,
        shown: Callable[..., Any] | None = None,
    ) -> None:
        """Take a function.

        Args:
            function: what does calls that are like no earlier one.
            known: earlier calls.
            shown: whose name and signature it has; None: those of ``function``.
        """
        update_wrapper(cast("Callable[..., Any]", self), shown or function)
        self._function = function
        self.known = known
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
            self._table = answer_calls(self, self.known, self._function)


may_be_native(NativeFunction)


def remember(
    recorder: Recorder, call: Recording, natives: Sequence[NativeFunction]
) -> None:
    """Let native code do what is like a call, if it can.

    Args:
        recorder: of the plan of the call.
        call: what was launched.
        natives: the functions that are called so; they share what is known.
    """
    if recorder.end(natives[0].known, call):
        for each in natives:
            each.be_native()

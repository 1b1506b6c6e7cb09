"""A constant array, and what backends have made of it to multiply by it faster.

It stands for its array wherever a kernel takes one. A backend that rearranges an
operand before it multiplies keeps the rearranged copy here, for later launches; others
see nothing but the array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from xetl.backend import Executable
from xetl.locks import ForkSafeLock


def fast_entry(
    executable: Executable, values: Sequence[object]
) -> Callable[..., int] | None:
    """The shortcut for calls with values of such kinds, if there is one."""
    if any(isinstance(value, Prepacked) for value in values):
        return executable.fast_prepacked
    return executable.fast


class Prepacked:
    """An array whose elements do not change any more; a copy keeps only the array.

    Attributes:
        array: what the user gave.
        kept: what backends keep, by executable.
        lock: to be held where something is added.
    """

    def __init__(self, array: object) -> None:
        self.array = array
        self.kept: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self.lock = ForkSafeLock()

    def __repr__(self) -> str:
        return f"<prepacked {self.array!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Prepacked, (self.array,)

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the array."""
        array: Any = self.array
        return tuple(array.shape)

    @property
    def ndim(self) -> int:
        """Its number of dimensions."""
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        """That of the array."""
        array: Any = self.array
        return array.dtype

    def over(self, array: object) -> Prepacked:
        """The same for a view of its whole array, such as its transpose."""
        view = Prepacked(array)
        view.kept, view.lock = self.kept, self.lock
        return view

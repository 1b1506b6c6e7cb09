"""Constant arrays with packed copies for faster products.

Kernels take a prepacked array in place of the array. A backend that packs an operand
before it multiplies keeps the packed copy here, for later launches. Other backends use
the array.
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
    """Return the native entry for calls with values of these kinds, or None."""
    if any(isinstance(value, Prepacked) for value in values):
        return executable.fast_prepacked
    return executable.fast


class Prepacked:
    """An array whose elements do not change any more. Pickling keeps only the array.

    Attributes:
        array: the user's array.
        kept: the packed copies of backends, by executable.
        lock: hold it while adding to ``kept``.
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
        """The shape of the array."""
        array: Any = self.array
        return tuple(array.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions of the array."""
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        """The dtype of the array."""
        array: Any = self.array
        return array.dtype

    def over(self, array: object) -> Prepacked:
        """Return a view, such as the transpose, with the same packed copies."""
        view = Prepacked(array)
        view.kept, view.lock = self.kept, self.lock
        return view

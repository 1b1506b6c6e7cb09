"""Graph walks without recursion, which long programs would exhaust."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, Self, TypeVar

T = TypeVar("T", bound=Hashable)


class Worklist(Generic[T]):
    """A stack whose iteration gives each item once, also those added meanwhile.

    Attributes:
        seen: the items it has given.

    >>> numbers = Worklist([12])
    >>> for each in numbers:
    ...     numbers += [] if each % 2 else [each // 2]
    >>> sorted(numbers.seen)
    [3, 6, 12]
    """

    def __init__(self, first: Iterable[T]) -> None:
        self.seen = set[T]()
        self._waiting = list(first)

    def __iadd__(self, more: Iterable[T]) -> Self:
        self._waiting += more
        return self

    def __iter__(self) -> Iterator[T]:
        while self._waiting:
            each = self._waiting.pop()
            if each not in self.seen:
                self.seen.add(each)
                yield each

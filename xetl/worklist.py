"""Graph walks without recursion, which long programs would exhaust."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator
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


def sources_first(
    root: T, sources: Callable[[T], Iterable[T]], known: Container[T] = ()
) -> Iterator[T]:
    """Yield what an item depends on, the last source first, and then the item.

    Args:
        sources: returns what an item depends on; called once for each item.
        known: items that are not to be given; it may grow meanwhile.

    >>> list(sources_first(12, lambda number: [] if number % 2 else [3, number // 2]))
    [3, 6, 12]
    """
    begun, waiting = set[T](), [(root, False)]
    while waiting:
        each, is_ready = waiting.pop()
        if is_ready:
            yield each
        elif each not in begun and each not in known:
            begun.add(each)
            waiting.append((each, True))
            waiting += [(source, False) for source in sources(each)]

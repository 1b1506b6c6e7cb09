"""The subgroups of one program: they take turns, from one barrier to the next.

Each is a thread, but only one runs at a time and in a fixed order, so a result does
not depend on chance.
"""

from __future__ import annotations

import contextvars
import threading
from collections import Counter
from collections.abc import Callable, Sequence

from xetl.errors import InternalError


class _Stopped(BaseException):
    """Ends a subgroup because another one failed."""


class Team:
    """Runs the subgroups of a program."""

    def __init__(self, count: int) -> None:
        self._turns = [threading.Semaphore(0) for _ in range(count)]
        self._back = threading.Semaphore(0)
        self._failure: BaseException | None = None
        self._running = set(range(count))
        self._barriers = [0] * count
        self._arrivals: Counter[int] = Counter()
        self._waits: Counter[tuple[int, int]] = Counter()
        self._progress = 0

    def run(self, subgroups: Sequence[Callable[[], None]]) -> None:
        """Run all of them to their end.

        Raises:
            InternalError: they wait for one another and nobody can go on.
        """
        threads = [
            threading.Thread(
                target=contextvars.copy_context().run, args=(self._work, number, body)
            )
            for number, body in enumerate(subgroups)
        ]
        for thread in threads:
            thread.start()
        while self._running:
            before = self._progress
            for number in sorted(self._running):
                self._turns[number].release()
                self._back.acquire()
            if self._progress == before and self._failure is None:
                self._failure = InternalError("the subgroups wait for one another")
        for thread in threads:
            thread.join()
        if self._failure is not None:
            raise self._failure

    def _work(self, number: int, body: Callable[[], None]) -> None:
        self._turns[number].acquire()
        try:
            if self._failure is None:
                body()
        except _Stopped:
            pass
        except BaseException as error:
            self._failure = error
        self._progress += 1
        self._running.discard(number)
        self._back.release()

    def _wait_until(self, number: int, holds: Callable[[], bool]) -> None:
        while not holds():
            self._back.release()
            self._turns[number].acquire()
            if self._failure is not None:
                raise _Stopped
        self._progress += 1

    # What a subgroup calls ----------------------------------------------------------

    def barrier(self, number: int) -> None:
        """Wait until all subgroups that still run have come as far."""
        self._barriers[number] += 1
        self._progress += 1
        mine = self._barriers[number]
        self._wait_until(
            number, lambda: all(self._barriers[i] >= mine for i in self._running)
        )

    def arrive(self, number: int, barrier: int, participants: int) -> None:
        """Say at a named barrier that this subgroup is there."""
        self._arrivals[barrier] += 1
        self._progress += 1

    def wait(self, number: int, barrier: int, participants: int) -> None:
        """Wait until a named barrier's participants have arrived, once more."""
        self._waits[barrier, number] += 1
        wanted = self._waits[barrier, number] * participants
        self._wait_until(number, lambda: self._arrivals[barrier] >= wanted)

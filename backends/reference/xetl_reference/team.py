"""The subgroups of one program: they take turns, from one barrier to the next.

Each is a thread, but only one runs at a time and in a fixed order, so a result does
not depend on chance.  One that has to wait wakes the next that can run; when there is
none, all stand at one barrier and go on, or the kernel is wrong (divergence.py).
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xetl.errors import XetlError
from xetl_reference import divergence


class _Stopped(BaseException):
    """Ends a subgroup because another one failed."""


@dataclass(frozen=True)
class Standing:
    """A subgroup that waits.

    Attributes:
        op: the barrier, or the wait at a named one.
        ready: whether it can go on; of a barrier of all: never by itself.
    """

    op: Any
    ready: Callable[[], bool]


def _never() -> bool:
    return False


class Team:
    """Runs the subgroups of a program.

    Attributes:
        count: how many there are.

    Args:
        count: see above.
        program: where the program lies in the grid, for errors.
    """

    def __init__(self, count: int, program: tuple[int, int, int]) -> None:
        self.count = count
        self._program = program
        # A lock that nobody holds is a turn that somebody may take.
        self._turns = [threading.Lock() for _ in range(count)]
        self._over = threading.Lock()
        self._failure: BaseException | None = None
        self._waiting: dict[int, Standing] = {}
        self._running = list(range(count))

    def run(self, subgroups: Sequence[Callable[[], None]]) -> None:
        """Run all of them to their end.

        Raises:
            CheckError: they wait for one another and nobody can go on.
        """
        for lock in (*self._turns, self._over):
            lock.acquire()
        threads = [
            threading.Thread(
                target=contextvars.copy_context().run, args=(self._work, number, body)
            )
            for number, body in enumerate(subgroups)
        ]
        for thread in threads:
            thread.start()
        self._turns[0].release()
        self._over.acquire()
        for thread in threads:
            thread.join()
        if self._failure is not None:
            raise self._failure

    def wait(self, number: int, op: Any, ready: Callable[[], bool] = _never) -> None:
        """Let others run until ``ready``, or until all stand at the barrier ``op``."""
        self._waiting[number] = Standing(op, ready)
        following = self._next(number)
        if following != number:
            self._turns[following].release()
            self._turns[number].acquire()
        if self._failure is not None:
            raise _Stopped

    def _work(self, number: int, body: Callable[[], None]) -> None:
        self._turns[number].acquire()
        try:
            if self._failure is None:
                body()
        except _Stopped:
            pass
        except BaseException as error:
            self._failure = error
        self._running.remove(number)
        if self._running:
            self._turns[self._next(number)].release()
        else:
            self._over.release()

    def _next(self, number: int) -> int:
        """Who runs after a subgroup that waits or has ended."""
        if self._failure is not None:
            return self._running[0]
        found = self._able(number)
        if found is None:
            self._meet()
            return self._running[0]
        self._waiting.pop(found, None)
        return found

    def _able(self, number: int) -> int | None:
        later = [other for other in self._running if other > number]
        sooner = [other for other in self._running if other <= number]
        for other in later + sooner:
            standing = self._waiting.get(other)
            if standing is None or standing.ready():
                return other
        return None

    def _meet(self) -> None:
        """Everybody waits: the barrier opens if it is one and all are there."""
        standing = {number: each.op for number, each in self._waiting.items()}
        ops = set(standing.values())
        (op, *others) = ops
        if others or op.name != "gpu.barrier" or len(standing) < len(self._turns):
            self._failure = self._stuck(standing)
        self._waiting.clear()

    def _stuck(self, standing: dict[int, Any]) -> XetlError:
        ended = sorted(set(range(len(self._turns))) - standing.keys())
        return divergence.stuck(standing, ended, self._program)

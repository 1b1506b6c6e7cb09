"""The scheduler of a program's subgroups, which take turns from barrier to barrier.

Each subgroup is a thread, but only one runs at a time, in a fixed order, so results are
deterministic. A subgroup that has to wait wakes the next one that can run. If there is
none, either all wait at one barrier and continue, or an error says who waits where.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from xetl.errors import CheckError
from xetl_reference.findings import at_operation, found, line_of


class _Stopped(BaseException):
    """Ends a subgroup because another one failed."""


@dataclass(frozen=True)
class Standing:
    """A subgroup that waits.

    Attributes:
        op: the barrier, or the wait at a named barrier.
        ready: returns whether it can continue; always False for a barrier of all
            subgroups.
    """

    op: Any
    ready: Callable[[], bool]


class SubgroupScheduler:
    """Runs the subgroups of a program.

    Args:
        program: the position of the program in the grid, for errors.
    """

    def __init__(self, count: int, program: tuple[int, int, int]) -> None:
        self.count = count
        self._program = program
        # Each subgroup waits for its lock; releasing the lock gives it the turn.
        self._turns = [threading.Lock() for _ in range(count)]
        self._over = threading.Lock()
        self._failure: BaseException | None = None
        self._waiting: dict[int, Standing] = {}
        self._running = list(range(count))

    def run(self, subgroups: Sequence[Callable[[], None]]) -> None:
        """Run all subgroups to their end.

        Raises:
            CheckError: a deadlock: all wait, and none can continue.
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

    def wait(
        self, number: int, op: Any, ready: Callable[[], bool] = lambda: False
    ) -> None:
        """Let others run until ``ready``, or until all wait at the barrier ``op``."""
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
        """Return the subgroup that runs after one that waits or has ended."""
        if self._failure is not None:
            return self._running[0]
        able = self._able(number)
        if able is None:
            self._meet()
            return self._running[0]
        self._waiting.pop(able, None)
        return able

    def _able(self, number: int) -> int | None:
        later = [other for other in self._running if other > number]
        sooner = [other for other in self._running if other <= number]
        for other in later + sooner:
            standing = self._waiting.get(other)
            if standing is None or standing.ready():
                return other
        return None

    def _meet(self) -> None:
        """Open the barrier if all subgroups wait at it; otherwise set the error."""
        standing = {number: each.op for number, each in self._waiting.items()}
        (op, *others) = set(standing.values())
        if others or op.name != "gpu.barrier" or len(standing) < len(self._turns):
            ended = sorted(set(range(len(self._turns))) - standing.keys())
            self._failure = stuck(standing, ended, self._program)
        self._waiting.clear()


Position = tuple[int, int, int]


def stuck(
    standing: Mapping[int, Any], ended: Sequence[int], program: Position
) -> CheckError:
    """Return the error of a deadlock.

    Args:
        standing: the operation at which each subgroup waits.
        ended: the subgroups that have reached the end of the kernel.
    """
    barriers = [op for op in standing.values() if op.name == "gpu.barrier"]
    here = barriers[0] if barriers else next(iter(standing.values()))
    notes = [f"in program {program}"]
    for op in dict.fromkeys(standing.values()):
        if op is not here:
            there = [number for number, other in standing.items() if other is op]
            notes.append(f"{_subgroups(there, 'wait')} at line {line_of(op)}")
    if ended:
        notes.append(f"{_subgroups(ended, 'have ended')}")
    waiting = [number for number, op in standing.items() if op is here]
    what, code, help_ = _AT_BARRIERS if barriers else _AT_NAMED_BARRIERS
    label = f"{_subgroups(waiting, 'wait')} here"
    return found(here, what, code, program, label=label, notes=notes, help=help_)


_AT_BARRIERS = (
    "not all subgroups of a program reach this barrier",
    "X0825",
    "all subgroups must come to the same barrier: move it out of `if`, loop or"
    " `return` that depends on the subgroup",
)
_AT_NAMED_BARRIERS = (
    "these subgroups wait at a named barrier where too few others arrive",
    "X0826",
    "as many subgroups must arrive as `init_nbarrier` says, before each wait",
)


def no_such_barrier(op: Any, number: int, limit: int) -> CheckError:
    """Return the error that the kernel has no named barrier of this number."""
    text = f"there is no named barrier {number}: they are 0 to {limit - 1}"
    help_ = "`alloc_nbarrier` says how many a kernel has, 32 at most"
    return at_operation(CheckError(text, code="X0826", help=help_), op)


def participants(op: Any, number: int, most: int) -> CheckError:
    """Return the error that a named barrier is for too many subgroups, or for none."""
    text = f"a named barrier for {number} subgroups, but a program has {most}"
    help_ = f"1 to {most} subgroups can arrive"
    return at_operation(CheckError(text, code="X0826", help=help_), op)


def _subgroups(numbers: Iterable[int], verb: str) -> str:
    """Return a text such as ``subgroup 1 waits`` or ``subgroups 0, 2-31 wait``."""
    listed = sorted(numbers)
    if len(listed) == 1:
        single = {"wait": "waits", "have ended": "has ended"}
        return f"subgroup {listed[0]} {single[verb]}"
    return f"subgroups {', '.join(_ranges(listed))} {verb}"


def _ranges(numbers: Sequence[int]) -> list[str]:
    """Join neighbouring numbers to ranges: 0, 1, 2, 5 are ``0-2`` and ``5``."""
    # Neighbours have the same distance from their places.
    runs = groupby(enumerate(numbers), lambda each: each[1] - each[0])
    ranges = [[number for _, number in run] for _, run in runs]
    return [f"{r[0]}-{r[-1]}" if len(r) > 1 else str(r[0]) for r in ranges]

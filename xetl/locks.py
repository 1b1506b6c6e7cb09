"""A lock that neither a signal handler nor a forked process waits on for ever."""

from __future__ import annotations

import os
from threading import RLock
from typing import Any
from weakref import WeakSet


class ForkSafeLock:
    """A lock that its thread may enter again, and that a forked process renews.

    A signal handler runs in the thread that it interrupts. It may launch the kernel
    that this thread is compiling; then it compiles the kernel again. A forked process
    does not have the thread that held the lock, so it gets a new lock.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        _LOCKS.add(self)

    def __reduce__(self) -> tuple[type[ForkSafeLock], tuple[()]]:
        return ForkSafeLock, ()  # an unpickled lock is free

    def held(self) -> Any:
        """Return the context manager that holds the lock."""
        return self._lock

    def renew(self) -> None:
        """Replace the lock by a free one: in a forked process, no thread holds it."""
        self._lock = RLock()


_LOCKS: WeakSet[ForkSafeLock] = WeakSet()


def _renew_all() -> None:
    for lock in list(_LOCKS):
        lock.renew()


os.register_at_fork(after_in_child=_renew_all)

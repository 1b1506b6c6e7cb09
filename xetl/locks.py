"""A lock that can hang neither a signal handler nor a forked process."""

from __future__ import annotations

import os
from threading import RLock
from typing import Any
from weakref import WeakSet


class ForkSafeLock:
    """One thread at a time; the same thread may enter again.

    A handler of a signal may launch the very kernel that is being compiled: it compiles
    for itself. In a forked process the thread that held the lock is gone: there it is
    another lock.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        _LOCKS.add(self)

    def __reduce__(self) -> tuple[type[ForkSafeLock], tuple[()]]:
        return ForkSafeLock, ()  # nobody holds it in another process

    def held(self) -> Any:
        """What to enter with ``with``."""
        return self._lock

    def renew(self) -> None:
        """Forget who holds it: a forked process has one thread, which does not."""
        self._lock = RLock()


_LOCKS: WeakSet[ForkSafeLock] = WeakSet()


def _renew_all() -> None:
    for lock in list(_LOCKS):
        lock.renew()


os.register_at_fork(after_in_child=_renew_all)

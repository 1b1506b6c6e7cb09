"""The threads kernels run on: one of numba's pools (`xetl_cpu.launch.thread_pools`).

Where numba is loaded too, both share a pool, and ``numba.set_num_threads`` counts for
kernels as well; so do limits that `threadpoolctl` sets for OpenMP. Launches of several
Python threads at once share the number of threads there is: each makes a team of its
own, and N teams of N threads would be in each other's way.

Threads do not survive ``os.fork``: a child whose parent had started the pool runs its
kernels serially, for neither GNU OpenMP nor the queue can be started a second time.
Where the parent has loaded a library of threads for others, the child takes another
one (`thread_pools.may_start`).
"""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from functools import cache

from xetl.errors import ThreadLayerWarning
from xetl.locks import ForkSafeLock
from xetl.records import record
from xetl_cpu.launch.thread_pools import (
    WORKQUEUE,
    address,
    allowed_threads,
    load_pool,
    may_start,
    openmp_limit,
    wanted_layers,
    was_forked,
)


@record(frozen=True)
class ThreadLayer:
    """A started pool of threads.

    Attributes:
        name: ``omp``, ``tbb``, ``workqueue`` or ``serial``.
        limit: the most threads a launch may use.
        parallel_for: address of the function kernels call to fork and join; 0: none.
        asked: address of the function that tells what the user asked for; 0: none.
        openmp: address of ``omp_get_max_threads``; 0: none.
        usual: what that says unless somebody has set a limit.
        lock: to be held during a launch, for pools that only one thread may use.
    """

    name: str
    limit: int
    parallel_for: int = 0
    asked: int = 0
    openmp: int = 0
    usual: int = 0
    lock: ForkSafeLock | None = None

    def num_threads(self) -> int:
        """How many threads a launch of the calling Python thread may use."""
        count = self.limit
        if self.asked:
            asked = _query(self.asked)()
            count = asked if 0 < asked < count else count
        if self.openmp:
            limit = _query(self.openmp)()
            # The pool sets its own size in the thread that starts it: no limit.
            is_set = limit not in (self.usual, self.limit)
            count = limit if is_set and 0 < limit < count else count
        return count

    @contextmanager
    def team(self) -> Generator[int]:
        """For the time of a launch: its number of threads; fewer beside others."""
        with nullcontext() if self.lock is None else self.lock.held():
            with _Launches.lock.held():
                # Less than 0 where a fork in the midst of this has begun anew.
                others = max(0, _Launches.slow[0] + _Launches.fast[0])
                _Launches.slow[0] += 1
            try:
                yield max(1, self.num_threads() // (others + 1))
            finally:
                with _Launches.lock.held():
                    _Launches.slow[0] -= 1


class _Launches:
    """How many launches run now, in memory that native code can read.

    ``fast`` is counted by native entries (`launch/entry.py`) while they hold Python's
    lock, ``slow`` by Python under a lock of its own.
    """

    fast = (ctypes.c_int64 * 1)()
    slow = (ctypes.c_int64 * 1)()
    lock = ForkSafeLock()


FAST_LAUNCHES = ctypes.addressof(_Launches.fast)
SLOW_LAUNCHES = ctypes.addressof(_Launches.slow)

SERIAL = ThreadLayer("serial", 1)


class _State:
    """What this process has started."""

    layer: ThreadLayer | None = None
    is_starting = False
    lock = ForkSafeLock()
    observers: tuple[Callable[[ThreadLayer], None], ...] = ()


def thread_layer() -> ThreadLayer:
    """The pool of this process; started at the first call."""
    layer = _State.layer
    if layer is None:
        with _State.lock.held():
            layer = _State.layer
            if layer is None:
                if _State.is_starting:  # a signal handler launches meanwhile
                    return SERIAL
                _State.is_starting = True
                try:
                    layer = _State.layer = _start(allowed_threads().count)
                finally:
                    _State.is_starting = False
    return layer


def on_layer_lost(observer: Callable[[ThreadLayer], None]) -> None:
    """Call ``observer`` with the new layer when a fork takes the threads away."""
    _State.observers += (observer,)


def _start(count: int) -> ThreadLayer:
    if count == 1 or _numba_lost_its_threads(count):
        return SERIAL
    layers = wanted_layers()
    for name in layers:
        pool = load_pool(name) if may_start(name) else None
        if pool is None:
            continue
        openmp = openmp_limit(pool)
        usual = _query(openmp)() if openmp else 0
        launch = ctypes.CFUNCTYPE(None, ctypes.c_int)(address(pool, "launch_threads"))
        launch(count)
        if name == WORKQUEUE != layers[0] and not was_forked():
            _warn_of_workqueue(layers[0])
        return ThreadLayer(
            name,
            count,
            address(pool, "parallel_for"),
            address(pool, "get_num_threads"),
            openmp,
            usual,
            ForkSafeLock() if name == WORKQUEUE else None,
        )
    return SERIAL


def _warn_of_workqueue(wanted: str) -> None:
    """Once a process: layers are started once."""
    warnings.warn(
        f"the layer `{wanted}` of threads cannot be loaded, so numba's work queue is "
        "used: it takes 0.1 ms to wake for each launch. Install libgomp (Debian: "
        "apt-get install libgomp1) or TBB (pip install tbb); `xetl doctor` checks it",
        ThreadLayerWarning,
        stacklevel=2,
    )


def _numba_lost_its_threads(count: int) -> bool:
    """Whether numba started the pool we share, and a fork has taken it away since."""
    parallel = sys.modules.get("numba.np.ufunc.parallel")
    if not getattr(parallel, "_is_initialized", False):
        return False
    try:
        alive = len(os.listdir("/proc/self/task"))
    except OSError:
        return False
    return was_forked() and alive < count


@cache
def _query(function: int) -> Callable[[], int]:
    return ctypes.CFUNCTYPE(ctypes.c_int)(function)


def _after_fork() -> None:
    """In the child: the threads are gone."""
    _Launches.fast[0] = _Launches.slow[0] = 0
    if _State.layer is None and not _State.is_starting:
        return
    _State.layer = SERIAL
    for observer in _State.observers:
        observer(SERIAL)


os.register_at_fork(after_in_child=_after_fork)

"""Compiling in worker processes: what they make comes through the disk cache.

A worker is a fork: it has the kernel, the arguments and the compiler already. It only
compiles; it launches nothing and starts no threads. Where other threads run a fork
could copy a lock that is taken, so there is none, and the caller compiles by itself.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter, sleep

_POLL = 0.003
_LEAST = 3
"""Fewer jobs are done sooner than workers have started."""

_MOST = 8192
"""More would not fit the pipe of their numbers, nor any budget."""


def run_in_workers(jobs: Sequence[Callable[[], object]], seconds: float) -> bool:
    """Run jobs in as many processes as there are CPUs; what they give is dropped.

    Args:
        jobs: they leave something on the disk; one that fails does nothing.
        seconds: workers that take longer are killed.

    Returns:
        whether there were workers: not for a few jobs, or beside other threads.
    """
    count = min(len(os.sched_getaffinity(0)), len(jobs))
    if len(jobs) < _LEAST or count < 2 or threading.active_count() > 1:
        return False
    reading, writing = os.pipe()
    for index in range(min(len(jobs), _MOST)):
        os.write(writing, index.to_bytes(2, "little"))
    os.close(writing)
    workers: list[int] = []
    try:
        for _ in range(count):
            workers.append(_start(jobs, reading))
        end = perf_counter() + seconds
        while workers and perf_counter() < end:
            workers = [each for each in workers if not _has_ended(each)]
            sleep(_POLL)
    finally:
        os.close(reading)
        for worker in workers:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(worker, 0)
    return True


def _start(jobs: Sequence[Callable[[], object]], numbers: int) -> int:
    parent = os.getpid()
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # threads of libraries, which hold no locks
        worker = os.fork()
    if worker:
        return worker
    try:
        _work(jobs, numbers, parent)
    finally:
        os._exit(0)  # nothing of the parent's is flushed or closed


def _work(jobs: Sequence[Callable[[], object]], numbers: int, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)  # `static_print` speaks in the parent
    os.dup2(nothing, 2)
    while os.getppid() == parent:
        number = os.read(numbers, 2)
        if not number:
            return
        with warnings.catch_warnings(), suppress(Exception):
            warnings.simplefilter("ignore")
            jobs[int.from_bytes(number, "little")]()


def _has_ended(worker: int) -> bool:
    try:
        return os.waitpid(worker, os.WNOHANG)[0] == worker
    except ChildProcessError:  # somebody else has waited for it
        return True

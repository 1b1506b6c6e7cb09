"""How many threads kernels may use, by what the user, the system and others say."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

VARIABLES = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")
"""What users set; the first one that is a number counts."""

_CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Allowance:
    """A number of threads.

    Attributes:
        count: at least 1.
        reason: who said so, for `xetl doctor`.
    """

    count: int
    reason: str


def allowed_threads() -> Allowance:
    """``NUMBA_NUM_THREADS``, else ``OMP_NUM_THREADS``, else the CPUs we may use.

    In a worker of multiprocessing (or of `concurrent.futures`), these are shared with
    its brothers. joblib and Dask set the variables for their workers.
    """
    for name in VARIABLES:
        # OpenMP allows a list, one number for each level of nesting.
        first = os.environ.get(name, "").split(",")[0].strip()
        if first.isdecimal() and int(first) > 0:
            return Allowance(int(first), f"set by {name}")
    cpus = usable_cpus()
    workers = worker_processes()
    if workers > 1:
        share = max(1, cpus.count // workers)
        text = f"{cpus.count} CPUs for {workers} worker processes of multiprocessing"
        return Allowance(share, text)
    return cpus


def usable_cpus() -> Allowance:
    """The CPUs of this process, or the time of how many its container may use."""
    cpus = len(os.sched_getaffinity(0))
    quota = _quota()
    if quota is not None and quota < cpus:
        return Allowance(quota, "the CPU quota of the container")
    return Allowance(cpus, "the CPUs this process may use")


def _quota() -> int | None:
    """Whole CPUs a container is limited to (``docker --cpus``), by cgroups 2 or 1."""
    with suppress(OSError, ValueError):
        quota, period = (_CGROUPS / "cpu.max").read_text().split()
        return None if quota == "max" else max(1, int(quota) // int(period))
    with suppress(OSError, ValueError):
        folder = _CGROUPS / "cpu"
        quota = int((folder / "cpu.cfs_quota_us").read_text())
        period = int((folder / "cpu.cfs_period_us").read_text())
        return max(1, quota // period) if quota > 0 else None
    return None


def worker_processes() -> int:
    """Processes that multiprocessing made beside this one, itself included.

    1 in a process that it did not make. Counted are the children of our parent that
    run its code: forked ones run the parent's command, spawned ones a known one.
    """
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None:
        return 1
    parent = os.getppid()
    ours = (_command(os.getpid()), _command(parent))
    return max(1, sum(_is_worker(pid, ours) for pid in _children(parent)))


def _is_worker(pid: int, ours: tuple[str, str]) -> bool:
    command = _command(pid)
    return command in ours or "multiprocessing.spawn" in command


def _children(parent: int) -> list[int]:
    """The processes whose parent is ``parent``; Linux tells for each thread of it."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{parent}/task").iterdir():
            with suppress(OSError):
                found += map(int, (task / "children").read_text().split())
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""

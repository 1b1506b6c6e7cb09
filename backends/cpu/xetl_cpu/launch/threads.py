"""Threads for kernels: how many may be used, and numba's pools that run them.

Where numba is loaded too, both share a pool, and ``numba.set_num_threads`` counts for
kernels as well; so do limits that `threadpoolctl` sets for OpenMP. Launches of several
Python threads at once share the number of threads there is: each makes a team of its
own, and N teams of N threads would be in each other's way.

Threads do not survive ``os.fork``: a child whose parent had started the pool runs its
kernels serially, for neither GNU OpenMP nor the queue can be started a second time.
Where the parent has loaded a library of threads for others, the child takes another
one (`may_start`).

The pools are loaded from their files without importing numba. Each is a small extension
module that needs nothing else of numba. Measured: a fork-join of two threads takes
0.7 us with the OpenMP pool, 0.8 us with TBB and 90 us with the work queue, whose
threads sleep between launches.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from types import ModuleType

from xetl.errors import ThreadLayerWarning
from xetl.locks import ForkSafeLock
from xetl.records import record

VARIABLES = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")
"""What users set; the first one that is a number counts."""

_CGROUPS = Path("/sys/fs/cgroup")


@record(frozen=True)
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

    In a worker of multiprocessing (or of `concurrent.futures`), these are shared
    between the workers. joblib and Dask set the variables for their workers.
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


WORKQUEUE = "workqueue"

_FILES = {"omp": "omppool", "tbb": "tbbpool", WORKQUEUE: "workqueue"}
"""Our name of a layer (numba's, too) and its file; in order of preference."""

_PROMISES = {
    "safe": ("tbb",),
    "threadsafe": ("omp", "tbb"),
    "forksafe": ("tbb", WORKQUEUE),
}
"""What else ``NUMBA_THREADING_LAYER`` may ask for."""

_TBB = "libtbb.so.12"
_RUNTIMES = {"omp": "libgomp.so.1", "tbb": _TBB}

_FLAGS = 6  # of a process, among the fields of /proc/self/stat behind its name
_FORKED_WITHOUT_EXEC = 0x40


def wanted_layers() -> tuple[str, ...]:
    """The layers to try, in order.

    That is what ``NUMBA_THREADING_LAYER`` says, else the one that numba has started:
    then both share a pool. Others follow: a launch must not fail for want of one.
    """
    asked = os.environ.get("NUMBA_THREADING_LAYER", "")
    parallel = sys.modules.get("numba.np.ufunc.parallel")
    started: str | None = getattr(parallel, "_threading_layer", None)
    first = _PROMISES.get(asked, (asked if asked in _FILES else started or "omp",))
    return tuple(dict.fromkeys((*first, *_FILES)))


def may_start(layer: str) -> bool:
    """Whether the threads of a layer come when they are called.

    TBB makes none where there is one CPU, and then may wait for them for ever. After a
    fork, libraries that the parent had loaded wait for the threads that it had, if it
    had any: that they do not tell.
    """
    if layer == "tbb" and usable_cpus().count == 1:
        return False
    return not (was_forked() and _is_loaded(_RUNTIMES.get(layer)))


def was_forked() -> bool:
    """Whether this process began as a copy of another; Linux knows, Python does not."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return bool(int(fields[_FLAGS]) & _FORKED_WITHOUT_EXEC)


def _is_loaded(library: str | None) -> bool:
    if library is None:
        return False
    try:
        ctypes.CDLL(library, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return False
    return True


def load_pool(layer: str) -> ModuleType | None:
    """The extension module of a layer; None where it cannot be loaded."""
    found = importlib.util.find_spec("numba")  # looks the package up, does not run it
    if found is None or found.origin is None:
        return None
    name = _FILES[layer]
    folder = Path(found.origin).parent / "np" / "ufunc"
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = folder / f"{name}{suffix}"
        if path.exists():
            return _load(name, path)
    return None


def _load(name: str, path: Path) -> ModuleType | None:
    if name == _FILES["tbb"]:
        _load_tbb()
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    try:
        with _bounded_spinning():
            pool = importlib.util.module_from_spec(spec)
            loader.exec_module(pool)
    except ImportError:  # the runtime library it links to is not there
        return None
    return pool


def _load_tbb() -> None:
    """Load the library of PyPI's package `tbb`, which no loader looks for."""
    for place in (_TBB, os.path.join(sys.prefix, "lib", _TBB)):
        with suppress(OSError):
            ctypes.CDLL(place)
            return


_SPINS = ("GOMP_SPINCOUNT", "10000")
"""How long an idle worker spins before it sleeps: about 0.1 ms."""


@contextmanager
def _bounded_spinning() -> Generator[None]:
    """Let libgomp, which reads its variables when it is loaded, spin only shortly.

    By default idle workers burn their time slices; on a machine with anything else to
    do they are then off the processor when there is work, and a launch of 0.1 ms takes
    12 to 24 ms (measured). What the user has set is left alone.
    """
    name, count = _SPINS
    if name in os.environ or "OMP_WAIT_POLICY" in os.environ:
        yield
        return
    os.environ[name] = count
    try:
        yield
    finally:
        del os.environ[name]


def address(pool: ModuleType, name: str) -> int:
    """Where a function of a pool is: pools publish them as plain integers."""
    value = getattr(pool, name)
    assert isinstance(value, int)
    return value


def openmp_limit(pool: ModuleType) -> int:
    """Address of ``omp_get_max_threads`` of the OpenMP that a pool uses; 0: none."""
    try:
        # Looks into the libraries that the pool is linked to, too.
        function = ctypes.CDLL(str(pool.__file__)).omp_get_max_threads
    except (OSError, AttributeError):
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


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

    @property
    def pool(self) -> int:
        """Address of the pool's words (`slots.FORK`), for kernels; 0: none."""
        return ctypes.addressof(_words(self.parallel_for)) if self.parallel_for else 0

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
def _words(parallel_for: int) -> ctypes.Array[ctypes.c_int64]:
    """One pool's words for all kernels of the process."""
    return (ctypes.c_int64 * 2)(parallel_for)


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

"""Threads for kernels: how many may be used, and numba's pools that run them.

If numba is loaded too, both share a pool, and ``numba.set_num_threads`` applies to
kernels as well. So do ``torch.set_num_threads``, if torch was imported before the first
launch, and limits that `threadpoolctl` sets for OpenMP. Simultaneous
launches of several Python threads share the number of threads: each makes its own team,
and N teams of N threads would slow each other down.

Threads do not survive ``os.fork``. A child whose parent had started the pool runs its
kernels serially, because neither GNU OpenMP nor the queue can be started again. If the
parent has loaded a thread library for other code, the child uses another library
(`may_start`).

The pools are loaded from their files without importing numba. Each is a small extension
module that does not use the rest of numba. Measured: a fork-join of two threads takes
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
"""Variables that users set; the first one with a number counts."""

_CGROUPS = Path("/sys/fs/cgroup")


@record(frozen=True)
class Allowance:
    """A number of threads.

    Attributes:
        count: at least 1.
        reason: where the number comes from, for `xetl doctor`.
    """

    count: int
    reason: str


def allowed_threads() -> Allowance:
    """Return ``NUMBA_NUM_THREADS``, else ``OMP_NUM_THREADS``, else the usable CPUs.

    In a worker of multiprocessing (or of `concurrent.futures`), the workers share the
    CPUs. joblib and Dask set the variables for their workers.
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
    """Return the CPUs of this process, or fewer by the CPU quota of its container."""
    cpus = len(os.sched_getaffinity(0))
    quota = _quota()
    if quota is not None and quota < cpus:
        return Allowance(quota, "the CPU quota of the container")
    return Allowance(cpus, "the CPUs this process may use")


def _quota() -> int | None:
    """Return the whole CPUs of a container (``docker --cpus``), by cgroups 2 or 1."""
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
    """Return the number of worker processes of multiprocessing, with this one.

    Return 1 if multiprocessing did not start this process. Workers are children of our
    parent that run its code: forked ones have the parent's command, spawned ones a
    known one.
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
    """Return the children of a process; Linux lists them for each of its threads."""
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
"""The names of layers (ours and numba's) and their files, in order of preference."""

_PROMISES = {
    "safe": ("tbb",),
    "threadsafe": ("omp", "tbb"),
    "forksafe": ("tbb", WORKQUEUE),
}
"""Other values of ``NUMBA_THREADING_LAYER``."""

_TBB = "libtbb.so.12"
_RUNTIMES = {"omp": "libgomp.so.1", "tbb": _TBB}

_FLAGS = 6  # of a process, among the fields of /proc/self/stat behind its name
_FORKED_WITHOUT_EXEC = 0x40


def wanted_layers() -> tuple[str, ...]:
    """Return the layers to try, in order.

    The first is that of ``NUMBA_THREADING_LAYER``, or else the one that numba has
    started: then both share a pool. The others follow, so that no launch fails for lack
    of a layer.
    """
    asked = os.environ.get("NUMBA_THREADING_LAYER", "")
    parallel = sys.modules.get("numba.np.ufunc.parallel")
    started: str | None = getattr(parallel, "_threading_layer", None)
    first = _PROMISES.get(asked, (asked if asked in _FILES else started or "omp",))
    return tuple(dict.fromkeys((*first, *_FILES)))


def may_start(layer: str) -> bool:
    """Whether the threads of a layer can be started safely.

    On one CPU, TBB creates no threads and may wait for them forever. After a fork,
    libraries that the parent had loaded wait for the parent's threads, if it had any;
    that cannot be queried.
    """
    if layer == "tbb" and usable_cpus().count == 1:
        return False
    return not (was_forked() and _is_loaded(_RUNTIMES.get(layer)))


def was_forked() -> bool:
    """Whether this process is a fork without exec, which only Linux knows."""
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
    """Load the extension module of a layer; return None if that fails."""
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
    """Load the library of PyPI's package `tbb`, which loaders do not find."""
    for place in (_TBB, os.path.join(sys.prefix, "lib", _TBB)):
        with suppress(OSError):
            ctypes.CDLL(place)
            return


_SPINS = ("GOMP_SPINCOUNT", "10000")
"""How long an idle worker spins before it sleeps: about 0.1 ms."""


@contextmanager
def _bounded_spinning() -> Generator[None]:
    """Make libgomp, which reads its variables when it is loaded, spin only briefly.

    By default idle workers use up their time slices. On a busy machine they are then
    descheduled when work arrives, and a launch of 0.1 ms takes 12 to 24 ms (measured).
    Values that the user has set are kept.
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
    """Return the address of a function of a pool: pools publish plain integers."""
    value = getattr(pool, name)
    assert isinstance(value, int)
    return value


def openmp_limit(pool: ModuleType) -> int:
    """Return the address of the function that returns the limit of OpenMP's threads.

    This is ``at::get_num_threads`` if torch is loaded, which may have an OpenMP of its
    own. Else it is ``omp_get_max_threads`` of the pool's OpenMP; 0: it has none.
    """
    torch = sys.modules.get("torch")
    if torch is not None and torch.__file__ is not None:
        library = Path(torch.__file__).parent / "lib/libtorch_cpu.so"
        found = _function(str(library), "_ZN2at15get_num_threadsEv")
        if found:
            return found
    return _of_openmp(pool, "omp_get_max_threads")


def _of_openmp(pool: ModuleType, name: str) -> int:
    """Return the address of a function of the OpenMP that a pool calls; 0: none.

    If a library has made its own OpenMP global, as torch does, the pool calls this, and
    not the one that it is linked to.
    """
    own = str(pool.__file__)
    return _function(own, name) and (_function(None, name) or _function(own, name))


def _usual_limit() -> int:
    """Return the limit that OpenMP has if nobody has set one."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdecimal() else len(os.sched_getaffinity(0))


def _launch_threads(pool: ModuleType, count: int) -> None:
    """Start the pool; its OpenMP, which others may use as well, keeps its limit."""
    limit = _of_openmp(pool, "omp_get_max_threads")
    before = _query(limit)() if limit else 0
    set_number = ctypes.CFUNCTYPE(None, ctypes.c_int)
    set_number(address(pool, "launch_threads"))(count)
    if limit:
        set_number(_of_openmp(pool, "omp_set_num_threads"))(before)


def _function(library: str | None, name: str) -> int:
    """Return the address of a function in a library, or in those that it links to.

    Args:
        library: None: those whose functions are global.
        name: of the function.
    """
    try:
        function = getattr(ctypes.CDLL(library), name)
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
        asked: address of the function that returns the number the user asked for; 0:
            none.
        openmp: address of the function that returns OpenMP's limit; 0: none.
        usual: the result of that function if no limit is set.
        lock: held during a launch, for pools that only one thread may use.
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
        """The address of the pool's words (`slots.FORK`), for kernels; 0: none."""
        return ctypes.addressof(_words(self.parallel_for)) if self.parallel_for else 0

    def num_threads(self) -> int:
        """Return how many threads a launch of the calling Python thread may use."""
        count = self.limit
        if self.asked:
            asked = _query(self.asked)()
            count = asked if 0 < asked < count else count
        if self.openmp:
            limit = _query(self.openmp)()
            # numba sets the size of its pool in the thread that starts it: no limit.
            is_set = limit not in (self.usual, self.limit)
            count = limit if is_set and 0 < limit < count else count
        return count

    @contextmanager
    def team(self) -> Generator[int]:
        """Yield the number of threads for a launch; fewer beside other launches."""
        with nullcontext() if self.lock is None else self.lock.held():
            with _Launches.lock.held():
                # Less than 0 if a fork in the middle of a launch has reset the counts.
                others = max(0, _Launches.slow[0] + _Launches.fast[0])
                _Launches.slow[0] += 1
            try:
                yield max(1, self.num_threads() // (others + 1))
            finally:
                with _Launches.lock.held():
                    _Launches.slow[0] -= 1


class _Launches:
    """The number of running launches, in memory that native code can read.

    Native entries (`launch/entry.py`) count ``fast`` while they hold Python's lock;
    Python counts ``slow`` under its own lock.
    """

    fast = (ctypes.c_int64 * 1)()
    slow = (ctypes.c_int64 * 1)()
    lock = ForkSafeLock()


FAST_LAUNCHES = ctypes.addressof(_Launches.fast)
SLOW_LAUNCHES = ctypes.addressof(_Launches.slow)

SERIAL = ThreadLayer("serial", 1)


class _State:
    """The thread layer that this process has started."""

    layer: ThreadLayer | None = None
    is_starting = False
    lock = ForkSafeLock()
    observers: tuple[Callable[[ThreadLayer], None], ...] = ()


def thread_layer() -> ThreadLayer:
    """Return the pool of this process; the first call starts it."""
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
        _launch_threads(pool, count)
        if name == WORKQUEUE != layers[0] and not was_forked():
            _warn_of_workqueue(layers[0])
        return ThreadLayer(
            name,
            count,
            address(pool, "parallel_for"),
            address(pool, "get_num_threads"),
            openmp,
            _usual_limit(),
            ForkSafeLock() if name == WORKQUEUE else None,
        )
    return SERIAL


def _warn_of_workqueue(wanted: str) -> None:
    """Warn once a process, because layers are started once."""
    warnings.warn(
        f"the layer `{wanted}` of threads cannot be loaded, so numba's work queue is "
        "used: it takes 0.1 ms to wake for each launch. Install libgomp (Debian: "
        "apt-get install libgomp1) or TBB (pip install tbb); `xetl doctor` checks it",
        ThreadLayerWarning,
        stacklevel=2,
    )


def _numba_lost_its_threads(count: int) -> bool:
    """Whether numba started the shared pool, and a fork has ended its threads since."""
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
    """Return the words of a pool, shared by all kernels of the process."""
    return (ctypes.c_int64 * 2)(parallel_for)


@cache
def _query(function: int) -> Callable[[], int]:
    return ctypes.CFUNCTYPE(ctypes.c_int)(function)


def _after_fork() -> None:
    """Run in the child of a fork: the threads are gone."""
    _Launches.fast[0] = _Launches.slow[0] = 0
    if _State.layer is None and not _State.is_starting:
        return
    _State.layer = SERIAL
    for observer in _State.observers:
        observer(SERIAL)


os.register_at_fork(after_in_child=_after_fork)

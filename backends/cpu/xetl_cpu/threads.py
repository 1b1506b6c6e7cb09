"""The threads kernels run on: numba's pool, without importing numba.

numba keeps its pools in small extension modules that need nothing else of it; they are
loaded from their files here. Where numba is loaded too both share one pool, and
``numba.set_num_threads`` counts for kernels as well.

Measured: a fork-join of two threads takes 0.7 us with the OpenMP
pool and 90 us with the work queue.

Threads do not survive ``os.fork``: a child whose parent had started the pool runs its
kernels serially, for neither GNU OpenMP nor the queue can be started a second time.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from types import ModuleType

_POOLS = {"omp": "omppool", "workqueue": "workqueue"}
"""Our name of a layer and its file; in order of preference."""

_FLAGS = 6  # of a process, among the fields of /proc/self/stat behind its name
_FORKED_WITHOUT_EXEC = 0x40


@dataclass(frozen=True, slots=True)
class ThreadLayer:
    """A started pool of threads.

    Attributes:
        name: ``omp``, ``workqueue`` or ``serial``.
        limit: the most threads a launch may use.
        parallel_for: address of the function kernels call to fork and join; 0: none.
        asked: address of the function that tells what the user asked for; 0: none.
        lock: to be held during a launch, for pools that only one thread may use.
    """

    name: str
    limit: int
    parallel_for: int = 0
    asked: int = 0
    lock: Lock | None = None

    def num_threads(self) -> int:
        """How many threads a launch of the calling Python thread uses."""
        if not self.asked:
            return 1
        asked = _query(self.asked)()
        return asked if 0 < asked < self.limit else self.limit


SERIAL = ThreadLayer("serial", 1)


class _State:
    """What this process has started."""

    layer: ThreadLayer | None = None
    lock = Lock()
    observers: tuple[Callable[[ThreadLayer], None], ...] = ()


def thread_layer() -> ThreadLayer:
    """The pool of this process; started at the first call."""
    layer = _State.layer
    if layer is None:
        with _State.lock:
            layer = _State.layer
            if layer is None:
                layer = _State.layer = _start(allowed_threads())
    return layer


def on_layer_lost(observer: Callable[[ThreadLayer], None]) -> None:
    """Call ``observer`` with the new layer when a fork takes the threads away."""
    _State.observers += (observer,)


def allowed_threads() -> int:
    """``NUMBA_NUM_THREADS``, else ``OMP_NUM_THREADS``, else the CPUs we may use."""
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        # OpenMP allows a list, one number for each level of nesting.
        first = os.environ.get(name, "").split(",")[0].strip()
        if first.isdecimal() and int(first) > 0:
            return int(first)
    return len(os.sched_getaffinity(0))


def _start(count: int) -> ThreadLayer:
    if count == 1 or _numba_lost_its_threads(count):
        return SERIAL
    wanted = os.environ.get("NUMBA_THREADING_LAYER", "")
    names = [wanted] if wanted in _POOLS else list(_POOLS)
    for name in names:
        pool = _load_pool(_POOLS[name])
        if pool is None:
            continue
        launch = ctypes.CFUNCTYPE(None, ctypes.c_int)(_address(pool, "launch_threads"))
        launch(count)
        return ThreadLayer(
            name,
            count,
            _address(pool, "parallel_for"),
            _address(pool, "get_num_threads"),
            Lock() if name == "workqueue" else None,
        )
    return SERIAL


def _address(pool: ModuleType, name: str) -> int:
    """The pools of numba publish their functions as plain integers."""
    value = getattr(pool, name)
    assert isinstance(value, int)
    return value


def _load_pool(name: str) -> ModuleType | None:
    """Load numba's extension module ``name`` from its file; None if it will not."""
    found = importlib.util.find_spec("numba")  # looks the package up, does not run it
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "np" / "ufunc"
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = folder / f"{name}{suffix}"
        if not path.exists():
            continue
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
    return None


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


def _numba_lost_its_threads(count: int) -> bool:
    """Whether numba started the pool we share, and a fork has taken it away since.

    Python tells nobody whether a process was forked, but Linux does.
    """
    parallel = sys.modules.get("numba.np.ufunc.parallel")
    if not getattr(parallel, "_is_initialized", False):
        return False
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        alive = len(os.listdir("/proc/self/task"))
    except OSError:
        return False
    return bool(int(fields[_FLAGS]) & _FORKED_WITHOUT_EXEC) and alive < count


@cache
def _query(address: int) -> Callable[[], int]:
    return ctypes.CFUNCTYPE(ctypes.c_int)(address)


def _after_fork() -> None:
    """In the child: the threads are gone, and a held lock would stay held."""
    _State.lock = Lock()
    if _State.layer is None:
        return
    _State.layer = SERIAL
    for observer in _State.observers:
        observer(SERIAL)


os.register_at_fork(after_in_child=_after_fork)

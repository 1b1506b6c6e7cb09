"""Which threads kernels get, also after a fork; each case in a process of its own."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from xetl_cpu.launch.threads import load_pool, usable_cpus

HERE = Path(__file__).parent
needs_openmp = pytest.mark.skipif(
    load_pool("omp") is None, reason="OpenMP's libgomp is not installed"
)
LAUNCH = """
import os, sys, numpy as np
from test_executable import executable, view, TEAM, ArrayParam, dtypes
from xetl_cpu.launch.threads import thread_layer
kernel = executable(TEAM, ArrayParam("A", dtypes.i64, 1, 0))
def launch():
    total = np.zeros(1, np.int64)
    kernel.launch((1, 1, 1), [view(total)])
    assert total[0] == 64
"""

SEEING = """
import ctypes
from test_entry import SEEN, dumping
from xetl_cpu.launch.threads import FAST_LAUNCHES, SLOW_LAUNCHES
seeing, found, words = dumping([], set())
def teams():
    'How many threads the two roads of a launch use.'
    seeing.launch((1, 1, 1), [found.args[0], words])
    slow = int(SEEN[1])
    assert seeing.fast(1, 1, 1, SEEN.ctypes.data, words) == 0
    return slow, int(SEEN[1])
def running():
    each = FAST_LAUNCHES, SLOW_LAUNCHES
    return [ctypes.c_int64.from_address(one).value for one in each]
"""


def run(script: str, first: str = "", **variables: str) -> str:
    kept = {
        name: value
        for name, value in os.environ.items()
        if "NUM_THREADS" not in name and not name.startswith("NUMBA")
    }
    paths = os.pathsep.join([str(HERE), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", first + LAUNCH + script],
        env={**kept, "PYTHONPATH": paths, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def expected_layer(asked: str) -> str:
    """TBB makes no threads where there is one CPU."""
    return "omp" if asked == "tbb" and usable_cpus().count == 1 else asked


@needs_openmp
def test_numba_is_not_imported() -> None:
    script = "launch(); print('numba' in sys.modules, thread_layer().name)"
    assert run(script, NUMBA_NUM_THREADS="2") == "False omp"


@pytest.mark.parametrize(
    ("variables", "count"),
    [
        ({"NUMBA_NUM_THREADS": "3", "OMP_NUM_THREADS": "2"}, 3),
        ({"OMP_NUM_THREADS": "2,1"}, 2),
        ({"OMP_NUM_THREADS": "many"}, usable_cpus().count),
        ({}, usable_cpus().count),
    ],
)
def test_number_of_threads(variables: dict[str, str], count: int) -> None:
    script = "launch(); print(thread_layer().num_threads())"
    assert run(script, **variables) == str(count)


def test_one_thread_needs_no_pool() -> None:
    script = "launch(); print(thread_layer().name)"
    assert run(script, NUMBA_NUM_THREADS="1") == "serial"


@pytest.mark.parametrize("layer", ["omp", "tbb", "workqueue"])
def test_python_threads_that_launch_at_once(layer: str) -> None:
    """The work queue is used by one of them at a time; nobody waits for ever."""
    if load_pool(layer) is None:
        pytest.skip(f"the layer {layer} cannot be loaded here")
    script = """
from threading import Thread
threads = [Thread(target=lambda: [launch() for _ in range(20)]) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(thread_layer().name)
"""
    variables = {"NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "2"}
    assert run(script, **variables) == expected_layer(layer)


def test_set_num_threads_of_numba_counts() -> None:
    script = """
launch()
import numba
numba.set_num_threads(1)
print(*teams())
numba.set_num_threads(2)
print(*teams())
launch()
"""
    assert run(SEEING + script, NUMBA_NUM_THREADS="2") == "1 1\n2 2"


@needs_openmp
@pytest.mark.parametrize("first", ["", "import torch", "import torch; launch()"])
def test_set_num_threads_of_torch_counts(first: str) -> None:
    """It may have loaded its own OpenMP before the pool, and keeps what was set."""
    pytest.importorskip("torch")
    before, _, later = first.partition("; ")
    script = f"""
{later}
import torch
torch.set_num_threads(1)
print(*teams(), torch.get_num_threads())
torch.set_num_threads(2)
print(*teams())
"""
    done = run(SEEING + script, before + "\n", NUMBA_NUM_THREADS="2")
    assert done == "1 1 1\n2 2"


def test_the_variable_of_openmp_is_no_limit_that_torch_sets() -> None:
    pytest.importorskip("torch")
    script = "import torch\nlaunch()\nprint(thread_layer().num_threads())"
    assert run(script, NUMBA_NUM_THREADS="3", OMP_NUM_THREADS="2") == "3"


def test_numba_and_kernels_share_a_process() -> None:
    script = """
import numba
@numba.njit(parallel=True)
def count(n):
    total = 0
    for i in numba.prange(n):
        total += i
    return total
assert count(100) == 4950
launch()
assert count(100) == 4950
launch()
"""
    run(script, NUMBA_NUM_THREADS="2")


@pytest.mark.parametrize("layer", ["omp", "tbb", "workqueue"])
@pytest.mark.parametrize("before", ["launch()", "pass"])
def test_fork(layer: str, before: str) -> None:
    script = f"""
import multiprocessing
{before}
with multiprocessing.get_context("fork").Pool(2) as pool:
    pool.apply(launch)
    pool.apply(launch)
    nested = pool.apply(os.getpid)
assert nested != os.getpid()
launch()
print("done")
"""
    variables = {"NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "2"}
    assert run(script, **variables) == "done"


@pytest.mark.parametrize("layer", ["omp", "tbb", "workqueue"])
def test_one_cpu(layer: str) -> None:
    """More threads than CPUs: threads that come and go, and forks, end."""
    script = """
import multiprocessing
from threading import Thread
launched = lambda: [launch() for _ in range(20)]
threads = [Thread(target=launched) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
with multiprocessing.get_context("fork").Pool(2) as pool:
    pool.apply(launch)
print("done")
"""
    pinned = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    variables = {"NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "2"}
    assert run(script, first=pinned, **variables) == "done"


@needs_openmp
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
@pytest.mark.parametrize("layer", ["omp", "tbb", "workqueue"])
def test_children_of_one_who_used_the_libraries_of_threads(
    layer: str, method: str
) -> None:
    """The parent used them not through us; children run their kernels all the same."""
    script = f"""
import ctypes, multiprocessing
from test_threads import used_elsewhere, launch_in_child
used_elsewhere()
context = multiprocessing.get_context("{method}")
children = [context.Process(target=launch_in_child) for _ in range(2)]
for child in children: child.start()
for child in children: child.join(40)
print([child.exitcode for child in children])
for child in children: child.kill()
"""
    variables = {"NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "2"}
    assert run(script, **variables) == "[0, 0]"


def used_elsewhere() -> None:
    """Run a parallel region of libgomp, as many libraries do."""
    gomp = ctypes.CDLL("libgomp.so.1")
    harmless = ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p)
    gomp.GOMP_parallel(harmless, None, 2, 0)


def launch_in_child() -> None:
    """In a child, whatever it has of its parent."""
    space: dict[str, object] = {}
    exec(LAUNCH + "launch()", space)


@needs_openmp
def test_fork_after_numba_alone_has_started_the_pool() -> None:
    script = """
import multiprocessing, numba
@numba.njit(parallel=True)
def count(n):
    total = 0
    for i in numba.prange(n):
        total += i
    return total
count(100)
with multiprocessing.get_context("fork").Pool(1) as pool:
    pool.apply(launch)
launch()
print(thread_layer().name)
"""
    assert run(script, NUMBA_NUM_THREADS="2") == "omp"


# Layers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "layer"),
    [("omp", "omp"), ("tbb", "tbb"), ("safe", "tbb"), ("threadsafe", "omp")],
)
def test_the_layer_that_is_asked_for(asked: str, layer: str) -> None:
    if load_pool(layer) is None:
        pytest.skip(f"the library of `{layer}` is not installed")
    script = "launch(); print(thread_layer().name, thread_layer().num_threads())"
    variables = {"NUMBA_THREADING_LAYER": asked, "NUMBA_NUM_THREADS": "2"}
    assert run(script, **variables) == f"{expected_layer(layer)} 2"


def test_the_work_queue_is_the_last_choice_and_that_is_said() -> None:
    script = """
import warnings
from xetl_cpu.launch import threads
load = threads.load_pool
threads.load_pool = lambda layer: load(layer) if layer == "workqueue" else None
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    launch(); launch()
print(thread_layer().name, [one.category.__name__ for one in caught])
"""
    said = run(script, NUMBA_NUM_THREADS="2")
    assert said == "workqueue ['ThreadLayerWarning']"


# Others that use threads ------------------------------------------------------------


@needs_openmp
def test_limits_of_threadpoolctl_count() -> None:
    pytest.importorskip("threadpoolctl")
    script = """
import threadpoolctl
print(*teams())
with threadpoolctl.threadpool_limits(1):
    print(*teams())
with threadpoolctl.threadpool_limits(2):
    print(*teams())
print(*teams())
"""
    variables = {"NUMBA_NUM_THREADS": "4", "OMP_NUM_THREADS": "3"}
    assert run(SEEING + script, **variables) == "4 4\n1 1\n2 2\n4 4"


def test_launches_at_once_share_the_threads() -> None:
    script = """
print(*teams())
with thread_layer().team() as first, thread_layer().team() as second:
    print(first, second, *teams())
print(*teams(), *running())
"""
    assert run(SEEING + script, NUMBA_NUM_THREADS="6") == "6 6\n6 3 2 2\n6 6 0 0"


WAITING = """
define i64 @xetl_kernel(ptr %slots) {
entry:
  %slot = getelementptr i64, ptr %slots, i64 8
  %flag = load ptr, ptr %slot
  br label %wait
wait:
  %word = load atomic i64, ptr %flag acquire, align 8
  %go = icmp eq i64 %word, 0
  br i1 %go, label %wait, label %done
done:
  ret i64 0
}
"""


def test_a_launch_by_the_native_entry_counts_as_one() -> None:
    script = f"""
from threading import Thread
from time import sleep
from test_entry import CpuExecutable, ScalarParam, Signature, image_of
image = image_of('''{WAITING}''')
flag_only = Signature((ScalarParam("flag", "i64"),))
waiting = CpuExecutable(image, {{"stored": []}}, flag_only)
teams()
flag = np.zeros(1, np.int64)
thread = Thread(target=waiting.fast, args=(1, 1, 1, flag.ctypes.data))
thread.start()
while not running()[0]:
    sleep(0.001)
print(*teams(), *running())
flag[0] = 1
thread.join()
print(*teams(), *running())
"""
    assert run(SEEING + script, NUMBA_NUM_THREADS="4") == "2 2 1 0\n4 4 0 0"


def test_workers_of_joblib_use_their_share() -> None:
    pytest.importorskip("joblib")
    script = """
import joblib
from xetl_cpu.launch.threads import allowed_threads, usable_cpus
jobs = usable_cpus().count
calls = [joblib.delayed(allowed_threads)() for _ in range(jobs)]
print({given.count for given in joblib.Parallel(n_jobs=jobs)(calls)})
"""
    assert run(script) == "{1}"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_multiprocessing_share_the_cpus(method: str) -> None:
    script = f"""
import multiprocessing, time
from xetl_cpu.launch.threads import allowed_threads, usable_cpus
context = multiprocessing.get_context("{method}")
workers = usable_cpus().count
with context.Pool(workers) as pool:
    print(pool.apply(allowed_threads).count)
with context.Pool(1) as pool:
    print(pool.apply(allowed_threads).count == workers)
"""
    assert run(script) == "1\nTrue"


def test_variables_count_in_workers_too() -> None:
    script = """
import multiprocessing
from xetl_cpu.launch.threads import allowed_threads
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.apply(allowed_threads).count)
"""
    assert run(script, OMP_NUM_THREADS="2") == "2"


@pytest.mark.parametrize(
    ("files", "count"),
    [
        ({"cpu.max": "150000 100000\n"}, 1),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "100000"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ({}, None),
    ],
)
def test_a_container_with_a_quota(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    files: dict[str, str],
    count: int | None,
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr("xetl_cpu.launch.threads._CGROUPS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert usable_cpus().count == (count or 8)

"""Which threads kernels get, also after a fork; each case in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LAUNCH = """
import os, sys, numpy as np
from test_executable import executable, view, TEAM, ArrayParam, dtypes
from xetl_cpu.threads import thread_layer, allowed_threads
kernel = executable(TEAM, ArrayParam("A", dtypes.i64, 1, 0))
def launch():
    total = np.zeros(1, np.int64)
    kernel.launch((1, 1, 1), [view(total)])
    assert total[0] == 64
"""


def run(script: str, **variables: str) -> str:
    kept = {
        name: value
        for name, value in os.environ.items()
        if "NUM_THREADS" not in name and not name.startswith("NUMBA")
    }
    paths = os.pathsep.join([str(HERE), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", LAUNCH + script],
        env={**kept, "PYTHONPATH": paths, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_numba_is_not_imported() -> None:
    script = "launch(); print('numba' in sys.modules, thread_layer().name)"
    assert run(script, NUMBA_NUM_THREADS="2") == "False omp"


@pytest.mark.parametrize(
    ("variables", "count"),
    [
        ({"NUMBA_NUM_THREADS": "3", "OMP_NUM_THREADS": "2"}, 3),
        ({"OMP_NUM_THREADS": "2,1"}, 2),
        ({"OMP_NUM_THREADS": "many"}, len(os.sched_getaffinity(0))),
        ({}, len(os.sched_getaffinity(0))),
    ],
)
def test_number_of_threads(variables: dict[str, str], count: int) -> None:
    script = "launch(); print(thread_layer().num_threads())"
    assert run(script, **variables) == str(count)


def test_one_thread_needs_no_pool() -> None:
    script = "launch(); print(thread_layer().name)"
    assert run(script, NUMBA_NUM_THREADS="1") == "serial"


def test_work_queue_is_used_by_one_python_thread_at_a_time() -> None:
    script = """
from threading import Thread
threads = [Thread(target=lambda: [launch() for _ in range(20)]) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(thread_layer().name)
"""
    variables = {"NUMBA_THREADING_LAYER": "workqueue", "NUMBA_NUM_THREADS": "2"}
    assert run(script, **variables) == "workqueue"


def test_set_num_threads_of_numba_counts() -> None:
    script = """
launch()
import numba
numba.set_num_threads(1)
print(thread_layer().num_threads())
numba.set_num_threads(2)
print(thread_layer().num_threads())
launch()
"""
    assert run(script, NUMBA_NUM_THREADS="2") == "1\n2"


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


@pytest.mark.parametrize("layer", ["omp", "workqueue"])
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

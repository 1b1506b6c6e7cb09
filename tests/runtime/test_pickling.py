"""Kernels go to other processes: by name, and from ``__main__`` by value."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from xetl import xetile
from xetl.xetile import constexpr

ROOT = Path(__file__).parents[2]
TREES = ("", "backends/reference", "backends/cpu")


@xetile.kernel(grid=1)
def add_one(X, SIZE: constexpr = 16):
    x = xetile.init_tile(X, [0], (SIZE,))
    xetile.store_tile(xetile.load_tile(x) + 1.0, x)


def test_a_kernel_of_a_module_is_found_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(add_one)) is add_one


PROGRAM = """
import sys
import numpy as np
from xetl import xetile
from xetl.xetile import constexpr

@xetile.function
def more(v):
    return v + 1.0

@xetile.kernel(grid=1)
def add_one(X, SIZE: constexpr = 16):
    x = xetile.init_tile(X, [0], (SIZE,))
    xetile.store_tile(more(xetile.load_tile(x)), x)

def work(kernel, number):
    x = np.full(16, number, np.float32)
    kernel(x)
    add_one(x)
    return float(x.sum())

"""
POOLS = {
    "joblib": """
import joblib
if __name__ == "__main__":
    calls = [joblib.delayed(work)(add_one, n) for n in range(3)]
    print(joblib.Parallel(n_jobs=2)(calls))
""",
    "spawn": """
import multiprocessing
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.starmap(work, [(add_one, n) for n in range(3)]))
""",
    "fork": """
import multiprocessing
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.starmap(work, [(add_one, n) for n in range(3)]))
""",
    "threads": """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(2) as pool:
    print([*pool.map(work, [add_one] * 3, range(3))])
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("pool", POOLS)
def test_kernels_of_main_in_workers(pool: str, tmp_path: Path) -> None:
    if pool == "joblib":
        pytest.importorskip("joblib")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM + POOLS[pool])
    done = subprocess.run(
        [sys.executable, str(program)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(str(ROOT / tree) for tree in TREES),
            "XETL_CACHE_DIR": str(tmp_path / "cache"),
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[32.0, 48.0, 64.0]\n"

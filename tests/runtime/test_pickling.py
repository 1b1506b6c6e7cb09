"""Kernels go to other processes: by name, and from ``__main__`` by value."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

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


SENDER = (
    PROGRAM.replace("return v + 1.0", "return v + FUNCTION(v)").replace(
        "import sys", "import sys, cloudpickle, xetl"
    )
    + """
FUNCTION = lambda v: countdown(v, 2)

@xetile.function
def countdown(v, n: constexpr):
    return countdown(v, n - 1) if n > 0 else 1.0

def made_in_a_function():
    @xetile.kernel(grid=1)
    def local(X):
        x = xetile.init_tile(X, [0], (16,))
        xetile.store_tile(more(xetile.load_tile(x)), x)
    return local

@xetl.autotune(configs=[xetl.Config(SIZE=16)])
@xetile.kernel(grid=lambda m: (m.X.shape[0] // SIZES[add_one],))
def tuned(X, SIZE: constexpr):
    x = xetile.init_tile(X, [0], (SIZE,))
    xetile.store_tile(more(xetile.load_tile(x)), x)

@xetile.kernel(grid=1)
def wrong(X):
    xetile.store_tile(more(X), xetile.init_tile(X, [0], (16,)))

SIZES = {add_one: 16}
kernels = [add_one, made_in_a_function(), tuned, wrong]
sys.stdout.buffer.write(cloudpickle.dumps((work, kernels)))
"""
)
RECEIVER = """
import pickle, sys
work, (*kernels, wrong) = pickle.load(sys.stdin.buffer)
print([work(kernel, 0) for kernel in kernels])
work(wrong, 0)
"""


def test_kernels_by_value_take_their_source_along(tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    program = tmp_path / "program.py"
    program.write_text(SENDER)
    paths = os.pathsep.join(str(ROOT / tree) for tree in TREES)
    env = {**os.environ, "PYTHONPATH": paths, "XETL_CACHE_DIR": str(tmp_path)}
    run: Any = partial(subprocess.run, env=env, capture_output=True, timeout=120)
    sent = run([sys.executable, str(program)], check=True)
    program.unlink()
    got = run([sys.executable, "-c", RECEIVER], input=sent.stdout)
    assert got.stdout == b"[32.0, 32.0, 32.0]\n", got.stderr.decode()
    text = SENDER.splitlines()
    line = 1 + text.index(
        "    xetile.store_tile(more(X), xetile.init_tile(X, [0], (16,)))"
    )
    assert f"{program}:{line}:" in got.stderr.decode()


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

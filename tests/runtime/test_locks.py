"""Signals and forks in the middle of a compilation: right results, and no waiting."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = """
import os, signal, sys, threading
import numpy as np
import xetl
from xetl import xetile

class Meanwhile:
    def __init__(self): self.action = None
    @property
    def factor(self):
        action, self.action = self.action, None
        if action: action()
        return 2
meanwhile = Meanwhile()

@xetile.kernel
def double(X):
    tile = xetile.init_tile(X, [0], (16,))
    xetile.store_tile(xetile.load_tile(tile) * meanwhile.factor, tile)

def launch():
    X = np.ones(16, "f4")
    double[1](X)
    return float(X[0])

TEXT = double.ir("xetile", "f32[M]")
"""

SIGNAL = """
seen = []
signal.signal(signal.SIGUSR1, lambda *_: seen.append(launch()))
meanwhile.action = lambda: signal.raise_signal(signal.SIGUSR1)
print(launch(), seen)
"""

SIGNAL_IN_TEXT = """
from xetl import compiler
kernel = xetl.load_mlir(TEXT)["double"]
def run():
    X = np.ones(16, "f4")
    kernel[1](X)
    return float(X[0])
seen = []
signal.signal(signal.SIGUSR1, lambda *_: seen.append(run()))
make, left = compiler.compile_module, [1]
def interrupted(*args):
    if left:
        left.pop()
        signal.raise_signal(signal.SIGUSR1)
    return make(*args)
compiler.compile_module = interrupted
print(run(), seen)
"""

FORK = """
inside, go_on = threading.Event(), threading.Event()
def wait():
    inside.set()
    go_on.wait(50)
meanwhile.action = wait
results = []
thread = threading.Thread(target=lambda: results.append(launch()))
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    meanwhile.action = None
    os._exit(int(launch()))
print(float(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])), end=" ")
go_on.set()
thread.join()
print(results)
"""

FORK_IN_LLVM = """
import llvmlite.binding as llvm
launch()
lock = llvm.ffi.lib._lock
inside = threading.Event()
def hold():
    with lock:
        inside.set()
        threading.Event().wait(0.5)
threading.Thread(target=hold).start()
inside.wait()
child = os.fork()
if child == 0:
    os._exit(int(launch_other()))
print(float(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])), [launch()])
"""

OTHER = """
@xetile.kernel
def other(X):
    tile = xetile.init_tile(X, [0], (16,))
    xetile.store_tile(xetile.load_tile(tile) + 1, tile)
def launch_other():
    X = np.ones(16, "f4")
    other[1](X)
    return X[0]
"""


@pytest.mark.parametrize(
    "script",
    [SIGNAL, SIGNAL_IN_TEXT, FORK, OTHER + FORK_IN_LLVM],
    ids=["signal", "signal in a text kernel", "fork", "fork while LLVM works"],
)
def test_nobody_waits_for_ever(script: str, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(KERNELS + script)
    found = subprocess.run(
        [sys.executable, str(path)],
        env={"PYTHONPATH": ":".join(sys.path), "XETL_CACHE": "0"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert found.stdout.split() == ["2.0", "[2.0]"], found.stderr


PLAIN_LOCKS = {
    "xetl/locks.py": "what the others are made of",
    "backends/reference/xetl_reference/subgroup_scheduler.py": "made for one run",
}


def test_there_are_no_other_locks_that_could_hang() -> None:
    root = Path(__file__).parents[2]
    files = [f for tree in ("xetl", "backends") for f in (root / tree).rglob("*.py")]
    plain = [f for f in files if re.search(r"\bR?Lock\(\)", f.read_text("utf-8"))]
    assert {str(f.relative_to(root)) for f in plain} == set(PLAIN_LOCKS)

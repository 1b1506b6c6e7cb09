"""The first launch of a GEMM, and a launch again, through backend ``xegpu``.

The first launch is measured in a process of its own, from the import of xetl to the
result: compiling, starting the driver, building. Bars: 1.2 s on the CPU's OpenCL
driver, 15 us for a launch like an earlier one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
from harness import write_csv

FIRST = "first launch of a GEMM"
CACHED = "first launch, SPIR-V on disk"
AGAIN = "launch again"
SOME_WORK = "launch again, 1,000 elements"
NO_WAIT = "launch again, wait=False"
PLAN = "plan()"
_ENVIRONMENT = {"XETL_BACKEND": "xegpu"}


def gemm_once() -> None:
    """Time the first GEMM of this process, from the import on, and print it."""
    start = perf_counter()
    from kernels import gemm  # noqa: PLC0415 - a part of what is measured

    A, B = (np.ones((256, 256), np.float16) for _ in range(2))
    C = np.zeros((256, 256), np.float32)
    gemm(A, B, C)
    seconds = perf_counter() - start
    assert np.all(C == 256)
    print(seconds)


def first_launches(folder: Path) -> Iterator[tuple[str, float]]:
    """Seconds of a first launch, with an empty cache and with a filled one."""
    variables = {**os.environ, **_ENVIRONMENT, "XETL_CACHE_DIR": str(folder)}
    for name in (FIRST, CACHED):
        command = [sys.executable, __file__, "--once"]
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, check=True
        )
        yield name, float(done.stdout)


def relaunches(calls: int, rounds: int) -> Iterator[tuple[str, float]]:
    """Seconds of a launch like an earlier one."""
    os.environ.update(_ENVIRONMENT)
    from kernels import add  # noqa: PLC0415 - xetl is not loaded for the others

    X, Y, Z = (np.ones(16, np.float32) for _ in range(3))
    launcher = add[1]  # 16 elements: almost nothing to do
    more = [np.ones(1000, np.float32) for _ in range(3)]

    def without_waiting() -> None:
        launcher(X, Y, Z, 16, wait=False).wait()

    found = {
        AGAIN: lambda: launcher(X, Y, Z, 16),
        SOME_WORK: lambda: launcher(*more, 1000),
        NO_WAIT: without_waiting,
        PLAN: add.bind(X, Y, Z, 16, grid=1),
    }
    for name, call in found.items():
        call()
        best = min(timeit.repeat(call, number=calls, repeat=rounds))
        yield name, best / calls


def main() -> None:
    """Print a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="for the benchmark itself")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=3000)
    options = parser.parse_args()
    if options.once:
        gemm_once()
        return
    with tempfile.TemporaryDirectory() as folder:
        found = [*first_launches(Path(folder))]
    found += relaunches(options.calls, options.rounds)
    for name, seconds in found:
        unit, scale = ("s", 1.0) if seconds > 0.1 else ("us", 1e6)
        print(f"{name:32} {seconds * scale:8.2f} {unit}")
    write_csv("bench_xegpu", [{"what": n, "seconds": s} for n, s in found])


if __name__ == "__main__":
    main()

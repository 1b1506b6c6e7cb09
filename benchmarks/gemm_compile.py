"""How long products take to compile: a part of `gemm.py`, each in a fresh process.

In milliseconds, imports of the compiler not counted, the best of several processes:

* micro-kernel   LLVM IR and machine code of one block GEMM, nothing compiled before it;
* gemm set       the first call of the kernel of the language page, nothing cached;
* from disk      that call where the cache on disk has the kernel.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from time import perf_counter

import numpy as np

IMPORTS = ("kernels", "llvmlite.ir", "xetl.compiler", "xetl_cpu.pipeline")


def micro_kernel() -> float:
    """Milliseconds for the block GEMM of f32 tiles of 256 x 256."""
    llvm = import_module("xetl_cpu.llvm")
    build = import_module("xetl_cpu.build")
    targets = import_module("xetl_cpu.targets")
    kernels = import_module("xetl_cpu.microkernels")
    target = targets.find_target("host")
    targets.target_machine(target)
    start = perf_counter()
    module = llvm.ir.Module()
    blocking = kernels.choose_blocking(target, "f32", 256, 256)
    kernels.emit_block_gemm(module, target, blocking)
    build.assemble(str(module), target)
    return 1e3 * (perf_counter() - start)


def first_call() -> float:
    """Milliseconds of a launch that has to compile or to load."""
    if not os.environ.get("XETL_CACHE_DIR"):
        for name in IMPORTS:
            import_module(name)
        targets = import_module("xetl_cpu.targets")
        targets.target_machine(targets.find_target("host"))
    import_module("xetl")
    gemm = import_module("kernels").gemm
    A, B, C = (np.ones((64, 64), np.float32) for _ in range(3))
    start = perf_counter()
    gemm(A, B, C)
    elapsed = 1e3 * (perf_counter() - start)
    assert (C == 64).all()
    return elapsed


WORKERS: dict[str, Callable[[], float]] = {
    "micro-kernel": micro_kernel,
    "gemm set": first_call,
    "from disk": first_call,
}


def measure(rounds: int) -> list[dict[str, object]]:
    """Rows for `gemm.py`'s file."""
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as cache:
        for name in WORKERS:
            kept = {"XETL_CACHE_DIR": cache} if name == "from disk" else {}
            env = {**os.environ, "XETL_CACHE": "1" if kept else "0", **kept}
            # The first run fills the cache.
            best = min(_run(name, env) for _ in range(rounds + 1))
            print(f"{name:14} {best:8.1f} ms")
            row = {"part": "compile", "dtype": "f32", "shape": name, "threads": ""}
            rows.append(row | {"contestant": "xetl, ms", "rate": f"{best:.3f}"})
    return rows


def _run(name: str, env: dict[str, str]) -> float:
    done = subprocess.run(
        [sys.executable, __file__, name],
        cwd=Path(__file__).parent,
        env=env,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    print(WORKERS[sys.argv[1]]())

"""How long products take to compile: a part of `gemm.py`, each in a fresh process.

In milliseconds, the best of several processes. No setting of xetl that the user's
environment makes counts, nor that Python keep no bytecode.

* micro-kernel   LLVM IR and machine code of one block GEMM, nothing compiled before it;
* gemm set       the first call of the kernel of the language page, no cache: front end,
  passes, LLVM, loading the code, starting the threads, the product. Not counted are the
  imports of xDSL, llvmlite and the compiler, and LLVM's tables of the processor;
* from disk      that call where the cache on disk has the kernel, with every import but
  those of `import xetl` and NumPy.
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
    blocks = import_module("xetl_cpu.microkernels.blocking")
    kernels = import_module("xetl_cpu.microkernels.gemm")
    target = targets.find_target("host")
    targets.target_machine(target)
    start = perf_counter()
    module = llvm.ir.Module()
    blocking = blocks.choose_blocking(target, "f32", 256, 256)
    kernels.emit_block_gemm(module, target, blocking)
    build.assemble(str(module), target)
    return 1e3 * (perf_counter() - start)


def gemm_set() -> float:
    """Milliseconds of a launch that has to compile."""
    for name in IMPORTS:
        import_module(name)
    targets = import_module("xetl_cpu.targets")
    targets.target_machine(targets.find_target("host"))
    return first_call()


def first_call() -> float:
    """Milliseconds of the first launch in a process."""
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
    "gemm set": gemm_set,
    "from disk": first_call,
}


def measure(rounds: int) -> list[dict[str, object]]:
    """Rows for `gemm.py`'s file."""
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as cache:
        for name in WORKERS:
            is_kept = name == "from disk"
            settings = {"XETL_CACHE": str(int(is_kept)), "XETL_CACHE_DIR": cache}
            # The first run fills the cache.
            best = min(_run(name, settings) for _ in range(rounds + 1))
            print(f"{name:14} {best:8.1f} ms")
            row = {"part": "compile", "dtype": "f32", "shape": name, "threads": ""}
            rows.append(row | {"contestant": "xetl, ms", "rate": f"{best:.3f}"})
    return rows


def _run(name: str, settings: dict[str, str]) -> float:
    left_out = ("XETL_", "PYTHONDONTWRITEBYTECODE")
    others = {k: v for k, v in os.environ.items() if not k.startswith(left_out)}
    done = subprocess.run(
        [sys.executable, __file__, name],
        cwd=Path(__file__).parent,
        env=others | settings,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    print(WORKERS[sys.argv[1]]())

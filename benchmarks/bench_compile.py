"""Cold compile of the GEMM of the language page, in a fresh process without a cache.

First what a user waits for: the first call, imports of the compiler included.  Then
where it goes, from a process that times every step of the compiler.  The best of
several processes counts.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

from harness import write_csv

Phase = tuple[str, float]


def timed(*modules: str) -> Iterator[Phase]:
    """Import each, which is why they are not imported above."""
    for module in modules:
        start = perf_counter()
        import_module(module)
        yield f"import {module}", perf_counter() - start


def ones(count: int) -> list[Any]:
    """Matrices to multiply."""
    numpy = import_module("numpy")
    return [numpy.ones((64, 64), numpy.float32) for _ in range(count)]


def first_call() -> Iterator[Phase]:
    """In a worker: import, then a launch that compiles."""
    yield from timed("numpy", "xetl", "kernels")
    A, B, C = ones(3)
    start = perf_counter()
    import_module("kernels").gemm(A, B, C)
    yield "FIRST CALL", perf_counter() - start
    assert (C == 64).all()


def phases() -> Iterator[Phase]:
    """In a worker: the same steps as `xetl.compiler.compile_kernel`, timed."""
    yield from timed("numpy", "kernels", "llvmlite.binding", "xdsl.ir", "xetl.compiler")
    gemm = import_module("kernels").gemm
    start = perf_counter()
    compiler = import_module("xetl.compiler")
    pipeline = import_module("xetl.pipeline")
    backend = import_module("xetl.backend").find_backend("cpu")
    target = backend.default_target()
    backend.passes(target)
    yield "find the backend, its passes", perf_counter() - start
    start = perf_counter()
    parameters = import_module("xetl.runtime.parameters").Parameters.of(gemm.fn)
    values = parameters.bind(ones(3), {})
    specialize = import_module("xetl.runtime.specialize").specialize
    signature = specialize(parameters, values).signature
    yield "bind and specialise", perf_counter() - start
    start = perf_counter()
    module = compiler.build(gemm.fn, signature, backend, target)
    for step in pipeline.lower(module, backend, target):
        yield step.name, perf_counter() - start
        start = perf_counter()
    artifact = backend.build(step.module, signature, target)
    yield "LLVM and object code", perf_counter() - start
    start = perf_counter()
    backend.load(artifact, signature)
    yield "load", perf_counter() - start


WORKERS = {"first-call": first_call, "phases": phases}


def run(worker: str) -> list[Phase]:
    """The phases of a fresh process."""
    done = subprocess.run(
        [sys.executable, __file__, "--worker", worker],
        cwd=Path(__file__).parent,
        env={**os.environ, "XETL_CACHE": "0", "PYTHONDONTWRITEBYTECODE": ""},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout)


def main() -> None:
    """Print a line for each phase."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", choices=WORKERS, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(list(WORKERS[options.worker]())))
        return
    rows = []
    for worker in WORKERS:
        rounds = [run(worker) for _ in range(options.rounds)]
        print(f"-- {worker}")
        for same in zip(*rounds):
            name, ms = same[0][0], min(seconds for _, seconds in same) * 1e3
            print(f"{name:28} {ms:8.1f} ms")
            rows.append({"worker": worker, "phase": name, "ms": ms})
        total = min(sum(seconds for _, seconds in phases) for phases in rounds) * 1e3
        print(f"{'total':28} {total:8.1f} ms")
    write_csv("bench_compile", rows)


if __name__ == "__main__":
    main()

"""What the benchmarks share: fair turns, a table and a CSV file.

Each library runs in a process of its own, for the idle threads of one slow another.
The processes take turns of a fraction of a second, round after round, so that noise and
frequency hit all alike; the best run of each counts.  A script calls `compare`, and is
started again by it as `script --worker LIBRARY`.

What a library does for a benchmark stands in `library_<name>.py`: a function named
like the operation, from the fields of a case to a `Job`, or None if it cannot do it.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Self

RESULTS = Path(__file__).parent / "results"
SLOWING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_ENABLE_INSTRUCTIONS")
"""Variables that environments set and that hold a library to code for older CPUs."""

Case = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """What a worker times.

    Attributes:
        calls: ways to do the same; the fastest counts.
        work: done by a call, in the unit of the table (times seconds).
    """

    calls: Sequence[Callable[[], object]]
    work: float


def environment(library: str, threads: int, scratch: Path) -> dict[str, str]:
    """What lets ``library`` run as fast as it can on ``threads`` threads."""
    env = {name: value for name, value in os.environ.items() if name not in SLOWING}
    for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        env[f"{name}_NUM_THREADS"] = str(threads)
    env["KMP_BLOCKTIME"] = "0"
    compiler = shutil.which("cc")
    if library == "torch" and compiler is not None:
        # MKL uses AVX-512 on CPUs that say they are Intel's; this says it for them.
        source, shim = scratch / "intel.c", scratch / "intel.so"
        source.write_text("int mkl_serv_intel_cpu_true(void) { return 1; }\n")
        subprocess.run([compiler, "-shared", "-fPIC", source, "-o", shim], check=True)
        env["LD_PRELOAD"] = str(shim)
    return env


class Worker:
    """A process that runs one library with a number of threads."""

    def __init__(self, library: str, threads: int, scratch: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, sys.argv[0], "--worker", library],
            env=environment(library, threads, scratch),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait()

    def turn(self, case: Case, seconds: float) -> tuple[float, float] | None:
        """The best time of a call in this turn, and the work of it."""
        request = json.dumps({"case": case, "seconds": seconds})
        print(request, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"a worker failed on {case}")
        return json.loads(answer)


def serve(library: str, operation: str) -> None:
    """A worker's life: a turn for every line of input."""
    prepare = getattr(importlib.import_module(f"library_{library}"), operation)
    current: Case | None = None
    job: Job | None = None
    for line in sys.stdin:
        request = json.loads(line)
        if request["case"] != current:
            current, job = request["case"], None  # frees the arrays of the last case
            job = prepare(**current)
        answer = None
        if job is not None:
            best = min(_best_seconds(call, request["seconds"]) for call in job.calls)
            answer = best, job.work
        print(json.dumps(answer), flush=True)


def _best_seconds(call: Callable[[], object], seconds: float) -> float:
    call()
    best, end = float("inf"), perf_counter() + seconds
    while (start := perf_counter()) < end:
        call()
        best = min(best, perf_counter() - start)
    return best


def compare(
    operation: str,
    cases: Iterable[Case],
    *,
    unit: str,
    peers: Sequence[str] = ("numpy", "torch"),
    limit: str = "limit",
) -> None:
    """Run all cases, print a table, write ``results/<script>.csv``.

    Args:
        operation: the function to call in the modules of the libraries.
        cases: what to measure; shown in the table.
        unit: of a job's work per second.
        peers: libraries that xetl is compared with; the best of them counts.
        limit: what ``library_limit`` measures, the most that the machine can do.
    """
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--worker", metavar="LIBRARY", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="of one turn")
    parser.add_argument("--only", default="", help="cases whose text contains this")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    if options.worker:
        serve(options.worker, operation)
        return
    cases = [case for case in cases if options.only in _text(case)]
    libraries = ["xetl", *peers, "limit"]
    rows: list[dict[str, object]] = []
    print(
        f"in {unit}; ratio: xetl to the best of {' and '.join(peers)}; limit: {limit}"
    )
    _print_row(["threads", "case", *libraries, "ratio", "of limit"])
    with tempfile.TemporaryDirectory() as scratch:
        for count in options.threads:
            if count > len(os.sched_getaffinity(0)):
                continue
            with ExitStack() as stack:
                workers = {
                    name: stack.enter_context(Worker(name, count, Path(scratch)))
                    for name in libraries
                }
                for case in cases:
                    rates = _rates(workers, case, options.rounds, options.seconds)
                    rows += _report(count, case, rates, peers, unit)
    write_csv(Path(sys.argv[0]).stem, rows)


def _rates(
    workers: dict[str, Worker], case: Case, rounds: int, seconds: float
) -> dict[str, float]:
    """The best rate of each library that can do the case."""
    rates: dict[str, float] = {}
    for _ in range(rounds):
        for name, worker in workers.items():
            answer = worker.turn(case, seconds)
            if answer is not None:
                rates[name] = max(rates.get(name, 0), answer[1] / answer[0])
        workers = {name: w for name, w in workers.items() if name in rates}
    return rates


def _report(
    threads: int, case: Case, rates: dict[str, float], peers: Sequence[str], unit: str
) -> list[dict[str, object]]:
    ours, known = rates["xetl"], [rates[name] for name in peers if name in rates]
    shown = [
        f"{rates[n]:.0f}" if n in rates else "-" for n in ("xetl", *peers, "limit")
    ]
    ratio = f"{ours / max(known):.2f}" if known else "-"
    share = f"{ours / rates['limit']:.0%}"
    _print_row([str(threads), _text(case), *shown, ratio, share])
    return [
        {"threads": threads, **case, "library": name, unit: round(rate, 3)}
        for name, rate in rates.items()
    ]


def _text(case: Case) -> str:
    return " ".join(str(value) for value in case.values())


def _print_row(cells: Sequence[str]) -> None:
    first, second, *rest = cells
    print(f"{first:>7}  {second:<14}", *(f"{cell:>9}" for cell in rest), flush=True)


def write_csv(name: str, rows: Sequence[dict[str, object]]) -> None:
    """Keep ``rows`` in the folder of results."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    print(f"written to {path}")

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Self

RESULTS = Path(
    os.environ.get("XETL_BENCHMARK_RESULTS", Path(__file__).parent / "results")
)
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
        try:
            print(request, file=self._process.stdin, flush=True)
        except BrokenPipeError:  # its own message says why
            raise SystemExit("a worker did not start") from None
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"a worker failed on {case}")
        return json.loads(answer)


def serve(library: str, operation: str) -> None:
    """A worker's life: a turn for every line of input."""
    try:
        prepare = getattr(importlib.import_module(f"library_{library}"), operation)
    except ModuleNotFoundError as missing:
        if missing.name != "torch":  # the only one that no extra for tests installs
            raise
        print(f"{library} is left out: no torch here", file=sys.stderr)
        prepare = _unavailable
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


def _unavailable(**_: object) -> None:
    """No job."""


def _best_seconds(call: Callable[[], object], seconds: float) -> float:
    call()
    best, now = float("inf"), perf_counter()
    end = now + seconds
    while best == float("inf") or now < end:
        start = perf_counter()
        call()
        now = perf_counter()
        best = min(best, now - start)
    return best


def compare(
    operation: str,
    cases: Iterable[Case],
    *,
    unit: str,
    limit: str,
    peers: Sequence[str] = ("numpy", "torch"),
) -> None:
    """Run all cases, print a table, write ``results/<script>.csv``.

    Args:
        operation: the function to call in the modules of the libraries.
        cases: what to measure; shown in the table.
        unit: of a job's work per second.
        limit: a "library" that shows the most that the machine can do.
        peers: libraries that xetl is compared with; the best of them counts.
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
    libraries = ["xetl", *peers, limit]
    print(f"in {unit}; ratio: xetl to the best of {' and '.join(peers)}")
    _print_row(["threads", "case", *libraries, "ratio", f"of {limit}"])
    rows: list[dict[str, object]] = []
    for threads in options.threads:
        if threads > len(os.sched_getaffinity(0)):
            continue
        for case, rates in _measure(libraries, cases, threads, options):
            _print_row([str(threads), _text(case), *_cells(rates, libraries)])
            rows += [
                {"threads": threads, **case, "library": name, unit: round(rate, 3)}
                for name, rate in rates.items()
            ]
    write_csv(Path(sys.argv[0]).stem, rows)


def _measure(
    libraries: Sequence[str],
    cases: Iterable[Case],
    threads: int,
    options: argparse.Namespace,
) -> Iterator[tuple[Case, dict[str, float]]]:
    """For each case, the best rate of each library that can do it."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        workers = {
            name: stack.enter_context(Worker(name, threads, scratch))
            for name in libraries
        }
        for case in cases:
            rates: dict[str, float] = {}
            for _ in range(options.rounds):
                for name, worker in workers.items():
                    answer = worker.turn(case, options.seconds)
                    if answer is not None:
                        rates[name] = max(rates.get(name, 0), answer[1] / answer[0])
            yield case, rates


def _cells(rates: dict[str, float], libraries: Sequence[str]) -> list[str]:
    """The rate of each, the ratio to the best peer, the share of the limit."""
    ours, *peers, limit = libraries
    best = max((rates[name] for name in peers if name in rates), default=None)
    cells = [f"{rates[name]:.0f}" if name in rates else "-" for name in libraries]
    cells.append(f"{rates[ours] / best:.2f}" if best else "-")
    cells.append(f"{rates[ours] / rates[limit]:.0%}" if limit in rates else "-")
    return cells


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

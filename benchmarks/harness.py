"""What the benchmarks share: fair turns, a table and a CSV file.

Each contestant runs in a process of its own, for the idle threads of one library slow
another. The processes take turns of a fraction of a second, round after round, so that
noise and frequency hit all alike; the best run of each counts. Shares of a limit are
those of the rounds, the median of them: the clock changes from one to the next. A
script makes a `Contest`, and is started again by it as
`script --worker MODULE:FUNCTION`.

What a library does for a benchmark stands in `library_<name>.py`: functions from the
fields of a case to a `Job`, or None if it cannot do that.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Self

from xetl.runtime.measure import time_calls

RESULTS = Path(
    os.environ.get("XETL_BENCHMARK_RESULTS", Path(__file__).parent / "results")
)
SLOWING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_ENABLE_INSTRUCTIONS")
"""Variables that environments set and that hold a library to code for older CPUs."""

Case = dict[str, Any]
Rates = dict[str, list[float]]
"""Of each contestant that can do a case, round by round."""


@dataclass(frozen=True)
class Job:
    """What a worker times.

    Attributes:
        calls: ways to do the same; the fastest counts.
        work: done by a call, in the unit of the table (times seconds).
    """

    calls: Sequence[Callable[[], object]]
    work: float


@dataclass(frozen=True)
class Contestant:
    """A column of the table.

    Attributes:
        name: its heading.
        function: what makes its jobs, as ``module:function``.
        variables: of its environment, beside those that all have.
    """

    name: str
    function: str
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Contest:
    """Who takes turns, and what is compared.

    Attributes:
        unit: of a job's work per second.
        ours: each of them is compared with the best peer, and with the limit.
        peers: may be none.
        limit: shows the most that the machine can do; may be None.
    """

    unit: str
    ours: Sequence[Contestant]
    peers: Sequence[Contestant] = ()
    limit: Contestant | None = None

    def everybody(self) -> list[Contestant]:
        """In the order of the columns."""
        return [*self.ours, *self.peers, *([self.limit] if self.limit else [])]

    def run(
        self, cases: Iterable[Case], options: argparse.Namespace
    ) -> list[dict[str, object]]:
        """Measure the cases that the options ask for, print a table, return its rows.

        A row has the fields of the case, ``threads``, ``contestant`` and, last, the
        rate in the contest's unit.
        """
        cases = [
            case
            for case in cases
            if any(text in text_of(case) for text in options.only)
        ]
        if not cases:
            return []
        _print_row(["threads", "case", *self._headings()])
        rows: list[dict[str, object]] = []
        for threads in options.threads:
            if threads > len(os.sched_getaffinity(0)):
                continue
            for case, rates in _measure(self.everybody(), cases, threads, options):
                _print_row([str(threads), text_of(case), *self._cells(rates)])
                rows += [
                    {
                        **case,
                        "threads": threads,
                        "contestant": n,
                        "rate": f"{max(r):.3f}",
                    }
                    for n, r in rates.items()
                ]
        return rows

    def _headings(self) -> list[str]:
        names = [each.name for each in self.everybody()]
        if self.peers:
            names += [f"{each.name}:best" for each in self.ours]
        if self.limit is not None:
            names += [f"{each.name}:{self.limit.name}" for each in self.ours]
        return names

    def _cells(self, rates: Rates) -> list[str]:
        """The rate of each; the ratios to the best peer; the shares of the limit."""
        names = [each.name for each in self.everybody()]
        cells = [f"{max(rates[name]):.0f}" if name in rates else "-" for name in names]
        peers = [max(rates[p.name]) for p in self.peers if p.name in rates]
        have = [rates.get(each.name) for each in self.ours]
        if self.peers:
            best = max(peers, default=None)
            cells += [f"{max(r) / best:.2f}" if r and best else "-" for r in have]
        if self.limit is not None:
            most = rates.get(self.limit.name)
            cells += [f"{_share(r, most):.1%}" if r and most else "-" for r in have]
        return cells


def parse_options(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Add what every contest understands; a worker serves, and never returns."""
    parser.add_argument("--worker", metavar="FUNCTION", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="of one turn")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="cases whose text contains one of these"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    if options.worker:
        _serve(options.worker)
        raise SystemExit
    return options


def environment(contestant: Contestant, threads: int, scratch: Path) -> dict[str, str]:
    """What lets a contestant run as fast as it can on ``threads`` threads."""
    env = {name: value for name, value in os.environ.items() if name not in SLOWING}
    for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        env[f"{name}_NUM_THREADS"] = str(threads)
    env["KMP_BLOCKTIME"] = "0"
    compiler = shutil.which("cc")
    if contestant.function.startswith("library_torch") and compiler is not None:
        # MKL uses AVX-512 on CPUs that say they are Intel's; this says it for them.
        source, shim = scratch / "intel.c", scratch / "intel.so"
        source.write_text("int mkl_serv_intel_cpu_true(void) { return 1; }\n")
        subprocess.run([compiler, "-shared", "-fPIC", source, "-o", shim], check=True)
        env["LD_PRELOAD"] = str(shim)
    return env | dict(contestant.variables)


class Worker:
    """A process in which one contestant runs with a number of threads."""

    def __init__(self, contestant: Contestant, threads: int, scratch: Path) -> None:
        self._name = contestant.name
        self._process = subprocess.Popen(
            [sys.executable, sys.argv[0], "--worker", contestant.function],
            env=environment(contestant, threads, scratch),
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
            raise SystemExit(f"`{self._name}` did not start") from None
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"`{self._name}` failed on {case}")
        return json.loads(answer)


def _serve(where: str) -> None:
    """A worker's life: a turn for every line of input."""
    module, _, function = where.partition(":")
    try:
        prepare = getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as missing:
        if missing.name != "torch":  # the only one that no extra for tests installs
            raise
        print(f"{where} is left out: no torch here", file=sys.stderr)
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
            seconds = request["seconds"]
            best = min(min(time_calls(call, seconds)) for call in job.calls)
            answer = best, job.work
        print(json.dumps(answer), flush=True)


def _unavailable(**_: object) -> None:
    """No job."""


def _measure(
    contestants: Sequence[Contestant],
    cases: Iterable[Case],
    threads: int,
    options: argparse.Namespace,
) -> Iterator[tuple[Case, Rates]]:
    """For each case, the rates of each contestant that can do it."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        workers = {
            each.name: stack.enter_context(Worker(each, threads, scratch))
            for each in contestants
        }
        for case in cases:
            rates: Rates = {}
            for _ in range(options.rounds):
                for name, worker in workers.items():
                    answer = worker.turn(case, options.seconds)
                    if answer is not None:
                        rates.setdefault(name, []).append(answer[1] / answer[0])
            yield case, rates


def _share(rates: Sequence[float], limits: Sequence[float]) -> float:
    """What part of a limit is reached, in the middle one of the rounds."""
    return median(r / limit for r, limit in zip(rates, limits, strict=True))


def text_of(case: Case) -> str:
    """A case in a table, and what ``--only`` looks in."""
    return " ".join(str(value) for value in case.values())


def _print_row(cells: Sequence[str]) -> None:
    first, second, *rest = cells
    print(f"{first:>7}  {second:<20}", *(f"{cell:>12}" for cell in rest), flush=True)


def write_csv(name: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Keep ``rows`` in the folder of results."""
    if not rows:
        return
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    print(f"written to {path}")


def update_csv(name: str, rows: Sequence[Mapping[str, object]]) -> None:
    """As `write_csv`, but rows of earlier runs stay unless they were measured again.

    Two rows are of one measurement if they differ in nothing but their last field.
    """
    if not rows:
        return
    known = {tuple(map(str, list(row.values())[:-1])): row for row in read_csv(name)}
    new = {tuple(map(str, list(row.values())[:-1])): row for row in rows}
    write_csv(name, list((known | new).values()))


def read_csv(name: str) -> list[dict[str, str]]:
    """The rows of earlier runs; none if there was none."""
    path = RESULTS / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))

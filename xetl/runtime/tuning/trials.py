"""Trials: configs are compiled, checked against the first one, and timed.

Worker processes compile configs; the results come through the disk cache. A worker is a
fork: it has the kernel, the arguments and the compiler already. It only compiles; it
launches nothing and starts no threads. If other threads run, a fork could copy a lock
that is held: then there are no workers, and the caller compiles everything. If tuning
takes long, a terminal shows a progress bar.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter, sleep
from typing import Any, NamedTuple, Self

import numpy as np

from xetl.backend import ArrayView
from xetl.errors import LaunchError, TuningWarning, XetlError
from xetl.runtime.call_site import warn_at_caller
from xetl.runtime.executables import WOULD_COMPILE, Prepared
from xetl.runtime.launcher import Plan
from xetl.runtime.measure import time_calls
from xetl.runtime.tuning.config import Call, Config
from xetl.runtime.tuning.copies import Copies, difference
from xetl.settings import no_compile

_POLL = 0.003
_LEAST = 3
"""The least number of jobs for workers: fewer are done before workers have started."""

_MOST = 8192
"""The most jobs: their numbers have to fit the pipe."""


def run_in_workers(jobs: Sequence[Callable[[], object]], seconds: float) -> bool:
    """Run jobs in as many processes as there are CPUs; their results are dropped.

    Args:
        jobs: functions that write files; errors are ignored.
        seconds: workers that take longer are killed.

    Returns:
        Whether workers ran: they do not if there are few jobs or other threads.
    """
    count = min(len(os.sched_getaffinity(0)), len(jobs))
    if len(jobs) < _LEAST or count < 2 or threading.active_count() > 1:
        return False
    reading, writing = os.pipe()
    for index in range(min(len(jobs), _MOST)):
        os.write(writing, index.to_bytes(2, "little"))
    os.close(writing)
    workers: list[int] = []
    try:
        for _ in range(count):
            workers.append(_start(jobs, reading))
        end = perf_counter() + seconds
        while workers and perf_counter() < end:
            workers = [each for each in workers if not _has_ended(each)]
            sleep(_POLL)
    finally:
        os.close(reading)
        for worker in workers:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(worker, 0)
    return True


def _start(jobs: Sequence[Callable[[], object]], numbers: int) -> int:
    parent = os.getpid()
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads of libraries: they hold no locks
        worker = os.fork()
    if worker:
        return worker
    try:
        _work(jobs, numbers, parent)
    finally:
        os._exit(0)  # nothing of the parent's is flushed or closed


def _work(jobs: Sequence[Callable[[], object]], numbers: int, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)  # the parent shows the output of `static_print`
    os.dup2(nothing, 2)
    while os.getppid() == parent:
        number = os.read(numbers, 2)
        if not number:
            return
        with warnings.catch_warnings(), suppress(Exception):
            warnings.simplefilter("ignore")
            jobs[int.from_bytes(number, "little")]()


def _has_ended(worker: int) -> bool:
    try:
        return os.waitpid(worker, os.WNOHANG)[0] == worker
    except ChildProcessError:  # other code has waited for it
        return True


_LONG = 2.0
"""Seconds before a bar appears."""


class Progress:
    """Counts steps; draws them on a terminal after a while, if rich is installed."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._done = 0
        self._start = perf_counter()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, what: str) -> None:
        """Count a step; ``what`` describes it."""
        self._done += 1
        if self._bar is None and perf_counter() - self._start > _LONG:
            self._show()
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, description=what)

    def _show(self) -> None:
        if not sys.stderr.isatty():
            return
        try:
            progress: Any = importlib.import_module("rich.progress")
            console: Any = importlib.import_module("rich.console")
        except ImportError:
            return
        self._bar = progress.Progress(
            console=console.Console(stderr=True), transient=True
        )
        self._task = self._bar.add_task("tuning", total=self._steps)
        self._bar.start()


_REP = 0.06
"""Seconds for which a config is timed, if the user does not say."""

_SLOW = 1.5
"""A config is not timed further if its first call takes so many times the best time."""

_FINALISTS = 3
"""The number of the best configs that are timed again, in turns."""

_WORTH_WORKERS = 0.05
"""Seconds: a config that is ready sooner was in the cache."""

_COMPILING = 0.6
"""The fraction of the budget for compiling configs."""

_LATE = "the budget was over before it was compiled"

_ESTIMATED = 3.0
"""Configs whose estimate exceeds the best one by this factor are left out."""


@dataclass
class Trial:
    """The outcome for one config.

    Attributes:
        milliseconds: the time of a launch; None if it was not timed.
        problem: why it was not timed, or must not be used; else None.
        is_dropped: whether it fails or gives wrong results.
    """

    config: Config
    milliseconds: float | None = None
    problem: str | None = None
    is_dropped: bool = False


@dataclass(frozen=True)
class Options:
    """The options of trials.

    Attributes:
        budget: seconds for all trials.
        warmup: seconds for which a config runs before it is timed.
        rep: seconds for which it is timed.
        zeroed: names of arrays that are filled with zeros before each launch.
        restored: names of arrays that get their old elements back before each launch.
        bench: the user's own ``do_bench(call, quantiles=...)``, or None.
    """

    budget: float = 20.0
    warmup: float = 0.0
    rep: float = _REP
    zeroed: Sequence[str] = ()
    restored: Sequence[str] = ()
    bench: Callable[..., Any] | None = None


class _Ready(NamedTuple):
    trial: Trial
    prepared: Prepared
    estimate: float | None


@dataclass
class Trials:
    """The trials of one call: one for each config, in the order of the declaration."""

    call: Call
    options: Options
    trials: list[Trial]
    _errors: list[XetlError] = field(default_factory=list[XetlError])

    def run(self) -> Trial:
        """Return the trial of the best config, or raise the error of the first."""
        start = perf_counter()
        end = start + self.options.budget
        with Progress(2 * len(self.trials)) as progress:
            # The rest of the budget is for timing.
            ready = self._compiled(start + _COMPILING * self.options.budget, progress)
            if not ready:
                raise self._errors[0]
            self._time_all(_pruned(ready), end, progress)
        timed = [each for each in self.trials if each.milliseconds is not None]
        if not timed:
            raise self._errors[0]
        return min(timed, key=lambda each: each.milliseconds or 0.0)

    # Compiling ---------------------------------------------------------------------

    def _compiled(self, end: float, progress: Progress) -> list[_Ready]:
        """Compile configs until the time ``end``, but at least one that compiles."""
        ready: list[_Ready] = []
        had_workers = False
        for index, trial in enumerate(self.trials):
            start = perf_counter()
            is_late = bool(ready) and start >= end
            if is_late and not had_workers:
                trial.problem = _LATE
                continue
            # If late, take only results of workers from the disk; compile no others.
            with no_compile() if is_late else nullcontext():
                self._prepare(trial, ready)
            progress.advance("compiling")
            if not had_workers and perf_counter() - start > _WORTH_WORKERS:
                rest = [each.config for each in self.trials[index + 1 :]]
                jobs = [partial(self.call.prepare_with, each) for each in rest]
                had_workers = run_in_workers(jobs, end - perf_counter())
        return ready

    def _prepare(self, trial: Trial, ready: list[_Ready]) -> None:
        try:
            prepared = self.call.prepare_with(trial.config)
            # The seconds of a launch by the backend's cost model, if it has one.
            loaded, args = prepared.found.loaded, prepared.wanted.args
            grid = self.call.grid_with(trial.config)
            expected = loaded.backend.expect(loaded.artifact, grid, args)
            seconds = expected[0].seconds if expected else None
        except XetlError as error:
            if error.code == WOULD_COMPILE:
                trial.problem = _LATE
            else:
                self._drop(trial, error)
            return
        ready.append(_Ready(trial, prepared, seconds))

    def _drop(self, trial: Trial, problem: XetlError | str) -> None:
        text = problem if isinstance(problem, str) else problem.message
        trial.problem, trial.milliseconds, trial.is_dropped = text, None, True
        if isinstance(problem, str):
            problem = LaunchError(f"no config can be used: {text}", code="X0851")
        self._errors.append(problem)

    # Timing ------------------------------------------------------------------------

    def _time_all(
        self, ready: Sequence[_Ready], end: float, progress: Progress
    ) -> None:
        views = _views(ready)
        stored = dict.fromkeys(n for each in ready for n in _stored_names(each))
        names, args = list(views), list(views.values())
        copies = Copies(names, args, [n for n in stored if n in views])
        expected: dict[str, np.ndarray[Any, Any]] | None = None
        best, plans = float("inf"), dict[int, Plan]()
        for index, (trial, _, _) in enumerate(ready):
            if expected is not None and perf_counter() >= end:
                trial.problem = "the budget was over before it was timed"
                continue
            try:
                plans[index] = self.call.plan_with(trial.config, copies.arrays)
                copies.restore()
                self._run(trial, plans[index], copies)
                found = copies.results()
            except XetlError as error:
                self._drop(trial, error)
                continue
            if expected is None:
                expected = {name: np.array(each) for name, each in found.items()}
            problem = difference(found, expected, views)
            if problem is not None:
                self._drop(trial, f"its results are not those of the first: {problem}")
                continue
            seconds = self._seconds(trial, plans[index], copies, best)
            best, trial.milliseconds = min(best, seconds), 1e3 * seconds
            progress.advance("timing")
        self._finals([(ready[i].trial, plan) for i, plan in plans.items()], copies, end)

    def _before(self, trial: Trial, copies: Copies) -> None:
        copies.restore(self.options.restored)
        copies.zero(self.options.zeroed)
        self.call.before(trial.config, copies.arrays)

    def _seconds(self, trial: Trial, plan: Plan, copies: Copies, best: float) -> float:
        """Return the seconds of a launch; only roughly if it is far from the best."""
        if self.options.bench is not None:
            run = partial(self._run, trial, plan, copies)
            found: Any = self.options.bench(run, quantiles=(0.5, 0.2, 0.8))
            return 1e-3 * float(np.ravel(found)[0])
        before = self._preparation(trial, copies)
        # It is warm: it has run once for the comparison of results.
        first = min(time_calls(plan, self.options.warmup, before, is_warm=True))
        if first > _SLOW * best:
            return first
        times = time_calls(plan, self.options.rep, before, least=3, is_warm=True)
        return min(times)  # noise of other processes only adds time

    def _run(self, trial: Trial, plan: Plan, copies: Copies) -> None:
        self._before(trial, copies)
        plan()
        self.call.after(trial.config, copies.arrays)

    def _preparation(self, trial: Trial, copies: Copies) -> Callable[[], None] | None:
        """Return the function to call before each timed launch, or None."""
        needs = self.options.restored or self.options.zeroed
        if needs or trial.config.pre_hook is not None or any(self.call.hooks):
            return partial(self._before, trial, copies)
        return None

    def _finals(
        self, plans: Sequence[tuple[Trial, Plan]], copies: Copies, end: float
    ) -> None:
        """Time the best configs again in turns, so that noise affects all alike."""
        timed = [(t, p) for t, p in plans if t.milliseconds is not None]
        timed.sort(key=lambda each: each[0].milliseconds or 0.0)
        finalists = timed[:_FINALISTS]
        if len(finalists) < 2 or self.options.bench is not None:
            return
        samples: dict[int, list[float]] = {id(trial): [] for trial, _ in finalists}
        for _ in range(4):
            if perf_counter() >= end:
                return
            for trial, plan in finalists:
                before = self._preparation(trial, copies)
                quarter = self.options.rep / 4
                times = time_calls(plan, quarter, before, is_warm=True)
                samples[id(trial)] += times
        for trial, _ in finalists:
            trial.milliseconds = 1e3 * min(samples[id(trial)])


def warn_of_dropped(name: str, trials: Sequence[Trial]) -> None:
    """Warn of configs that failed or gave wrong results."""
    for trial in trials:
        if trial.is_dropped:
            text = f"config ({trial.config}) of `{name}` is not used: {trial.problem}"
            warn_at_caller(text, TuningWarning)


def _pruned(ready: Sequence[_Ready]) -> list[_Ready]:
    """Return the configs without hopeless ones, sorted by the estimates of the backend.

    The first config stays first, because its results are the reference.
    """
    known = [each.estimate for each in ready if each.estimate is not None]
    if not known:
        return list(ready)
    limit = _ESTIMATED * min(known)
    kept = [x for x in ready[1:] if x.estimate is None or x.estimate <= limit]
    for each in ready[1:]:
        if each not in kept:
            each.trial.problem = "the backend estimates that it is too slow"
    kept.sort(key=lambda each: min(known) if each.estimate is None else each.estimate)
    return [ready[0], *kept]


def _views(ready: Sequence[_Ready]) -> dict[str, ArrayView]:
    found: dict[str, ArrayView] = {}
    for _, prepared, _ in ready:
        wanted = prepared.wanted
        pairs = zip(wanted.names, wanted.args)
        found |= {n: a for n, a in pairs if isinstance(a, ArrayView)}
    return found


def _stored_names(ready: _Ready) -> list[str]:
    params = ready.prepared.wanted.signature.params
    return [params[index].name for index in ready.prepared.stored]

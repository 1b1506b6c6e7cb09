"""Trials: configs are compiled, checked against the first one, and timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np

from xetl.backend import ArrayView
from xetl.errors import LaunchError, TuningWarning, XetlError
from xetl.runtime.bind import Plan
from xetl.runtime.call_site import warn_at_caller
from xetl.runtime.executables import WOULD_COMPILE, Prepared
from xetl.runtime.grid import Grid
from xetl.runtime.measure import time_calls
from xetl.runtime.tuning.config import Config
from xetl.runtime.tuning.copies import Copies, difference
from xetl.runtime.tuning.progress import Progress
from xetl.runtime.tuning.workers import run_in_workers
from xetl.settings import no_compile

_REP = 0.06
"""Seconds for which a config is timed, if the user does not say."""

_SLOW = 1.5
"""A first call that takes so many times as long as the best is the only one."""

_FINALISTS = 3
"""So many of the best are timed once more, in turns."""

_WORTH_WORKERS = 0.05
"""Seconds: a config that takes less was in the cache."""

_COMPILING = 0.6
"""The part of the budget in which configs are compiled."""

_LATE = "the budget was over before it was compiled"

_ESTIMATED = 3.0
"""Configs whose estimate is so many times the best are left out."""


class Tuned(Protocol):
    """What trials need of a kernel."""

    def prepare_with(self, config: Config) -> Prepared:
        """Compile the call with a config."""
        ...

    def grid_with(self, config: Config) -> Grid:
        """The grid of the call with a config."""
        ...

    def plan_with(self, config: Config, arrays: Mapping[str, Any]) -> Plan:
        """Bind the call with a config, some arrays replaced."""
        ...

    def has_hooks(self, config: Config) -> bool:
        """Whether the user wants anything before or after a launch."""
        ...

    def before(self, config: Config, arrays: Mapping[str, Any]) -> None:
        """Call what the user wants before a launch."""
        ...

    def after(self, config: Config, arrays: Mapping[str, Any]) -> None:
        """Call what the user wants after a launch."""
        ...


@dataclass
class Trial:
    """What became of a config.

    Attributes:
        config: the values.
        milliseconds: of a launch; None if it was not timed.
        problem: why it was not timed, or is not to be used.
        is_dropped: whether it fails or gives other results; else time was short.
    """

    config: Config
    milliseconds: float | None = None
    problem: str | None = None
    is_dropped: bool = False


@dataclass(frozen=True)
class Options:
    """How trials are made.

    Attributes:
        budget: seconds for all of them.
        warmup: seconds before the timing of a config.
        rep: seconds of the timing.
        zeroed: names of arrays that are filled with zeros before each launch.
        restored: those that get their old elements back.
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
    """The trials of one call.

    Attributes:
        kernel: with the call's arguments.
        options: how to go about it.
        trials: one for each config, in the order of the declaration.
    """

    kernel: Tuned
    options: Options
    trials: list[Trial]
    _errors: list[XetlError] = field(default_factory=list[XetlError])

    def run(self) -> Trial:
        """Find the best.

        Raises:
            XetlError: no config could be used; that of the first.
        """
        start = perf_counter()
        end = start + self.options.budget
        with Progress(2 * len(self.trials)) as progress:
            # What is compiled is to be timed as well.
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
        """Those that compile, until the time is over; one at least."""
        ready: list[_Ready] = []
        had_workers = False
        for index, trial in enumerate(self.trials):
            start = perf_counter()
            is_late = bool(ready) and start >= end
            if is_late and not had_workers:
                trial.problem = _LATE
                continue
            # What workers made in time is on the disk; nothing else runs beside them.
            with no_compile() if is_late else nullcontext():
                self._prepare(trial, ready)
            progress.advance("compiling")
            if not had_workers and perf_counter() - start > _WORTH_WORKERS:
                rest = [each.config for each in self.trials[index + 1 :]]
                jobs = [partial(self.kernel.prepare_with, each) for each in rest]
                had_workers = run_in_workers(jobs, end - perf_counter())
        return ready

    def _prepare(self, trial: Trial, ready: list[_Ready]) -> None:
        try:
            prepared = self.kernel.prepare_with(trial.config)
            seconds = self._estimate(prepared, trial.config)
        except XetlError as error:
            if error.code == WOULD_COMPILE:
                trial.problem = _LATE
            else:
                self._drop(trial, error)
            return
        ready.append(_Ready(trial, prepared, seconds))

    def _estimate(self, prepared: Prepared, config: Config) -> float | None:
        """Seconds of a launch by the backend's model of costs, if it has one."""
        loaded, args = prepared.found.loaded, prepared.wanted.args
        grid = self.kernel.grid_with(config)
        expected = loaded.backend.expect(loaded.artifact, grid, args)
        return expected[0].seconds if expected else None

    def _drop(self, trial: Trial, problem: XetlError | str) -> None:
        text = problem.message if isinstance(problem, XetlError) else problem
        trial.problem, trial.milliseconds, trial.is_dropped = text, None, True
        error = problem if isinstance(problem, XetlError) else _no_config(text)
        self._errors.append(error)

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
                plans[index] = self.kernel.plan_with(trial.config, copies.arrays)
                found = self._results(trial, plans[index], copies)
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

    def _results(
        self, trial: Trial, plan: Plan, copies: Copies
    ) -> dict[str, np.ndarray[Any, Any]]:
        copies.restore()
        self._run(trial, plan, copies)
        return copies.results()

    def _before(self, trial: Trial, copies: Copies) -> None:
        copies.restore_some(self.options.restored)
        copies.zero(self.options.zeroed)
        self.kernel.before(trial.config, copies.arrays)

    def _seconds(self, trial: Trial, plan: Plan, copies: Copies, best: float) -> float:
        """Of a launch; roughly, if it is much slower than the best."""
        if self.options.bench is not None:
            run = partial(self._run, trial, plan, copies)
            found: Any = self.options.bench(run, quantiles=(0.5, 0.2, 0.8))
            return 1e-3 * float(np.ravel(found)[0])
        before = self._preparation(trial, copies)
        # It has run once, to compare its results.
        first = min(time_calls(plan, self.options.warmup, before, is_warm=True))
        if first > _SLOW * best:
            return first
        times = time_calls(plan, self.options.rep, before, least=3, is_warm=True)
        return min(times)  # what else runs here only adds to it

    def _run(self, trial: Trial, plan: Plan, copies: Copies) -> None:
        self._before(trial, copies)
        plan()
        self.kernel.after(trial.config, copies.arrays)

    def _preparation(self, trial: Trial, copies: Copies) -> Callable[[], None] | None:
        """What is done before each timed launch; None: nothing."""
        needs = self.options.restored or self.options.zeroed
        if needs or self.kernel.has_hooks(trial.config):
            return partial(self._before, trial, copies)
        return None

    def _finals(
        self, plans: Sequence[tuple[Trial, Plan]], copies: Copies, end: float
    ) -> None:
        """Time the best again, in turns: noise may have hit one of them alone."""
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
    """Say which configs failed or gave other results."""
    for trial in trials:
        if trial.is_dropped:
            text = f"config ({trial.config}) of `{name}` is not used: {trial.problem}"
            warn_at_caller(text, TuningWarning)


def _no_config(text: str) -> LaunchError:
    return LaunchError(f"no config can be used: {text}", code="X0851")


def _pruned(ready: Sequence[_Ready]) -> list[_Ready]:
    """Without those that the backend's model of costs finds hopeless; its best first.

    The first config stays the first: results are compared with its.
    """
    known = [each.estimate for each in ready if each.estimate is not None]
    if not known:
        return list(ready)
    limit = _ESTIMATED * min(known)
    kept = [
        each for each in ready[1:] if each.estimate is None or each.estimate <= limit
    ]
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

"""Measure how long calls take; all timings of xetl use this module.

A call is warmed up, then timed again and again until enough seconds have passed. Calls
that are too short for the clock are timed in batches. Several functions take turns, so
that noise and the processor's frequency affect all of them alike.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import mean, median, quantiles
from time import perf_counter
from typing import Any, Literal, cast, overload

import numpy as np

from xetl.errors import LaunchError, did_you_mean
from xetl.runtime.call_site import at_caller

Call = Callable[[], object]

_SHORT = 20e-6
"""Seconds: shorter calls are timed in batches of about this length."""

_TURN = 5e-3
"""Seconds of one turn if several functions take turns."""

_LARGEST_CACHE = 1 << 28
"""The most bytes that are read to make caches cold."""

_MODES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "median": median,
    "mean": mean,
    "min": min,
    "max": max,
}


def time_calls(
    call: Call,
    seconds: float,
    before: Call | None = None,
    least: int = 1,
    is_warm: bool = False,
) -> list[float]:
    """Time a call again and again, after a first call that does not count.

    Args:
        call: the function; if it returns an event, the time ends with that.
        seconds: how long to go on.
        before: called before each call and not timed; calls are then not in batches.
        least: the least number of times.
        is_warm: whether it was called before: then all calls count.

    Returns:
        The seconds of a call, once for each call or batch.
    """
    if not is_warm:
        _time_batch(call, 1, before)
    end = perf_counter() + seconds
    found = [_time_batch(call, 1, before)]
    count = 1
    if before is None and found[0] < _SHORT:
        once = min(_time_batch(call, 1) for _ in range(3))
        count = max(1, int(_SHORT / max(once, 1e-9)))
        found.clear()
    while len(found) < least or perf_counter() < end:
        found.append(_time_batch(call, count, before))
    return found


def _time_batch(call: Call, count: int, before: Call | None = None) -> float:
    """Return the seconds of a call, as the mean of ``count`` calls in a row."""
    if before is not None:
        before()
    start = perf_counter()
    for _ in range(count):
        _finish(call)
    return (perf_counter() - start) / count


def _finish(call: Call) -> None:
    """Call, and wait for the event that an asynchronous launch returns."""
    wait = getattr(call(), "wait", None)
    if wait is not None:
        wait()


class Comparison(list[float]):
    """The times of several functions, in milliseconds and in the order of functions.

    Attributes:
        noise: for each function half the range from the first to the third quartile.
    """

    def __init__(self, samples: Mapping[str, list[float]], mode: str) -> None:
        """Take the measured milliseconds by function, and a key of `_MODES`."""
        super().__init__(_MODES[mode](each) for each in samples.values())
        self.names = list(samples)
        self.noise = [_spread(each) for each in samples.values()]

    @property
    def fastest(self) -> str:
        """The name of the function with the least time."""
        return self.names[self.index(min(self))]

    @property
    def undecided(self) -> list[str]:
        """Functions whose difference to the fastest is no larger than the noise."""
        first = self.names.index(self.fastest)
        return [
            name
            for name, ms, noise in zip(self.names, self, self.noise)
            if name != self.fastest and ms - self[first] <= noise + self.noise[first]
        ]

    def __str__(self) -> str:
        width = max(map(len, self.names))
        lines = [
            f"{name:{width}}  {ms:10.4g} ms  +- {noise:.2g}  {ms / min(self):6.2f}x"
            for name, ms, noise in zip(self.names, self, self.noise)
        ]
        lines += [
            f"noise exceeds the difference between {self.fastest} and {name}"
            for name in self.undecided
        ]
        return "\n".join(lines)

    __repr__ = __str__


def _spread(samples: Sequence[float]) -> float:
    if len(samples) < 2:
        return 0.0
    low, _, high = quantiles(samples, n=4, method="inclusive")
    return (high - low) / 2


@overload
def do_bench(
    fn: Callable[[], object],
    warmup: float = ...,
    rep: float = ...,
    grad_to_none: Sequence[Any] | None = ...,
    quantiles: None = ...,
    return_mode: Literal["median", "mean", "min", "max"] = ...,
    *,
    cache: Literal["warm", "cold"] = ...,
) -> float: ...
@overload
def do_bench(
    fn: Callable[[], object],
    warmup: float = ...,
    rep: float = ...,
    grad_to_none: Sequence[Any] | None = ...,
    quantiles: Sequence[float] | None = ...,
    return_mode: Literal["median", "mean", "min", "max", "all"] = ...,
    *,
    cache: Literal["warm", "cold"] = ...,
) -> float | list[float]: ...
@overload
def do_bench(
    fn: Sequence[Callable[[], object]] | Mapping[str, Callable[[], object]],
    warmup: float = ...,
    rep: float = ...,
    grad_to_none: Sequence[Any] | None = ...,
    quantiles: None = ...,
    return_mode: Literal["median", "mean", "min", "max"] = ...,
    *,
    cache: Literal["warm", "cold"] = ...,
) -> Comparison: ...
def do_bench(
    fn: Call | Sequence[Call] | Mapping[str, Call],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "median",
    *,
    cache: str = "warm",
) -> float | list[float] | Comparison:
    """Measure how long a call takes, in milliseconds.

    Args:
        fn: a function without parameters; several, as a list or by name, take turns.
        warmup: milliseconds in which it is called before it is timed.
        rep: milliseconds in which it is timed.
        grad_to_none: tensors whose ``grad`` is set to None before each call.
        quantiles: such as ``[0.5, 0.2, 0.8]``: these quantiles are returned instead.
        return_mode: ``median``, ``mean``, ``min``, ``max``, or ``all`` times as a list.
        cache: ``"cold"`` reads a large buffer before each call, so that the data of the
            call are not in a cache; ``"warm"`` leaves the caches as they are.

    Returns:
        The time; a list with ``quantiles`` or ``all``; for several functions a
        `Comparison`: their times in order. Its text names the functions whose
        difference is smaller than the noise.

    Raises:
        LaunchError: an option has a wrong value.
    """
    try:
        functions = _functions(fn)
        _check_choice("cache", cache, ("warm", "cold"))
        _check_choice("return_mode", return_mode, [*_MODES, "all"])
        if len(functions) != 1 or not callable(fn):
            _check_choice("return_mode", return_mode, list(_MODES))
        if quantiles is not None:
            _check_quantiles(quantiles, callable(fn))
    except LaunchError as error:
        raise at_caller(error) from None
    before = _before(grad_to_none, cache == "cold")
    samples = _take_turns(functions, warmup / 1e3, rep / 1e3, before)
    if not callable(fn):
        return Comparison(samples, return_mode)
    (times,) = samples.values()
    if quantiles is not None:
        return [float(each) for each in np.quantile(times, quantiles)]
    return times if return_mode == "all" else _MODES[return_mode](times)


def _check_quantiles(quantiles: Any, one: bool) -> None:
    if not one:
        problem = "`quantiles=` is for one function, but several were given"
        raise LaunchError(problem, code="X0850")
    try:
        inside = all(0 <= each <= 1 for each in quantiles)
    except TypeError:
        inside = False
    if not inside:
        help_ = "it is a list of numbers from 0 to 1, such as [0.5, 0.2, 0.8]"
        raise LaunchError(f"`quantiles=` is {quantiles!r}", "X0850", help_)


def _functions(fn: object) -> dict[str, Call]:
    """Return the functions to time, by name; a LaunchError if ``fn`` has none."""
    found: dict[str, Any] = {}
    if callable(fn):
        return {_name(fn, 0): fn}
    if isinstance(fn, Mapping):
        found = {str(k): v for k, v in cast("Mapping[Any, Any]", fn).items()}
    elif isinstance(fn, Sequence):
        for index, each in enumerate(cast("Sequence[Any]", fn)):
            name = _name(each, index)
            found[f"{name} {index}" if name in found else name] = each
    if not found or not all(map(callable, found.values())):
        problem = f"`do_bench` was given {fn!r}, which cannot be timed"
        help_ = "write do_bench(lambda: k[grid](A, B)), or a list of such functions"
        raise LaunchError(problem, "X0850", help_)
    return found


def _name(fn: object, index: int) -> str:
    name = str(getattr(fn, "__name__", type(fn).__name__))
    return f"function {index}" if name == "<lambda>" else name


def _check_choice(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        listed = ", ".join(f'"{each}"' for each in known)
        help_ = did_you_mean(str(value), known) or f"it is one of {listed}"
        raise LaunchError(f"`{name}=` is {value!r}", "X0850", help_)


def _before(tensors: Sequence[Any] | None, is_cold: bool) -> Call | None:
    """Return the function to run before each call, or None."""
    if tensors is None and not is_cold:
        return None
    buffer = np.ones(_cache_bytes() // 8 if is_cold else 0)

    def run() -> None:
        for tensor in tensors or ():
            tensor.grad = None
        buffer.sum()

    return run


def _cache_bytes() -> int:
    """Return twice the size of the L3 cache, or the maximum if it is unknown."""
    try:
        size = os.sysconf("SC_LEVEL3_CACHE_SIZE")
    except (ValueError, OSError):  # not every system knows the name
        size = 0
    return min(2 * size if size > 0 else _LARGEST_CACHE, _LARGEST_CACHE)


def _take_turns(
    functions: Mapping[str, Call], warmup: float, rep: float, before: Call | None
) -> dict[str, list[float]]:
    """Time functions in turns, round by round; return the milliseconds of each."""
    for call in functions.values():
        for _ in _until(warmup):
            _finish(call)
    samples: dict[str, list[float]] = {name: [] for name in functions}
    turn = rep if len(functions) == 1 else min(_TURN, rep)
    for _ in _until(rep * len(functions)):
        for name, call in functions.items():
            times = time_calls(call, turn, before)
            samples[name] += [1e3 * each for each in times]
    return samples


def _until(seconds: float) -> Iterator[None]:
    """Yield once, and then again until so many seconds have passed."""
    end = perf_counter() + seconds
    yield
    while perf_counter() < end:
        yield

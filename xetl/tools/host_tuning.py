"""Tuning on this machine: arrays made of a signature, trials, a table of trials.

For another machine, configs are ranked by a model of it and by its compiler.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from xetl.errors import LaunchError
from xetl.runtime.parameters import Parameters
from xetl.runtime.report import Stats
from xetl.runtime.signature_text import Described, Description, describe
from xetl.runtime.tuning.config import all_configs
from xetl.runtime.tuning.decorators import autotune
from xetl.runtime.tuning.kernel import CompletedKernel
from xetl.runtime.tuning.trials import Trial
from xetl.settings import config
from xetl.tools.kernel_files import Asked


def tune(
    found: Asked,
    spaces: Mapping[str, Sequence[Any]],
    sizes: Mapping[str, int],
    grid: Any,
    budget: float,
) -> list[Trial]:
    """Time the configs of a kernel on arrays of random numbers.

    Args:
        spaces: the values of each constant to try; empty: the configs of the kernel's
            decorator.
        budget: seconds for all trials, if ``spaces`` are given.

    Returns:
        The trials, the fastest first.

    Raises:
        UsageError: the command line lacks an option, or gives fewer than two configs.
    """
    kernel: Any = found.kernel
    if spaces:
        kernel = autotune(all_configs(None, spaces), budget_s=budget)(kernel)
    if not isinstance(kernel, CompletedKernel) or kernel.tuner is None:
        name = kernel.fn.__name__
        raise click.UsageError(
            f"`{name}` has no configs: give values, such as `--try BM=64,128`, or "
            "decorate it with `@xetl.autotune`"
        )
    kernel.tuner.tunes_anew = True
    computed = kernel.tuner.chosen | kernel.heuristics.keys()
    known = {*computed, *found.constants}
    arrays = random_arguments(found, sizes, known)
    if len(kernel.configs) < 2:
        raise click.UsageError(
            "there is one config and nothing to choose: give more values with `--try`; "
            "`xetl bench` says how long one takes"
        )
    with launches_for(found.target):
        kernel.bind(grid=grid, backend=found.backend, **arrays, **found.constants)
    return sorted(kernel.trials, key=lambda each: each.milliseconds or float("inf"))


@contextmanager
def launches_for(target: str | None) -> Generator[None]:
    """Set the target of launches inside of a ``with`` block; None: leave it."""
    before = config.assigned
    try:
        config.target = target or config.target
        yield
    finally:
        config.assigned = before


def random_arguments(
    found: Asked,
    sizes: Mapping[str, int],
    known: Collection[str],
    *,
    is_empty: bool = False,
) -> dict[str, Any]:
    """Make arrays of random numbers for a signature, by the names of the arguments.

    Args:
        known: parameters that get their values in another way.
        is_empty: make zeros instead. Their pages take no memory until they are read.

    Raises:
        UsageError: a size or a number is missing on the command line, or a size has
            a name that the signature has not.
    """
    described = _described(found, known)
    names = sorted(_names_of_sizes(described.values()))
    for name in sizes:
        if name not in names:
            there = f"there are {', '.join(names)}" if names else "it has no names"
            raise click.UsageError(f"`{name}` is no size of the signature; {there}")
    random = None if is_empty else np.random.default_rng(0)
    return {n: _array(n, d, sizes, random) for n, d in described.items()}


def _described(found: Asked, known: Collection[str]) -> dict[str, Description]:
    """Describe the arguments; a signature may leave out numbers of ``known`` values."""
    parameters = Parameters.of(found.kernel.fn)
    with suppress(LaunchError):
        all_of_them = describe(found.signature, parameters, ())
        given = [all_of_them[name] for name in known if name in all_of_them]
        if all(isinstance(each, Described) and each.dims is None for each in given):
            return {n: d for n, d in all_of_them.items() if n not in known}
    return describe(found.signature, parameters, known)


def _array(name: str, what: Description, sizes: Mapping[str, int], random: Any) -> Any:
    if what is None:
        return None
    if isinstance(what, tuple):
        return tuple(_array(name, each, sizes, random) for each in what)
    if what.dims is None:
        raise click.UsageError(
            f"`{name}` is a number: say its value after the signature: {name}=..."
        )
    shape = [_size(each, sizes) for each in what.dims]
    if what.column_major:
        shape[-2:] = shape[:-3:-1]
    if random is None:
        array = np.zeros(shape, what.dtype.numpy)
    elif what.dtype.kind == "f":
        array = random.standard_normal(shape).astype(what.dtype.numpy)
    else:  # small, because they may be indices
        array = random.integers(0, 2, shape).astype(what.dtype.numpy)
    return array.swapaxes(-1, -2) if what.column_major else array


def _names_of_sizes(described: Iterable[Description]) -> set[str]:
    found: set[str] = set()
    for each in described:
        if isinstance(each, tuple):
            found |= _names_of_sizes(each)
        elif each is not None and each.dims is not None:
            found |= {size for size in each.dims if not size.isdecimal()}
    return found


def _size(text: str, sizes: Mapping[str, int]) -> int:
    if text.isdecimal():
        return int(text)
    if text in sizes:
        return sizes[text]
    raise click.UsageError(f"how large is `{text}`? Say `--size {text}=1024`")


def table(ranked: Sequence[Trial]) -> Iterator[str]:
    """Yield the lines of a table of trials."""
    said = [str(trial.config) for trial in ranked]
    width = max(map(len, said))
    yield f"{'':{width}}  {'ms':>10}"
    for words, trial in zip(said, ranked):
        ms = "-" if trial.milliseconds is None else f"{trial.milliseconds:.4g}"
        yield f"{words:{width}}  {ms:>10}  {trial.problem or ''}".rstrip()


_COLUMNS = (
    *("spill_bytes", "instructions", "subgroups"),
    *("grf", "slm_bytes", "compile_ms"),
)


@dataclass(frozen=True)
class Ranked:
    """The statistics of a kernel for some values of its constants.

    Attributes:
        milliseconds: the expected time of a launch; None: sizes or grid are not known.
    """

    values: Mapping[str, Any]
    stats: Stats
    milliseconds: float | None

    @property
    def rank(self) -> tuple[float, ...]:
        """The sort key: smaller is better."""
        stats = self.stats
        work = (stats.instructions or 0) * (stats.subgroups or 1)
        if self.milliseconds is not None:
            expected = self.milliseconds
        else:
            expected = -stats.expected[0].part if stats.expected else 0.0
        return stats.spill_bytes or 0, expected, work

    def facts(self) -> dict[str, Any]:
        """Return all facts, for JSON."""
        expected = [
            {"machine": e.machine, "limit": e.limit, "share": e.part, "of": e.whole}
            for e in self.stats.expected
        ]
        found = {name: getattr(self.stats, name) for name in _COLUMNS}
        ms = self.milliseconds
        return {"config": self.values, "ms": ms, "expected": expected, **found}


def rank(
    found: Asked,
    tried: Sequence[Mapping[str, Any]],
    sizes: Mapping[str, int],
    grid: Any,
) -> list[Ranked]:
    """Compile a kernel with each set of constants, and sort them, the best first.

    Args:
        sizes: the sizes of the names in the signature; empty: not known.

    Raises:
        UsageError: a size is missing, or there is neither a compiler nor a model for
            the target.
    """
    ranked = [_stats(found, values, sizes, grid) for values in tried]
    if any(e.stats.spill_bytes is None and not e.stats.expected for e in ranked):
        target = ranked[0].stats.target
        raise click.UsageError(
            f"there is no offline compiler for `{target}`, and no model of it: use "
            "`--target pvc` or `bmg`, and see `xetl doctor`"
        )
    return sorted(ranked, key=lambda each: each.rank)


def _stats(
    found: Asked, values: Mapping[str, Any], sizes: Mapping[str, int], grid: Any
) -> Ranked:
    options = {**found.options, **values}
    if not sizes:
        return Ranked(values, found.kernel.stats(*found.arguments, **options), None)
    known = {*found.constants, *values}
    arrays = random_arguments(found, sizes, known, is_empty=True)
    stats: Stats = found.kernel.stats(grid=grid, **arrays, **options)
    knows_grid = grid is not None or found.kernel.grid is not None
    seconds = stats.expected[0].seconds if stats.expected and knows_grid else None
    return Ranked(values, stats, None if seconds is None else 1e3 * seconds)


def ranking(ranked: Sequence[Ranked]) -> Iterator[str]:
    """Yield the lines of a table of ranked constants."""
    said = [", ".join(f"{k}={v}" for k, v in each.values.items()) for each in ranked]
    width = max(map(len, said))
    heads = ["ms", "of peak", *_COLUMNS]
    yield f"{'':{width}}  " + "  ".join(f"{name:>12}" for name in heads) + "  limit"
    for words, each in zip(said, ranked):
        found = (getattr(each.stats, name) for name in _COLUMNS)
        cells = ["-" if value is None else f"{value:.0f}" for value in found]
        first = each.stats.expected[0] if each.stats.expected else None
        ms = "-" if each.milliseconds is None else f"{each.milliseconds:.4g}"
        cells = [ms, "-" if first is None else f"{first.part:.0%}", *cells]
        limit = "" if first is None else f"  {first.limit}"
        yield f"{words:{width}}  " + "  ".join(f"{c:>12}" for c in cells) + limit
    machines = [each.machine for each in ranked[0].stats.expected[:1]]
    yield from (f"expected of {machine}, a model's figures" for machine in machines)

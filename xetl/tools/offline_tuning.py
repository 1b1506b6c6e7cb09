"""Tuning for a machine that is not here: by a model of it, and by its compiler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from xetl.runtime.report import Stats
from xetl.tools.host_tuning import random_arguments
from xetl.tools.kernel_options import Asked

_COLUMNS = (
    "spill_bytes",
    "instructions",
    "subgroups",
    "grf",
    "slm_bytes",
    "compile_ms",
)


@dataclass(frozen=True)
class Ranked:
    """What is known of a kernel with some values of its constants.

    Attributes:
        values: of the constants.
        stats: of the code.
        milliseconds: expected of a launch; None: sizes or grid were not given.
    """

    values: Mapping[str, Any]
    stats: Stats
    milliseconds: float | None

    @property
    def rank(self) -> tuple[float, ...]:
        """Smaller is better."""
        stats = self.stats
        work = (stats.instructions or 0) * (stats.subgroups or 1)
        if self.milliseconds is not None:
            expected = self.milliseconds
        else:
            expected = -stats.expected[0].part if stats.expected else 0.0
        return stats.spill_bytes or 0, expected, work

    def facts(self) -> dict[str, Any]:
        """All of it, for JSON."""
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
    """Compile a kernel with each of these constants; the best comes first.

    Args:
        found: the kernel and its signature.
        tried: constants by name.
        sizes: of the names in the signature; empty: not known.
        grid: of the launch; None: the declared one.

    Raises:
        UsageError: a size is missing, or nothing is known of such a machine.
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
    options: dict[str, Any] = {**found.constants, **values}
    options |= {"target": found.target, "backend": found.backend}
    if not sizes:
        return Ranked(values, found.kernel.stats(*found.arguments, **options), None)
    known = {*found.constants, *values}
    arrays = random_arguments(found, sizes, known, is_empty=True)
    stats: Stats = found.kernel.stats(grid=grid, **arrays, **options)
    knows_grid = grid is not None or found.kernel.grid is not None
    seconds = stats.expected[0].seconds if stats.expected and knows_grid else None
    return Ranked(values, stats, None if seconds is None else 1e3 * seconds)


def table(ranked: Sequence[Ranked]) -> Iterator[str]:
    """The lines of a table of them."""
    said = [", ".join(f"{k}={v}" for k, v in each.values.items()) for each in ranked]
    width = max(map(len, said))
    heads = ["ms", "of peak", *_COLUMNS]
    yield f"{'':{width}}  " + "  ".join(f"{name:>12}" for name in heads) + "  limit"
    for words, each in zip(said, ranked):
        cells = [_cell(getattr(each.stats, name)) for name in _COLUMNS]
        first = each.stats.expected[0] if each.stats.expected else None
        ms = "-" if each.milliseconds is None else f"{each.milliseconds:.4g}"
        cells = [ms, "-" if first is None else f"{first.part:.0%}", *cells]
        limit = "" if first is None else f"  {first.limit}"
        yield f"{words:{width}}  " + "  ".join(f"{c:>12}" for c in cells) + limit
    machines = [each.machine for each in ranked[0].stats.expected[:1]]
    yield from (f"expected of {machine}, a model's figures" for machine in machines)


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"

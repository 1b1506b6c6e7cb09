"""``xetl bench``: time launches of a kernel, or run a report of benchmarks."""

from __future__ import annotations

from typing import Any

import click

from xetl.runtime.measure import do_bench
from xetl.tools import kernel_files
from xetl.tools.host_tuning import launches_for, random_arguments
from xetl.tools.output import json_option, show
from xetl.tools.performance.report import Report


@click.command()
@kernel_files.about_a_place
@kernel_files.about_a_launch
@click.option(
    "--cache",
    type=click.Choice(["warm", "cold"]),
    default="warm",
    show_default=True,
    help="Whether caches still hold data of the previous launch (warm).",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=0.5,
    show_default=True,
    help="Duration of the measurement, in seconds.",
)
@click.option("--csv", help="The file for the values of a report.")
@click.option("--png", help="The file for the plot of a report.")
@json_option
def command(
    place: str,
    words: tuple[str, ...],
    target: str | None,
    backend: str | None,
    sizes: dict[str, int],
    grid: str | None,
    cache: Any,
    seconds: float,
    csv: str | None,
    png: str | None,
    as_json: bool,
) -> None:
    r"""Time a kernel on arrays of random numbers, or run a `@xetl.perf_report`.

    \b
    xetl bench gemm.py:gemm "f32[M,K] f32[K,N] f32[M,N]" --size M=512 --size K=512 \
        --size N=512 BM=64
    xetl bench benchmarks.py:report --csv gemm.csv --png gemm.png

    It prints the median, and in parentheses the quantiles of 20 % and 80 %.
    """
    named, names = kernel_files.find_kernel(place, also=(Report,))
    if isinstance(named, Report):
        rows = named.run(csv=csv, png=png, print_data=not as_json)
        plain = [[{"point": r.point, "values": r.values} for r in b] for b in rows]
        if as_json:
            show(plain, (), as_json)
        return
    found = kernel_files.asked(place, words, target, backend)
    if found.is_text:
        problem = "a kernel of a text has no signature to make arrays of"
        raise click.BadParameter(problem)
    launched = kernel_files.read_grid(grid, names, found.kernel)
    with launches_for(target):
        measured = _measured(found, sizes, launched, cache, seconds)
    show(measured, [_line(measured)], as_json)


def _measured(
    found: kernel_files.Asked,
    sizes: dict[str, int],
    grid: Any,
    cache: Any,
    seconds: float,
) -> dict[str, Any]:
    """Return times in milliseconds, and bytes of the arrays, as facts for JSON."""
    arrays = random_arguments(found, sizes, found.constants)
    plan = found.kernel.bind(
        grid=grid, backend=found.backend, **arrays, **found.constants
    )
    quantiles: Any = do_bench(
        plan, rep=1e3 * seconds, quantiles=(0.5, 0.2, 0.8), cache=cache
    )
    size = sum(getattr(each, "nbytes", 0) for each in arrays.values())
    return {
        "kernel": found.name,
        "backend": found.backend,
        "cache": cache,
        "ms": quantiles[0],
        "ms_20": quantiles[1],
        "ms_80": quantiles[2],
        "bytes_of_arguments": size,
        "gb_per_s_if_touched_once": size / quantiles[0] / 1e6,
    }


def _line(measured: dict[str, Any]) -> str:
    low, high = measured["ms_20"], measured["ms_80"]
    return (
        f"{measured['kernel']} on `{measured['backend']}`, caches {measured['cache']}: "
        f"{measured['ms']:.4g} ms ({low:.4g} to {high:.4g}); arguments of "
        f"{measured['bytes_of_arguments'] / 1e6:.4g} MB, "
        f"{measured['gb_per_s_if_touched_once']:.4g} GB/s if each is touched once"
    )

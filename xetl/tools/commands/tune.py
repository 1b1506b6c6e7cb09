"""``xetl tune``: find the best values of a kernel's constants."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import click

from xetl.backend import find_backend
from xetl.runtime.report import Stats
from xetl.runtime.select_backend import DEFAULT_BACKEND
from xetl.tools.host_tuning import read_sizes, table, tune
from xetl.tools.kernel_files import constants, find_kernel, read_grid
from xetl.tools.kernel_options import Asked, about_a_kernel, asked

_COLUMNS = (
    "spill_bytes",
    "instructions",
    "subgroups",
    "grf",
    "slm_bytes",
    "compile_ms",
)


def _tune_processor(context: click.Context, _: object, is_asked: bool) -> None:
    if not is_asked or context.resilient_parsing:
        return
    try:
        lines = find_backend(DEFAULT_BACKEND).tune_machine()
    except OSError as error:
        raise click.ClickException(f"the numbers cannot be kept: {error}") from None
    for line in lines:
        click.echo(line)
    context.exit()


@click.command()
@click.option(
    "--cpu",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_tune_processor,
    help="Measure this processor, no kernel: products on the CPU are planned by that.",
)
@about_a_kernel
@click.option(
    "--try",
    "choices",
    metavar="NAME=VALUE,VALUE...",
    multiple=True,
    help="Values of a constant; of several constants all combinations are tried.",
)
@click.option(
    "--offline", is_flag=True, help="By what the GPU's compiler says, without a GPU."
)
@click.option(
    "--size",
    "sizes",
    metavar="NAME=NUMBER",
    multiple=True,
    help="How large the arrays are in which the kernel is timed: `--size M=1024`.",
)
@click.option("--grid", help="Of the launch, in Python; by default the declared one.")
@click.option("--budget", type=float, default=20.0, help="Seconds for all trials.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def command(
    place: str,
    words: tuple[str, ...],
    target: str | None,
    backend: str | None,
    choices: tuple[str, ...],
    offline: bool,
    sizes: tuple[str, ...],
    grid: str | None,
    budget: float,
    as_json: bool,
) -> None:
    r"""Try a kernel with several values of its constants, and rank them.

    \b
    xetl tune gemm.py:gemm "f32[M,K] f32[K,N] f32[M,N]" \
        --size M=1024 --size K=1024 --size N=1024

    Times the configs of `@xetl.autotune`, or those of `--try`, on this machine, with
    arrays of random numbers; the best is remembered, as at a launch.

    \b
    xetl tune gemm.py:gemm "bf16[M,K] bf16[K,N] f32[M,N]" --offline --target pvc \
        --try BM=64,128,256 --try BK=16,32

    Compiles without a device: the fewest spilled bytes are best, then the fewest
    instructions of all subgroups of a workgroup together. Larger tiles have more
    instructions and need fewer of them for an element: compare like with like.
    """
    found = asked(place, words, target, backend)
    if found.is_text:
        raise click.BadParameter(
            "a kernel of a text has no constants", param_hint="--try"
        )
    names = find_kernel(place)[1]
    if not offline:
        spaces = dict(_space(each, names) for each in choices)
        launched = read_grid(grid, names)
        trials = tune(found, spaces, read_sizes(sizes), launched, budget)
        facts = [
            {"config": t.config.kwargs, "ms": t.milliseconds, "problem": t.problem}
            for t in trials
        ]
        _show(facts, table(trials), as_json)
        return
    if not choices:
        raise click.UsageError("`--offline` compiles the values of `--try`: give some")
    tried = [(each, _stats(found, each)) for each in _combinations(choices, names)]
    if any(stats.spill_bytes is None for _, stats in tried):
        raise click.UsageError(
            f"there is no offline compiler for `{tried[0][1].target}`: use "
            "`--target pvc` or `bmg`, and see `xetl doctor`"
        )
    tried.sort(key=lambda each: _rank(each[1]))
    facts = [
        {"config": values, **{name: getattr(stats, name) for name in _COLUMNS}}
        for values, stats in tried
    ]
    _show(facts, _table(tried), as_json)


def _show(
    facts: Sequence[Mapping[str, Any]], lines: Iterable[str], as_json: bool
) -> None:
    """Print one or the other, the best first."""
    if as_json:
        click.echo(json.dumps(facts, indent=1, default=str))
        return
    for line in lines:
        click.echo(line)


def _combinations(
    choices: Sequence[str], names: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """All combinations of ``NAME=VALUE,VALUE``, as Python values by name."""
    spaces = dict(_space(each, names) for each in choices)
    for values in product(*spaces.values()):
        yield dict(zip(spaces, values))


def _space(choice: str, names: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """The name and the values of ``NAME=VALUE,VALUE``."""
    name, equals, values = choice.partition("=")
    if not equals or not name.isidentifier() or not values:
        raise click.BadParameter(
            f"`{choice}` is not NAME=VALUE,VALUE", param_hint="--try"
        )
    return name, constants([f"{name}=[{values}]"], names)[name]


def _stats(found: Asked, values: Mapping[str, Any]) -> Stats:
    options = {**found.constants, **values}
    return found.kernel.stats(
        *found.arguments, target=found.target, backend=found.backend, **options
    )


def _rank(stats: Stats) -> tuple[int, int]:
    return stats.spill_bytes or 0, (stats.instructions or 0) * (stats.subgroups or 1)


def _table(tried: Sequence[tuple[Mapping[str, Any], Stats]]) -> Iterator[str]:
    said = [", ".join(f"{k}={v}" for k, v in values.items()) for values, _ in tried]
    width = max(map(len, said))
    yield f"{'':{width}}  " + "  ".join(f"{name:>12}" for name in _COLUMNS)
    for words, (_, stats) in zip(said, tried):
        cells = [_cell(getattr(stats, name)) for name in _COLUMNS]
        yield f"{words:{width}}  " + "  ".join(f"{cell:>12}" for cell in cells)


def _cell(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}"

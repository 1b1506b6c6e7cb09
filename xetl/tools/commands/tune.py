"""``xetl tune``: find the best values of a kernel's constants."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import click

from xetl.backend import DEFAULT_BACKEND, find_backend
from xetl.tools import kernel_files
from xetl.tools.host_tuning import rank, ranking, table, tune
from xetl.tools.output import json_option, show


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


class _Tune(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--cpu" in args and len(args) > 1:
            raise click.UsageError("`--cpu` measures no kernel: write nothing else")
        return super().parse_args(ctx, args)


@click.command(cls=_Tune)
@click.option(
    "--cpu",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_tune_processor,
    help="Measure this processor instead of a kernel, to plan products on the CPU.",
)
@kernel_files.about_a_kernel
@click.option(
    "--try",
    "choices",
    metavar="NAME=VALUE,VALUE...",
    multiple=True,
    help="Values of a constant. With several constants, try all combinations.",
)
@click.option(
    "--offline",
    "is_offline",
    is_flag=True,
    help="Rank without a GPU, by a model of it and reports of its compiler.",
)
@kernel_files.about_a_launch
@click.option(
    "--budget", type=float, default=20.0, help="Time limit for all trials, in seconds."
)
@json_option
def command(
    found: kernel_files.Asked,
    choices: tuple[str, ...],
    is_offline: bool,
    sizes: dict[str, int],
    grid: str | None,
    budget: float,
    as_json: bool,
) -> None:
    r"""Try a kernel with several values of its constants, and rank them.

    \b
    xetl tune gemm.py:gemm "f32[M,K] f32[K,N] f32[M,N]" \
        --size M=1024 --size K=1024 --size N=1024

    This times the configs of `@xetl.autotune`, or those of `--try`, on this machine,
    with arrays of random numbers. The best config is kept, as after a launch.

    \b
    xetl tune gemm.py:gemm "bf16[M,K] bf16[K,N] f32[M,N]" --offline --target pvc \
        --try BM=64,128,256 --try BK=16,32 --size M=4096 --size K=4096 --size N=4096

    This compiles without a device. The best config has the least time by a model of the
    GPU (docs/gpu.md, "Roofline"); without `--size`, the largest share of the peak, on
    arrays of 4096 in each dimension. If Intel's compiler is installed, configs with
    fewer spills come first.
    """
    if found.is_text:
        problem = "a kernel of a text has no constants"
        raise click.BadParameter(problem, param_hint="--try")
    spaces = dict(_space(each, found.names) for each in choices)
    if not is_offline:
        launched = kernel_files.read_grid(grid, found.names, found.kernel)
        trials = tune(found, spaces, sizes, launched, budget)
        facts = [
            {"config": t.config.kwargs, "ms": t.milliseconds, "problem": t.problem}
            for t in trials
        ]
        show(facts, table(trials), as_json)
        return
    if not choices:
        raise click.UsageError("`--offline` compiles the values of `--try`: give some")
    launched = kernel_files.read_grid(grid, found.names)
    values = [dict(zip(spaces, each)) for each in product(*spaces.values())]
    ranked = rank(found, values, sizes, launched)
    show([each.facts() for each in ranked], ranking(ranked), as_json)


def _space(choice: str, names: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the name and the values of ``NAME=VALUE,VALUE``."""
    name, equals, values = choice.partition("=")
    if not equals or not name.isidentifier() or not values:
        problem = f"`{choice}` is not NAME=VALUE,VALUE"
        raise click.BadParameter(problem, param_hint="--try")
    return name, kernel_files.constants([f"{name}=[{values}]"], names)[name]

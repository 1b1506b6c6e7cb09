"""``xetl doctor``: show what xetl can use on this machine, and how to fix the rest."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from xetl.findings import Finding
from xetl.tools.machine import sections
from xetl.tools.output import json_option

_COLOURS = {"ok": "green", "note": "yellow", "problem": "red"}


@click.command()
@json_option
@click.option("--gpu", is_flag=True, help="Test each GPU; a minute for each GPU.")
@click.option("--only", metavar="REGEX", help="With --gpu: run tests of matching name.")
@click.option(
    "-o",
    "--output",
    type=Path,
    help="With --gpu: the file of the report; by default xetl-gpu-report.json.",
)
def command(as_json: bool, gpu: bool, only: str | None, output: Path | None) -> None:
    r"""Show what xetl finds on this machine: versions, devices, threads, settings.

    \b
    xetl doctor
    xetl doctor --gpu
    xetl doctor --gpu --only "DPAS|atomic"

    `ok`: no problem. `note`: an optional part is missing, or a fact is worth knowing.
    `problem`: something needed or asked for does not work; then the exit code is 1.

    With --gpu, test kernels run on each device, also on CPUs with an OpenCL driver:
    every kind of message, DPAS of each type, atomics, barriers, residency of memory.
    Results are compared with the reference. The command writes a report for an issue,
    with the machine's drivers and settings. Without a device the exit code is 2.
    """
    if gpu:
        test: Any = importlib.import_module("xetl.tools.self_test.report")
        is_fine = test.self_test(only, output or test.REPORT, as_json)
        sys.exit(not is_fine)
    if only or output:
        raise click.UsageError("`--only` and `-o` are for the self-test: add --gpu")
    found = {heading: list(findings) for heading, findings in sections()}
    every = [each for findings in found.values() for each in findings]
    problems = sum(each.state == "problem" for each in every)
    if as_json:
        plain = {name: [asdict(each) for each in found[name]] for name in found}
        click.echo(json.dumps(plain, indent=1))
    else:
        _print(found)
        count = {0: "no problems", 1: "1 problem"}.get(problems, f"{problems} problems")
        click.echo(f"\n{count}")
    sys.exit(problems > 0)


def _print(found: Mapping[str, Sequence[Finding]]) -> None:
    for heading, findings in found.items():
        click.secho(heading, bold=True)
        width = max((len(each.topic) for each in findings), default=0)
        for each in findings:
            state = click.style(f"{each.state:8}", fg=_COLOURS[each.state])
            click.echo(f"  {state}{each.topic:{width}}  {each.text}")
            if each.fix is not None:
                click.echo(f"  {'':8}{'':{width}}  -> {each.fix}")

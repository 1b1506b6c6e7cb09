"""``xetl doctor``: what of this machine xetl can use; how to mend the rest."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import click

from xetl.findings import Finding
from xetl.tools.machine import sections

_COLOURS = {"ok": "green", "note": "yellow", "problem": "red"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def command(as_json: bool) -> None:
    """Say what xetl finds on this machine: versions, devices, threads, settings.

    `ok` is as it should be, `note` is optional or worth knowing, `problem` is what was
    asked for or is needed, and does not work: then the exit code is 1.
    """
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

"""``xetl explain X0201``: what an error means and what to do about it."""

from __future__ import annotations

import click

from xetl.errors import did_you_mean
from xetl.tools import error_pages


@click.command(short_help="What an error code means and what to do about it.")
@click.argument("code", required=False)
def command(code: str | None) -> None:
    """Print the page of an error CODE, such as X0201; without one, list them all."""
    if code is None:
        for each in error_pages.codes():
            click.echo(f"{each}  {error_pages.headline(each)}")
        return
    wanted = code.upper() if code[:1] in "xX" else f"X{code}"
    text = error_pages.page(wanted)
    if text is None:
        hint = did_you_mean(wanted, error_pages.codes())
        raise click.BadParameter(
            f"no error has the code `{code}`; {hint or '`xetl explain` lists them'}",
            param_hint="CODE",
        )
    click.echo(text.rstrip())

"""The command ``xetl``: finds subcommands and turns errors into exit codes.

A subcommand is a file of `xetl.tools.commands`, called as the subcommand is, with a
``click.Command`` named ``command`` in it. That file is imported when it is asked for.

Exit codes: 0 done; 1 the kernel, the machine or a setting is wrong; 2 the command line
is.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import warnings
from pathlib import Path
from typing import Any

import click

from xetl import __version__
from xetl.errors import XetlError, did_you_mean
from xetl.tools import commands

_CLICK = str(Path(click.__file__).parent)


class Commands(click.Group):
    """A group whose commands are the files of a folder."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in alphabetical order."""
        return sorted(module.name for module in pkgutil.iter_modules(commands.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the one called so."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module: Any = importlib.import_module(f"{commands.__name__}.{cmd_name}")
        command: click.Command = module.command
        # Raw docstrings spell out what click looks for: a paragraph left as it is.
        command.help = (command.help or "").replace("\\b\n", "\b\n")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with a better answer to a misspelt name."""
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-"):
            hint = did_you_mean(args[0], known) or f"there are {', '.join(known)}"
            ctx.fail(f"no command is called `{args[0]}`; {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; errors of xetl are drawn, without Python's traceback."""
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except XetlError as error:
                raise click.exceptions.Exit(_report(error)) from None


def _report(error: XetlError) -> int:
    """Draw an error; a call made by this program is no line of the user."""
    if error.file is not None and error.file.startswith(_CLICK):
        error.file = None
    click.echo(str(error), err=True)
    click.echo(f"   = more: xetl explain {error.code}", err=True)
    return 1


def _show_warning(
    message: Warning | str, category: type[Warning], *_: Any, **__: Any
) -> None:
    click.echo(f"warning: {message}", err=True)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="xetl", message="%(prog)s %(version)s")
def command() -> None:
    """xetl: tile kernels in Python, compiled for CPUs and Intel GPUs.

    Exit codes: 0 done; 1 the kernel, the machine or a setting is wrong; 2 the command
    line is.
    """


def main() -> int:
    """Entry point of the command; returns its exit code."""
    command.main(prog_name="xetl")
    return 0


if __name__ == "__main__":
    sys.exit(main())

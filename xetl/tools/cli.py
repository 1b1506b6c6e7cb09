"""The command ``xetl``: finds subcommands and turns errors into exit codes.

A subcommand is a file of `xetl.tools.commands` with the name of the subcommand. It
defines a ``click.Command`` named ``command``, and is imported on first use. Its first
line is the description in ``xetl --help``.

Exit codes: 0 done; 2 the user's input is wrong (the command line, a file, a kernel, a
setting); 1 xetl itself is wrong, or `xetl doctor` found a problem.
"""

from __future__ import annotations

import errno
import importlib
import os
import pkgutil
import sys
import warnings
from pathlib import Path
from typing import Any

import click

from xetl import __version__
from xetl.errors import InternalError, XetlError, did_you_mean
from xetl.tools import commands

_CLICK = str(Path(click.__file__).parent)
_WRONG = 2


INTERRUPTED = "interrupted: nothing was written; start it again"


class Commands(click.Group):
    """A group whose commands are the files of a folder; the user may interrupt one."""

    is_interrupted = False

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in alphabetical order."""
        return sorted(module.name for module in pkgutil.iter_modules(commands.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command of this name; None if there is none."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module: Any = importlib.import_module(f"{commands.__name__}.{cmd_name}")
        command: click.Command = module.command
        command.short_help = _headline(cmd_name)
        return _with_click_marks(command)

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            names = self.list_commands(ctx)
            formatter.write_dl([(name, _headline(name)) for name in names])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command as click does; suggest one for a misspelt name."""
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-"):
            hint = did_you_mean(args[0], known) or f"there are {', '.join(known)}"
            ctx.fail(f"no command is called `{args[0]}`; {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; print errors of xetl without Python's traceback."""
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except XetlError as error:
                code = _report(error)
            except click.exceptions.NoArgsIsHelpError:
                raise
            except click.ClickException as error:
                context = error.ctx if isinstance(error, click.UsageError) else None
                hint = f" (see {context.command_path} --help)" if context else ""
                code = _say(f"{error.format_message()}{hint}")
            except KeyboardInterrupt:
                code = _say(INTERRUPTED)
                self.is_interrupted = True
            except OSError as error:
                if error.filename is not None:
                    where = f"`{error.filename}`: {error.strerror}; name another place"
                elif error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
                    where = f"{error.strerror}: make room, or set TMPDIR elsewhere"
                else:  # such as a pipe without a reader
                    raise
                code = _say(where)
            raise click.exceptions.Exit(code)


def _with_click_marks(command: click.Command) -> click.Command:
    r"""Replace the text ``\b`` by the character, which keeps lines of a paragraph."""
    command.help = (command.help or "").replace("\\b\n", "\b\n")
    return command


def _headline(name: str) -> str:
    """Return the description of a command, from the first line of its file."""
    file = Path(next(iter(commands.__path__)), f"{name}.py")
    with file.open(encoding="utf-8") as lines:
        text = lines.readline().strip().strip('"').partition(": ")[2]
    return text[:1].upper() + text[1:]


def _say(text: str) -> int:
    click.echo(f"error: {text}", err=True)
    return _WRONG


def _report(error: XetlError) -> int:
    """Print an error and return the exit code; show no line of click's files."""
    if error.file is not None and error.file.startswith(_CLICK):
        error.file = None
    click.echo(str(error), err=True)
    click.echo(f"   = more: xetl explain {error.code}", err=True)
    return 1 if isinstance(error, InternalError) else _WRONG


def _show_warning(
    message: Warning | str, category: type[Warning], *_: Any, **__: Any
) -> None:
    click.echo(f"warning: {message}", err=True)


@click.group(
    "xetl", cls=Commands, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="xetl", message="%(prog)s %(version)s")
def command() -> None:
    r"""xetl: tile kernels in Python, compiled for CPUs and Intel GPUs.

    \b
    FILE:KERNEL is a kernel of a Python file, of a module or of a text (.mlir).
    SIGNATURE has the types of its arguments: "bf16[M,K] bf16[K,N]^T f32[M,N] i64".
    Each command shows examples: xetl COMMAND --help.

    Exit codes: 0 done; 2 the input is wrong, and the message says what to do; 1 xetl
    itself is wrong, or `xetl doctor` found a problem.

    \b
    Completion: put this line into ~/.bashrc (zsh and fish likewise)
    eval "$(_XETL_COMPLETE=bash_source xetl)"
    """


def main() -> int:
    """Entry point of the command; returns its exit code."""
    try:
        _with_click_marks(command).main(prog_name="xetl")
    except SystemExit as end:
        if not command.is_interrupted:
            raise
        # After an interrupt in evaluated code, Python would exit as if by the signal.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(end.code or 0))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Output of commands: files (all of them or none), and lines or JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from xetl.runtime.cache import write_whole

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, for programs."
)
"""The option that gives a command the parameter ``as_json``."""


def show(data: Any, lines: Iterable[str], as_json: bool) -> None:
    """Print the result of a command: as JSON, or as lines for people."""
    if as_json:
        click.echo(json.dumps(data, indent=1, default=str))
        return
    for line in lines:
        click.echo(line)


def write_files(contents: Mapping[Path, bytes | str]) -> None:
    """Write the files of a command, all or none; a BadParameter if that fails."""
    try:
        replace_files(contents)
    except OSError as error:
        text = f"{why_not_written(error)}; name another place"
        raise click.BadParameter(text, param_hint="--output") from None


def why_not_written(error: OSError) -> str:
    """Return in one line why `replace_files` failed."""
    path = Path(str(error.filename))
    if not path.parent.is_dir():
        return f"there is no folder `{path.parent}`"
    return f"`{path}` cannot be written: {error.strerror}"


def replace_files(contents: Mapping[Path, bytes | str]) -> None:
    """Write files so that a failure or an interruption leaves none half written.

    What is no file, such as ``/dev/null`` or a pipe, is written after the files, and
    stays what it is. A link stays a link: its file changes.

    Raises:
        OSError: a file cannot be written; no file changed. The error has its name.
    """
    for path in contents:
        if path.is_dir():
            raise IsADirectoryError(None, "it is a folder", str(path))
    mask = os.umask(0)
    os.umask(mask)
    each = {p: c.encode() if isinstance(c, str) else c for p, c in contents.items()}
    streams = [path for path in each if path.exists() and not path.is_file()]
    files = {Path(os.path.realpath(p)): c for p, c in each.items() if p not in streams}
    write_whole(files, mode=0o666 & ~mask)
    for path in streams:
        try:
            path.write_bytes(each[path])
        except OSError as error:
            error.filename = str(path)
            raise

"""What commands give: files, all of them or none, and lines or JSON."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, for programs."
)
"""Gives a command the parameter ``as_json``."""


def show(data: Any, lines: Iterable[str], as_json: bool) -> None:
    """Print what a command found: as JSON, or as lines for people."""
    if as_json:
        click.echo(json.dumps(data, indent=1, default=str))
        return
    for line in lines:
        click.echo(line)


def write_files(contents: Mapping[Path, bytes | str]) -> None:
    """Write the files of a command, all or none.

    Raises:
        ClickException: a folder is not there or cannot be written to; nothing changed.
    """
    try:
        replace_files(contents)
    except OSError as error:
        text = f"{why_not_written(error)}; name another place"
        raise click.BadParameter(text, param_hint="--output") from None


def why_not_written(error: OSError) -> str:
    """What kept `replace_files` from writing, in a line."""
    path = Path(str(error.filename))
    if not path.parent.is_dir():
        return f"there is no folder `{path.parent}`"
    return f"`{path}` cannot be written: {error.strerror}"


def replace_files(contents: Mapping[Path, bytes | str]) -> None:
    """Write files so that a failure or an interruption leaves none half written.

    Each is written beside its place first; files that are there are replaced.

    Raises:
        OSError: with the name of the file that cannot be written; nothing changed.
    """
    ready: dict[Path, str] = {}
    path = Path()
    try:
        for path, content in contents.items():
            if path.is_dir():
                raise IsADirectoryError(None, "it is a folder")
            data = content.encode() if isinstance(content, str) else content
            descriptor, ready[path] = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(ready[path], 0o666 & ~mask)
        for path, temporary in ready.items():
            os.replace(temporary, path)
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise
    finally:
        for temporary in ready.values():
            with suppress(OSError):
                os.unlink(temporary)

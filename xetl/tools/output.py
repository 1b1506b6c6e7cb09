"""Files that commands write: all of them, or none."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import click


def write_files(contents: Mapping[Path, bytes | str]) -> None:
    """Write files so that a failure or an interruption leaves none half written.

    Each is written beside its place first; files that are there are replaced.

    Raises:
        ClickException: a folder is not there or cannot be written to; nothing changed.
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
            os.chmod(ready[path], 0o666 & ~_umask())
        for path, temporary in ready.items():
            os.replace(temporary, path)
    except OSError as error:
        why = f"there is no folder `{path.parent}`"
        if path.parent.is_dir():
            why = f"`{path}` cannot be written: {error.strerror}"
        text = f"{why}; name another place"
        raise click.BadParameter(text, param_hint="--output") from None
    finally:
        for temporary in ready.values():
            with suppress(OSError):
                os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

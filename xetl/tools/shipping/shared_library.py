"""An object as a shared library, by the linker of the system's C compiler."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

_COMPILERS = ("cc", "gcc", "clang")


def shared_library(code: bytes, name: str, libraries: Sequence[str]) -> bytes:
    """Link an object.

    Args:
        code: the object.
        name: of the library's file, which is what programs ask for.
        libraries: that it needs.

    Raises:
        UsageError: there is no C compiler, or it refuses.
    """
    found = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if found is None:
        raise click.UsageError(
            "a shared library needs a linker, and there is no C compiler: install gcc "
            "or clang, or write an object: -o k.o"
        )
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder, "linked.so")
        Path(folder, "code.o").write_bytes(code)
        flags = [f"-Wl,-soname,{name}", *(f"-l{each}" for each in libraries)]
        command = [found, "-shared", "-o", str(into), f"{folder}/code.o", *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
            raise click.UsageError(f"`{found}` cannot link `{name}`: {last}")
        return into.read_bytes()

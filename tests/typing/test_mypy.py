"""What mypy finds in a user's file: `py.typed` (issue 3, point 1).

In `files/wrong.py` each wrong line says with which code it is found; `files/right.py`
uses most of the language and of the host API and is clean.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import xetl

pytest.importorskip("mypy", reason="mypy is not installed")

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EXPECTED = re.compile(r"# E: ([\w-]+)$")
FOUND = re.compile(r"^(?P<file>.+):(?P<line>\d+): error: .*\[(?P<code>[\w-]+)\]$")


def check(name: str, cache: Path, *options: str) -> set[tuple[int, str]]:
    """Lines and codes of what mypy says of a file, in a folder of its own."""
    # Other people's packages, ours to them, are followed but not reported on.
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", *options]
    command += [f"--cache-dir={cache}", "--config-file=", str(HERE / "files" / name)]
    paths = [ROOT, ROOT / "backends" / "cpu", ROOT / "backends" / "reference"]
    done = subprocess.run(
        command,
        env={**os.environ, "MYPYPATH": os.pathsep.join(map(str, paths))},
        cwd=cache,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode in (0, 1), done.stderr
    matches = [FOUND.match(line) for line in done.stdout.splitlines()]
    assert all(match["file"].endswith(name) for match in matches if match)
    return {(int(match["line"]), match["code"]) for match in matches if match}


def test_the_packages_say_that_they_are_typed() -> None:
    assert (Path(xetl.__file__).parent / "py.typed").exists()


@pytest.mark.slow
def test_mypy(tmp_path: Path) -> None:
    lines = (HERE / "files" / "wrong.py").read_text().splitlines()
    expected = {
        (number, match[1])
        for number, line in enumerate(lines, 1)
        if (match := EXPECTED.search(line))
    }
    assert len(expected) > 15
    assert check("wrong.py", tmp_path, "--check-untyped-defs") == expected
    assert check("right.py", tmp_path, "--strict") == set()

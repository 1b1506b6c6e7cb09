"""Running the command ``xetl``: in this process, and once each in its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from xetl.tools.cli import command

ROOT = Path(__file__).parents[2]
TREES = ("", "backends/reference", "backends/cpu", "backends/xegpu")

Xetl = Callable[..., Result]
Shell = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def xetl(monkeypatch: pytest.MonkeyPatch) -> Xetl:
    """``xetl(*words, **variables)``: the command in this process."""
    # It adds the folders of the files it is given.
    monkeypatch.setattr(sys, "path", sys.path.copy())

    def run(*words: str, **variables: str) -> Result:
        runner = CliRunner(env=variables)
        return runner.invoke(command, words, catch_exceptions=False)

    return run


@pytest.fixture
def shell() -> Shell:
    """``shell(*words, **variables)``: ``python -m xetl`` as a process of its own."""

    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join(str(ROOT / tree) for tree in TREES)
        return subprocess.run(
            [sys.executable, "-m", "xetl", *words],
            env={**os.environ, "PYTHONPATH": paths, **variables},
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run

"""Launches and forks in the middle of a launch, at each line of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("nested_launches.py")


def run(*arguments: str, layer: str) -> str:
    variables = {"NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("layer", ["omp", "workqueue"])
@pytest.mark.parametrize("what", ["launch", "prepacked", "fork"])
def test_at_each_line_of_a_launch(what: str, layer: str) -> None:
    assert run(what, layer=layer) == "done"


def test_what_a_kernel_prints_is_its_own() -> None:
    said = run("print", layer="omp")
    lines = said.removesuffix("done").splitlines()
    assert len(lines) > 20
    assert set(lines) == {lines[0]}


@pytest.mark.parametrize("line", [1, 3, 5, 8, 12, 20, 30])
def test_while_the_threads_are_started(line: int) -> None:
    assert run("start", str(line), layer="workqueue") == "done"

"""Finding a backend by its name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from xetl.backend import Artifact, backend_names, find_backend
from xetl.errors import LaunchError


def test_unknown_backend_lists_the_known_ones() -> None:
    with pytest.raises(LaunchError) as caught:
        find_backend("gpu")
    assert "no backend called `gpu`" in str(caught.value)
    assert "`cpu`, `reference`, `xegpu`" in str(caught.value)


def test_planned_backend_says_so() -> None:
    with pytest.raises(LaunchError, match="backend `xegpu` cannot be used") as caught:
        find_backend("xegpu")
    assert "Intel GPUs is not installed" in str(caught.value)


def test_names_are_those_of_the_entry_points() -> None:
    assert {"cpu", "reference"} <= set(backend_names())


def test_stored_arguments_of_an_artifact() -> None:
    assert Artifact(b"", {"stored": [2, 0]}).stored == {0, 2}
    assert Artifact(b"", {}).stored == frozenset()


def test_nothing_heavy_is_imported() -> None:
    script = """
import sys, xetl.backend
heavy = {"xdsl", "llvmlite", "numba", "torch", "xetl_cpu", "xetl_reference"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    path = ":".join(sys.path)
    subprocess.run([sys.executable, "-c", script], check=True, env={"PYTHONPATH": path})

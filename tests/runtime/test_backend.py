"""Finding a backend by its name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from xetl import backend
from xetl.backend import Artifact, backend_names, find_backend
from xetl.errors import LaunchError


def test_unknown_backend_lists_the_known_ones() -> None:
    with pytest.raises(LaunchError) as caught:
        find_backend("gpu")
    assert "no backend called `gpu`" in str(caught.value)
    assert "`cpu`, `reference`, `xegpu`" in str(caught.value)


@pytest.mark.parametrize("name", ["", "cpu.backend", "../cpu", "native", "täst"])
def test_any_text_may_be_asked_for(name: str) -> None:
    with pytest.raises(LaunchError, match="there is no backend called"):
        find_backend(name)


def test_packages_of_others_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "xetl_byname.py").write_text("BACKEND = 'by name'")
    (tmp_path / "xetl_needy.py").write_text("import what_is_not_there")
    (tmp_path / "other.py").write_text("BACKEND = 'by entry point'")
    info = tmp_path / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[xetl.backends]\nfar = other:BACKEND\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find_backend("byname") == "by name"
    backend._known.cache_clear()
    assert find_backend("far") == "by entry point"
    backend._known.cache_clear()
    with pytest.raises(ModuleNotFoundError, match="what_is_not_there"):
        find_backend("needy")


def test_names_are_those_of_the_entry_points() -> None:
    assert {"cpu", "reference", "xegpu"} <= set(backend_names())


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

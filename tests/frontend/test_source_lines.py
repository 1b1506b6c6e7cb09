"""Kernels that are in no file: `python -c`, standard input, `exec`, Python 3.13."""

from __future__ import annotations

import linecache
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from xetl import xetile
from xetl.errors import SyntaxNotSupportedError
from xetl.language import source_lines

ROOT = Path(__file__).parents[2]
TREES = ("", "backends/reference", "backends/cpu")

PROGRAM = """
import numpy as np
from xetl import xetile

@xetile.function
def more(v):
    return v + 1.0

@xetile.kernel(grid=1)
def bump(X):
    tile = xetile.init_tile(X, [0, 0], (8, 16))
    xetile.store_tile(more(xetile.load_tile(tile)) * 2.0, tile)

x = np.zeros((8, 16), np.float32)
bump(x)
assert (x == 2).all()
print("done")
"""

WRONG = PROGRAM.replace("return v + 1.0", "return v + nothing")


def run(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(str(ROOT / tree) for tree in TREES)
    return subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


@pytest.mark.parametrize("words", [["-c", PROGRAM], ["-Bc", PROGRAM, "-x", "1"]])
def test_python_c(words: list[str]) -> None:
    done = run(*words)
    assert done.stdout == "done\n", done.stderr


def test_an_error_in_python_c_has_its_line() -> None:
    done = run("-c", WRONG)
    assert "--> <string>:7:16 in more" in done.stderr
    assert "    return v + nothing" in done.stderr
    assert "18 | bump(x, 3.5)" in run("-c", PROGRAM + "bump(x, 3.5)").stderr


def test_standard_input_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    with (tmp_path / "program.py").open() as file:
        done = run("-", stdin=file)
    assert done.stdout == "done\n", done.stderr


def test_standard_input_from_a_pipe_is_gone() -> None:
    done = run("-", input=PROGRAM)
    if sys.version_info < (3, 13):
        assert "error[X0401]" in done.stderr
        assert "a file or a notebook" in done.stderr


def test_texts_of_one_name_are_kept_apart() -> None:
    def generated(step: float) -> Any:
        text = PROGRAM.partition("x = np")[0].replace("1.0", str(step))
        linecache.cache["<generated>"] = (len(text), None, text.splitlines(True), "")
        names: dict[str, Any] = {}
        exec(compile(text, "<generated>", "exec"), names)
        return names["bump"]

    first, second = generated(1.0), generated(5.0)
    assert "1.000000e+00" in first.ir("xetile", "f32[8,16]")
    assert "5.000000e+00" in second.ir("xetile", "f32[8,16]")


def test_exec_s_text_is_not_taken_for_another_of_its_name() -> None:
    text = "def lost(X):\n    xetile.barrier()\n"
    linecache.cache["<string>"] = (0, None, ["def lost(X):\n", "    pass\n"], "")
    try:
        names: dict[str, Any] = {"xetile": xetile}
        exec(text, names)
        with pytest.raises(SyntaxNotSupportedError, match="cannot be read"):
            xetile.kernel(names["lost"]).ir("xetile", "f32[8,16]")
        linecache.cache["<string>"] = (0, None, text.splitlines(True), "")
        assert xetile.kernel(names["lost"]).ir("xetile", "f32[8,16]")
    finally:
        del linecache.cache["<string>"]


def test_what_newer_versions_of_python_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def typed(X):\n    xetile.barrier()\n"
    names: dict[str, Any] = {"xetile": xetile}
    exec(compile(text, "<python-input-0>", "exec"), names)
    monkeypatch.setattr(
        linecache, "_getlines_from_code", lambda code: text.splitlines(True), False
    )
    assert source_lines.lines_of(names["typed"]) == text.splitlines(True)
    assert xetile.kernel(names["typed"]).ir("xetile", "f32[8,16]")

"""A debugger steps through a kernel in `interpret`, and sees its variables."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xetl import xetile
from xetl.frames import is_debugged

SCRIPT = """
import numpy as np
from xetl import xetile

@xetile.function
def twice(v):
    w = v + v
    return w

@xetile.kernel
def k(X, Y):
    i = xetile.program_id(0)
    v = xetile.load_tile(xetile.init_tile(X, [i, 0], (1, 4)))
    for j in range(2):
        v = twice(v)
    {stop}
    v = v + 1.0
    xetile.store_tile(v, xetile.init_tile(Y, [i, 0], (1, 4)))

X = np.arange(8, dtype="f4").reshape(2, 4)
Y = np.zeros_like(X)
k.interpret(X, Y, grid=2)
print("done", Y.sum())
"""


def pdb(folder: Path, stop: str, typed: str, *before: str) -> list[str]:
    """Run the script and type into pdb: what it says."""
    file = folder / "script.py"
    file.write_text(SCRIPT.replace("{stop}", stop))
    done = subprocess.run(
        [sys.executable, *before, str(file)],
        input=typed,
        capture_output=True,
        text=True,
        timeout=100,
    )
    lines = done.stdout.replace("(Pdb) ", "").splitlines()
    return [line.replace(str(folder), "") for line in lines if line]


def test_breakpoint_then_next(tmp_path: Path) -> None:
    said = pdb(
        tmp_path,
        "breakpoint()",
        "p i\np int(v.sum())\nn\np int(v.sum())\nn\np int(v.sum())\nc\nc\n",
    )
    assert said[:9] == [
        "> /script.py(16)k()",
        "-> breakpoint()",
        "0",
        "24",
        "> /script.py(17)k()",
        "-> v = v + 1.0",
        "24",
        "> /script.py(18)k()",
        "-> xetile.store_tile(v, xetile.init_tile(Y, [i, 0], (1, 4)))",
    ]
    assert said[9] == "28"
    assert said[-1] == "done 120.0"


def test_breakpoints_by_line_in_a_kernel_and_a_function(tmp_path: Path) -> None:
    typed = "b 12\nc\nn\nn\nn\nn\nn\nb 8\nc\nc\np w\ncl 1\ncl 2\nc\nq\n"
    said = pdb(tmp_path, "pass", typed, "-m", "pdb")
    stops = [line for line in said if line.startswith("> ")]
    # Since Python 3.14 `next` goes on to another line: a loop of one is one step.
    steps = [15, 17, 18] if sys.version_info >= (3, 14) else [15, 15, 17]
    assert stops[1:9] == [
        *(f"> /script.py({line})k()" for line in (12, 13, 14, *steps)),
        "> /script.py(12)k()",  # the next program
        "> /script.py(8)twice()",
    ]
    assert "done 120.0" in said


@xetile.kernel
def plain(X, Y):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (1, 4)))
    w = v * 2.0
    if xetile.program_id(0) == 0:
        w = w + 1.0
    xetile.store_tile(w, xetile.init_tile(Y, [0, 0], (1, 4)))


def test_a_trace_function_sees_the_lines_of_the_kernel() -> None:
    seen: list[tuple[int, list[str]]] = []

    def trace(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != __file__ or frame.f_code.co_name != "plain":
            return None
        if event == "line":
            names = [n for n in frame.f_locals if not n.startswith("__")]
            seen.append((frame.f_lineno, names))
        return trace

    x, y = np.ones((1, 4), "f4"), np.zeros((1, 4), "f4")
    plain.interpret(x, y, grid=1)  # before: code that nobody steps through
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        plain.interpret(x, y, grid=1)
        plain.interpret(x, y, grid=1)
    finally:
        sys.settrace(before)
    assert (y == 3).all()
    _, start = inspect.getsourcelines(plain.fn)
    assert [line - start for line, _ in seen] == [2, 3, 4, 5, 6] * 2
    assert seen[0][1] == ["X", "Y"]
    assert {"v", "w"} <= {*seen[4][1]}


def test_nothing_is_added_without_a_debugger() -> None:
    if is_debugged():
        pytest.skip("somebody traces the tests")
    text = plain.ir("xetile", "f32[M,4] f32[M,4]", backend="reference")
    assert "breakpoint" not in text

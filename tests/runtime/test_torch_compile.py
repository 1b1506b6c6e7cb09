"""Launches inside of ``torch.compile``: a break of the graph, no more."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("compiled_by_torch.py")
HAS_TORCH = importlib.util.find_spec("torch") is not None
WAYS = [
    # Importing torch takes seconds, and Inductor calls a C++ compiler.
    pytest.param(*each, marks=pytest.mark.slow)
    for each in (("xetl", "eager"), ("torch", "eager"), ("torch", "inductor"))
]


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
@pytest.mark.parametrize(("first", "backend"), WAYS)
def test_launches_break_the_graph(first: str, backend: str) -> None:
    if backend == "inductor" and shutil.which("c++") is None:
        pytest.skip("Inductor needs a C++ compiler")
    command = [sys.executable, "-W", "error::UserWarning", str(PROGRAM), first, backend]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    # Seven frames and their rests; where torch comes late, it meets a few of ours.
    assert int(done.stdout) <= (20 if first == "torch" else 50)

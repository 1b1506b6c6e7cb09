"""What touches memory outside of an array ends a process that fences them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = """
from tests.fenced_memory import fence_if_wanted
fence_if_wanted()
import ctypes, threading
import numpy as np
arrays = [np.arange(2, dtype=np.float32)]
arrays += [np.ones(1000, np.float32) for _ in range(4)]
def read():
    x = next(x for x in arrays if {condition})
    ctypes.string_at(x.ctypes.data + {first}, {size})
threading.Thread(target=arrays.append, args=[np.zeros((30, 5)).T.copy()]).start()
arrays[0].resize(2000, refcheck=False)
assert arrays[0].tolist() == [0, 1, *[0] * 1998]
read()
"""
AT_A_PAGE = "x.ctypes.data % 4096 == 0"


@pytest.mark.parametrize(
    ("condition", "first", "size", "code"),
    [
        ("True", "0", "x.nbytes", 0),
        (f"not {AT_A_PAGE}", "0", "4096 - x.ctypes.data % 4096", 0),
        (AT_A_PAGE, "-1", "1", -signal.SIGSEGV),
        (f"not {AT_A_PAGE}", "x.nbytes // 4096 * 4096", "4096", -signal.SIGSEGV),
    ],
)
def test_bytes_outside(condition: str, first: str, size: str, code: int) -> None:
    script = SCRIPT.format(condition=condition, first=first, size=size)
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "XETL_TESTS_FENCED": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr

"""A real kernel through all of it: from the decorator to machine code and back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNEL = """
import sys
import numpy as np
from xetl import xetile
from xetl.errors import LaunchError
from xetl.xetile import constexpr

@xetile.kernel
def scaled_sum(A, B, C, alpha=1.0, BM: constexpr = 16):
    m = xetile.program_id(0) * BM
    a = xetile.load_tile(xetile.init_tile(A, [m, 0], (BM, 16)))
    b = xetile.load_tile(xetile.init_tile(B, [m, 0], (BM, 16)))
    xetile.store_tile(a + alpha * b, xetile.init_tile(C, [m, 0], (BM, 16)))

A = np.arange(32 * 16, dtype=np.float32).reshape(32, 16)
B, C = A + 1, np.zeros_like(A)
"""


def run(tmp_path: Path, script: str) -> str:
    path = tmp_path / "user.py"
    path.write_text(KERNEL + script)
    done = subprocess.run(
        [sys.executable, str(path)],
        env={
            "PYTHONPATH": os.pathsep.join(sys.path),
            "XETL_CACHE_DIR": str(tmp_path / "cache"),
            "NUMBA_NUM_THREADS": "2",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_hit_loads_no_compiler(tmp_path: Path) -> None:
    script = """
for _ in range(3):
    scaled_sum[2](A, B, C, 0.5)
assert np.array_equal(C, A + 0.5 * B)
heavy = {"xdsl", "llvmlite", "numba", "torch", "xetl.compiler", "xetl.frontend"}
print(len(heavy & set(sys.modules)))
"""
    first, second = (run(tmp_path, script) for _ in range(2))
    assert int(first) > 0
    assert int(second) == 0


def test_both_roads_give_the_same(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    run(
        tmp_path,
        """
import torch
from xetl.language import f32
def check(a, b, c, alpha):
    expected = np.asarray(a) + np.float32(alpha) * np.asarray(b)
    for _ in range(3):
        c[...] = 0
        scaled_sum[2](a, b, c, alpha)
        assert np.allclose(np.asarray(c), expected), (a, b)
check(A, B, C, 2.0)
check(A, B, C, 3)
check(A.T.copy().T, B, C, 2.0)
check(np.repeat(A, 2, axis=1)[:, ::2], B[::-1], C, 2.0)
check(np.broadcast_to(A[:1], A.shape), B, C, -1.0)
check(*map(torch.from_numpy, (A, B, C)), 2.0)
plan = scaled_sum.bind(A, B, C, 4.0, grid=2)
C[:] = 0
plan()
assert np.allclose(C, A + 4 * B)
scaled_sum[2](A, B, A, 1.0)
""",
    )


def test_wrong_launches_write_nothing(tmp_path: Path) -> None:
    script = """
for _ in range(2):
    for a, c in ((C[1:], C[:-1]), (A, np.broadcast_to(C[:1], C.shape))):
        try:
            scaled_sum[2](a, B, c)
        except LaunchError as error:
            print(error.message)
        assert not C.any()
    scaled_sum[2](A, B, C)
    C[:] = 0
"""
    shared = "`C` is written, but shares memory with `A`"
    readonly = "`C` is written by the kernel, but the array is read-only"
    assert run(tmp_path, script).splitlines() == [shared, readonly] * 2

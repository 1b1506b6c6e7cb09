"""A launch uses several threads where its work, loops included, is worth it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from xetl import xetile
from xetl.xetile import constexpr

FOLDER = Path(__file__).parent


@xetile.kernel
def sums(X, Y, C: constexpr):
    """The sum of a row, by tiles: the number of trips is known when it is launched."""
    r = xetile.program_id(0)
    total = xetile.zeros((1, C), xetile.f32)
    for c in range(0, X.shape[1], C):
        total += xetile.load_tile(xetile.init_tile(X, [r, c], (1, C)))
    out = total.sum(1, keepdims=True)
    xetile.store_tile(out, xetile.init_tile(Y, [r, 0], (1, 1)))


@xetile.kernel
def blocks(X, Y, R: constexpr, C: constexpr):
    """Some rows a program, one after the other."""
    first = xetile.program_id(0) * R
    for r in range(first, xetile.minimum(first + R, X.shape[0])):
        x = xetile.load_tile(xetile.init_tile(X, [r, 0], (1, C)))
        e = xetile.exp(x - x.max(1, keepdims=True))
        out = e / e.sum(1, keepdims=True)
        xetile.store_tile(out, xetile.init_tile(Y, [r, 0], (1, C)))


@xetile.kernel
def columns(X, Y, R: constexpr, C: constexpr):
    """What it carries has more rows than registers hold."""
    total = xetile.zeros((R, C))
    for r in range(0, X.shape[0], R):
        total = total + xetile.load_tile(xetile.init_tile(X, [r, 0], (R, C)))
        total = total * total.max(1, keepdims=True)
    xetile.store_tile(total, xetile.init_tile(Y, [0, 0], (R, C)))


@xetile.kernel
def beside(X, Y, R: constexpr, C: constexpr):
    """Tiles of few columns: programs beside one another become one."""
    place = [xetile.program_id(0) * R, xetile.program_id(1) * C]
    x = xetile.load_tile(xetile.init_tile(X, place, (R, C)))
    xetile.store_tile(x + x, xetile.init_tile(Y, place, (R, C)))


COUNTS = """
import ctypes
import time
import numpy as np
import test_work as t
from xetl_cpu.launch import threads

forks, late = [], {late}
Task = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)
Fork = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5, *[ctypes.c_int64] * 3)

@Fork
def fork(task, args, dims, steps, context, *rest):
    forks.append(1)
    Task(task)(args, dims, steps, context)
    end = time.perf_counter() + late
    while time.perf_counter() < end:
        pass

address = ctypes.cast(fork, ctypes.c_void_p).value
threads._State.layer = threads.ThreadLayer("counted", 2, address)
X = np.random.default_rng(0).random({shape}, np.float32)
Y = np.empty({result}, np.float32)
for _ in range({launches}):
    t.{launch}
np.testing.assert_allclose(Y, {wanted}, rtol=1e-4)
print(len(forks))
"""
SUMS = ("sums[{n}](X, Y, C=256)", "X.sum(1, keepdims=True)")
BLOCKS = (
    "blocks[{n}](X, Y, R=4, C={m})",
    "(E := np.exp(X)) / E.sum(1, keepdims=True)",
)
BESIDE = ("beside[1, {n}](X, Y, R=4, C=64)", "X + X")


@pytest.mark.parametrize(
    ("what", "rows", "columns", "programs", "forks"),
    [
        (SUMS, 2, 1_000_000, 2, 1),
        (SUMS, 2, 1_000, 2, 0),
        (SUMS, 8, 1_000, 8, 0),
        (BLOCKS, 16, 16, 4, 0),
        (BLOCKS, 64, 16, 16, 0),
        (BLOCKS, 256, 1024, 64, 1),
        (BESIDE, 4, 1024, 16, 0),
        (BESIDE, 4, 1 << 20, 1 << 14, 1),
    ],
)
def test_threads_are_used_where_work_is_worth_them(
    what: tuple[str, str], rows: int, columns: int, programs: int, forks: int
) -> None:
    assert _forks(what, rows, columns, programs) == forks


@pytest.mark.parametrize(
    ("rows", "late", "launches", "least", "most"),
    [
        (256, 0.0, 200, 100, 200),
        (256, 0.0005, 200, 3, 50),
        (65_536, 0.0005, 10, 6, 10),
    ],
)
def test_threads_that_come_late_are_called_where_that_pays(
    rows: int, late: float, launches: int, least: int, most: int
) -> None:
    forks = _forks(BLOCKS, rows, 1024, rows // 4, late, launches)
    assert least <= forks <= most


def _forks(
    what: tuple[str, str],
    rows: int,
    columns: int,
    programs: int,
    late: float = 0.0,
    launches: int = 1,
) -> int:
    """How many launches of a new process call a pool that comes ``late`` seconds."""
    launch = what[0].format(n=programs, m=columns)
    width = 1 if what is SUMS else columns
    shapes = {"shape": (rows, columns), "result": (rows, width)}
    times = {"late": late, "launches": launches}
    code = COUNTS.format(**shapes, **times, launch=launch, wanted=what[1])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(FOLDER), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_a_loop_of_a_program_is_said_to_run_on_one_thread() -> None:
    said = sums.explain("f32[M,N] f32[M,N]", C=64).remarks
    (found,) = [each for each in said if each.topic == "threads"]
    assert "in a second kernel" in found.text
    assert "range(0, X.shape[1], C)" in found.source
    said = columns.explain("f32[M,N] f32[M,N]", R=64, C=64).remarks
    (found,) = [each for each in said if each.topic == "threads"]
    assert "range(0, X.shape[0], R)" in found.source
    said = blocks.explain("f32[M,N] f32[M,N]", R=4, C=16).remarks
    assert not [each for each in said if each.topic == "threads"]


def test_a_thread_alone_takes_all_programs_at_once() -> None:
    """An atomic step waits for all stores before it: one for each of few programs."""
    x, y = np.zeros((16, 64), np.float32), np.zeros((16, 1), np.float32)
    text = sums.ir("llvm", x, y, 16)
    text = text[text.index('@"xetl_task"') :]
    step = re.search(r"atomicrmw add ptr \S+, i64 (\S+) monotonic", text)
    assert step is not None
    chosen = rf"{re.escape(step[1])} = select +i1 (\S+), i64 (\S+), i64"
    choice = re.search(chosen, text)
    assert choice is not None
    assert re.search(rf"{re.escape(choice[1])} = icmp eq i64 \S+, 1\b", text)
    # All trips, the first word of the context.
    assert re.search(rf"{re.escape(choice[2])} = load i64, ptr", text)
    # Alone it takes no atomic step, nor does it say when it was done.
    assert re.search(rf"br i1 {re.escape(choice[1])}, label", text)
    clock = text.rindex('call i64 @"llvm.readcyclecounter')
    tests = re.findall(r"(\S+) = icmp sgt i64 \S+, 1\n", text[:clock])
    assert re.search(rf"= and i1 {re.escape(tests[-1])}, ", text[:clock])

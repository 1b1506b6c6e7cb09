"""Results do not depend on how many threads run, nor on who else launches."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from launching import same, small_integers

from xetl import xetile
from xetl.settings import config
from xetl.xetile import constexpr, f32

ROOT = Path(__file__).parents[3]


@xetile.kernel
def rows(X, Y, R: constexpr, C: constexpr):
    r = xetile.program_id(0) * R
    v = xetile.load_tile(xetile.init_tile(X, [r, 0], (R, C)))
    e = v - v.max(1, keepdims=True)
    w = xetile.where(e < -1.0, e * v, e + v)
    out = w + w.sum(1, keepdims=True)
    xetile.store_tile(out, xetile.init_tile(Y, [r, 0], (R, C)))


@xetile.kernel
def gemm(
    A,
    B,
    C,
    BM: constexpr = 16,
    BN: constexpr = 32,
    BK: constexpr = 8,
    ADDED: constexpr = 0,
):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), f32)
    for _ in range(0, A.shape[1], BK):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    if ADDED:
        # Programs that store by index are no tasks of several.
        row, column = m + xetile.arange(BM), n + xetile.arange(BN)
        places = xetile.init_tile(C, [row[:, None], column[None, :]])
        xetile.store_scatter(acc + ADDED, None, places)
    else:
        xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


def of_rows(x: np.ndarray) -> np.ndarray:
    e = x - x.max(1, keepdims=True)
    w = np.where(e < -1, e * x, e + x)
    return w + w.sum(1, keepdims=True)


def everything(seed: int) -> list[np.ndarray]:
    """Launches of all kinds, checked; what they gave."""
    rng = np.random.default_rng(seed)
    x = small_integers(rng, 2000, 37)
    y = np.zeros_like(x)
    rows[1000](x, y, R=2, C=40)
    same(y, of_rows(x))
    a, b = small_integers(rng, 150, 300), small_integers(rng, 300, 170)
    c = np.zeros((150, 170), np.float32)
    gemm[(10, 6)](a, b, c)
    same(c, a @ b)
    return [y, c]


def test_many_programs() -> None:
    x = small_integers(np.random.default_rng(0), 20000, 3)
    y = np.zeros_like(x)
    rows[(20000, 1, 1)](x, y, R=1, C=3)
    same(y, of_rows(x))


@pytest.mark.usefixtures("target")
def test_python_threads_that_launch_at_once() -> None:
    everything(0)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(everything, range(24)))


@pytest.mark.parametrize("threads", [1, 2])
def test_any_number_of_threads(threads: int) -> None:
    paths = ["", "backends/reference", "backends/cpu", "tests/backends/cpu"]
    environment = {
        **os.environ,
        "NUMBA_NUM_THREADS": str(threads),
        "PYTHONPATH": os.pathsep.join(str(ROOT / path) for path in paths),
    }
    code = "import test_kernels_threads as t\nfor seed in range(5): t.everything(seed)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("target")
@pytest.mark.parametrize("added", [0, 1])
@pytest.mark.parametrize("columns", [1, 63, 130, 500, 700, 1040])
def test_threads_pack_narrow_tiles_together(columns: int, added: int) -> None:
    """As one task, or as programs of their own, if they do more than a product."""
    rng = np.random.default_rng(columns)
    a, b = (
        small_integers(rng, *shape).astype(ml_dtypes.bfloat16)
        for shape in [(100, 70), (70, columns)]
    )
    c = np.zeros((100, columns), np.float32)
    gemm[(2, -(-columns // 64))](a, b, c, BM=64, BN=64, BK=16, ADDED=added)
    same(c, a.astype(np.float32) @ b.astype(np.float32) + added)


def test_narrow_tiles_are_packed_by_groups_of_four() -> None:
    a = np.ones((128, 512), ml_dtypes.bfloat16)
    b = np.ones((512, 512), ml_dtypes.bfloat16)
    c = np.ones((128, 512), np.float32)
    tiles = {"BM": 64, "BN": 64, "BK": 32, "ADDED": 1}
    text = gemm.ir("xsmm", a, b, c, target="avx512_bf16", **tiles)
    packers = [line for line in text.splitlines() if '"xsmm.pack"' in line]
    ahead, by_thread = (line.split("(")[1].split(", ")[6] for line in packers)
    assert f"{by_thread} = arith.constant 256 : index" in text
    # Before the programs tiles go together whose rows have a page: 32, or what is left.
    product = re.search(rf"{ahead} = arith.muli (%\w+), (%\w+)", text)
    assert product is not None
    assert f"{product[1]} = arith.constant 64 : index" in text
    least = re.search(rf"{product[2]} = arith.minsi %\w+, (%\w+)", text)
    assert least is not None
    assert f"{least[1]} = arith.constant 32 : index" in text


def test_a_new_thread_finds_a_workspace() -> None:
    config.cache = False
    try:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(everything, 1).result()
    finally:
        del config.cache

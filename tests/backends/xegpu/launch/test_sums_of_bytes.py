"""Sums and extrema of a matrix of narrow numbers.

The driver for CPUs crashed on a word seen as a vector of four bytes, and, where it
optimised, on sums, selections and extrema of numbers of 8 and 16 bits.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.backends.xegpu import device
from xetl import xetile
from xetl.opencl_driver import VARIABLE, VECTORS
from xetl.xetile import constexpr
from xetl_xegpu.build_options import UNOPTIMISED
from xetl_xegpu.launch.devices import dpctl


@xetile.kernel
def both_sums(X, ROWS, COLUMNS, M: constexpr, N: constexpr, KIND: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (M, N)))
    rows = xetile.tile_reduce(KIND, v, [1])
    columns = xetile.tile_reduce(KIND, v, [0])
    xetile.store_tile(rows, xetile.init_tile(ROWS, [0, 0], (M, 1)))
    xetile.store_tile(columns, xetile.init_tile(COLUMNS, [0, 0], (1, N)))


@pytest.mark.optimised
@pytest.mark.parametrize("kind", ["add", "xor"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16])
@pytest.mark.parametrize("shape", [(9, 17), (5, 17), (8, 33), (4, 32)])
def test_sums(shape: tuple[int, int], dtype: Any, kind: str) -> None:
    device.require()
    x = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    rows = np.zeros((shape[0], 1), dtype)
    columns = np.zeros((1, shape[1]), dtype)
    m, n = shape
    both_sums[1](x, rows, columns, M=m, N=n, KIND=kind, backend="xegpu")
    reduce = (np.add if kind == "add" else np.bitwise_xor).reduce
    assert (rows == reduce(x, 1, dtype, keepdims=True)).all()
    assert (columns == reduce(x, 0, dtype, keepdims=True)).all()


@xetile.kernel
def sum_and_least(X, SUMS, LEAST, M: constexpr):
    v = xetile.load_tile(xetile.init_tile(X.T, [-1, 3], (M, 2)))
    xetile.store_tile(v.sum(1, keepdims=True), xetile.init_tile(SUMS.T, [4, 3], (M, 1)))
    xetile.store_tile(v.min(1, keepdims=True), xetile.init_tile(LEAST, [3, 3], (M, 1)))


@pytest.mark.optimised
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16])
def test_a_sum_beside_an_extremum(dtype: Any) -> None:
    device.require()
    m = 65
    x = np.random.default_rng(0).integers(1, 60, (70, 64)).astype(dtype)
    sums, least = np.zeros((5, m + 8), dtype), np.zeros((m + 8, 5), dtype)
    sum_and_least[1](x, sums, least, M=m, backend="xegpu")
    # The first row of the tile is outside X.T, and so is what is below its 64 rows.
    tile = np.zeros((m, 2), dtype)
    tile[1:] = x.T[: m - 1, 3:5]
    assert (sums[3, 4 : 4 + m] == tile.sum(1, dtype=dtype)).all()
    assert (least[3 : 3 + m, 3] == tile.min(1)).all()


@xetile.kernel
def all_extrema(X, ROWS, COLUMNS, ALL, DOWN, ALONG, M: constexpr, N: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (M, N)))
    xetile.store_tile(v.max(1, keepdims=True), xetile.init_tile(ROWS, [0, 0], (M, 1)))
    columns = v.max(0, keepdims=True)
    xetile.store_tile(columns, xetile.init_tile(COLUMNS, [0, 0], (1, N)))
    xetile.store_tile(
        columns.max(1, keepdims=True), xetile.init_tile(ALL, [0, 0], (1, 1))
    )
    down = xetile.cummax(v, 0)
    xetile.store_tile(down, xetile.init_tile(DOWN, [0, 0], (M, N)))
    along = xetile.cummax(v, 1)
    xetile.store_tile(along, xetile.init_tile(ALONG, [0, 0], (M, N)))


@pytest.mark.optimised
def test_extrema_and_running_extrema() -> None:
    device.require()
    m, n = 12, 37
    x = np.random.default_rng(0).integers(0, 1 << 16, (m, n)).astype(np.uint16)
    found = [np.zeros(shape, x.dtype) for shape in ((m, 1), (1, n), (1, 1))]
    running = [np.zeros_like(x), np.zeros_like(x)]
    all_extrema[1](x, *found, *running, M=m, N=n, backend="xegpu")
    for axis, extrema in ((1, found[0]), (0, found[1]), ((0, 1), found[2])):
        assert (extrema == x.max(axis, keepdims=True)).all()
    for axis in (0, 1):
        assert (running[axis] == np.maximum.accumulate(x, axis)).all()


@xetile.kernel
def changed(X, Y, OP: constexpr):
    row = xetile.init_tile(X, [0, 0], (1, 16))
    v = xetile.load_tile(row)
    if OP == "sum":
        v = v + v
    if OP == "less":
        v = xetile.where(v < 3, v, 0)
    if OP == "float":
        v = (v.to(xetile.f32) * 1.5).to(v.dtype)
    xetile.store_tile(v, xetile.init_tile(Y, [0, 0], (1, 16)))


@pytest.mark.optimised
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32"])
@pytest.mark.parametrize("op", ["copy", "float", "sum", "less"])
def test_which_programs_are_not_optimised(
    dtype: str, op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    device.require()
    found: list[str] = []
    create = dpctl().program.create_program_from_spirv

    def noted(queue: Any, spirv: bytes, options: str) -> Any:
        found.append(options)
        return create(queue, spirv, options)

    monkeypatch.setattr(dpctl().program, "create_program_from_spirv", noted)
    x, y = np.full((1, 16), 2, dtype), np.zeros((1, 16), dtype)
    xetile.kernel(changed.fn)[1](x, y, OP=op, backend="xegpu")
    short = x.itemsize < 4 and op in ("sum", "less")
    assert found == ([UNOPTIMISED] if short else [""])
    assert (y == {"copy": 2, "float": 3, "sum": 4, "less": 2}[op]).all()


EARLY = """
import dpctl
dpctl.SyclQueue()
import os
import numpy as np
from tests.backends.xegpu.launch import test_sums_of_bytes as kernels
kernels.test_sums((4, 32), np.int8, "add")
assert kernels.VECTORS not in os.environ
"""


def test_a_driver_that_was_loaded_before_optimises() -> None:
    device.require()
    # The child asks dpctl before xetl is imported: only the variable names a driver.
    if not os.environ.get(VARIABLE):
        pytest.skip("the driver was not installed by pip")
    early = {name: text for name, text in os.environ.items() if name != VECTORS}
    subprocess.run([sys.executable, "-c", EARLY], env=early, check=True)

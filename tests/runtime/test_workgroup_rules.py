"""The rules of a kernel as a whole, as users of Python and of text see them."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import xetl
from xetl import compiler, xetile
from xetl.backend import find_backend
from xetl.errors import ControlFlowError, IRError, TileMapWarning, TileShapeError
from xetl.language.dtypes import f32
from xetl.language.signature import ArrayParam, Signature
from xetl.xetile import constexpr

BACKENDS = pytest.mark.parametrize("backend", ["reference", "cpu"])


@xetile.function
def put(X: Any, row: Any, column: Any, value: Any) -> None:
    tile = xetile.init_tile(X, [row, column], (1, 1))
    xetile.store_tile(xetile.full((1, 1), value, f32), tile)


@xetile.function
def helper(X: Any, first: Any) -> None:
    if first:
        xetile.barrier()


@xetile.kernel(subgroups=[2, 2])
def waits_in_a_branch(X: Any) -> None:
    me = xetile.subgroup_id()
    if me == 0:
        xetile.barrier()
    put(X, me, 0, 1.0)


@xetile.kernel(subgroups=[2, 2])
def waits_in_a_helper(X: Any) -> None:
    helper(X, X[xetile.subgroup_id(), 0] > 0.0)


@xetile.kernel(subgroups=[2, 2])
def waits_behind_a_return(X: Any) -> None:
    me = xetile.subgroup_id()
    if me > 2:
        return
    xetile.barrier()
    put(X, me, 0, 1.0)


@xetile.kernel(subgroups=[2, 2])
def waits_unequally_often(X: Any, n: Any) -> None:
    for _i in range(xetile.subgroup_id(), n):
        xetile.barrier()


@xetile.kernel(subgroups=[2, 2])
def waits_together(X: Any, n: Any) -> None:
    me = xetile.subgroup_id()
    for i in range(me * n, (me + 1) * n):
        put(X, me, i - me * n, 1.0)
        xetile.barrier()
    if n > 2:
        xetile.barrier()
    if me == 0:
        put(X, 0, 7, 2.0)


@xetile.kernel(subgroups=[1, 1])
def waits_alone(X: Any) -> None:
    if xetile.subgroup_id() == 0:
        xetile.barrier()
    put(X, 0, 0, 1.0)


@xetile.kernel(subgroups=[2, 2])
def meets_again(X: Any) -> None:
    me = xetile.subgroup_id()
    if me == 0:
        put(X, 0, 1, 1.0)
    if X[0, 2] > 0.5:  # the same for all, wherever it was loaded
        xetile.barrier()


def array() -> Any:
    return np.zeros((4, 8), "f4")


@BACKENDS
def test_a_barrier_in_a_branch_of_some(backend: str) -> None:
    x = array()
    with pytest.raises(ControlFlowError) as caught:
        waits_in_a_branch[1](x, backend=backend)
    error = caught.value
    assert error.code == "X0612"
    assert error.source_line is not None
    assert error.source_line.strip() == "xetile.barrier()"
    assert "^^^^^^^^^^^^^^^^ the others would be waited for forever" in str(error)
    assert error.line is not None
    note = f"part at `if` at line {error.line - 1}, which depends on `subgroup_id` at"
    assert f"{note} line {error.line - 2}" in str(error)
    assert not x.any()


def test_the_caller_of_a_helper_is_shown() -> None:
    with pytest.raises(ControlFlowError) as caught:
        waits_in_a_helper[1](array(), backend="cpu")
    assert caught.value.function == "helper"
    assert [frame.function for frame in caught.value.frames] == ["waits_in_a_helper"]


@pytest.mark.parametrize("kernel", [waits_behind_a_return, waits_unequally_often])
def test_barriers_that_some_do_not_reach(kernel: Any) -> None:
    given = (array(),) if kernel is waits_behind_a_return else (array(), 4)
    with pytest.raises(ControlFlowError, match="not all subgroups") as caught:
        kernel[1](*given, backend="cpu")
    assert caught.value.source_line is not None
    assert caught.value.source_line.strip() == "xetile.barrier()"


@BACKENDS
def test_barriers_that_all_reach(backend: str) -> None:
    x = array()
    waits_together[1](x, 4, backend=backend)
    assert np.array_equal(x[:, :4], np.ones((4, 4)))
    assert x[0, 7] == 2.0
    waits_alone[1](x, backend=backend)
    meets_again[1](x, backend=backend)
    assert x[0, 1] == 1.0


# Shared memory ----------------------------------------------------------------------


class Small:
    """The CPU backend, on a device with little shared memory."""

    def __getattr__(self, name: str) -> Any:
        return getattr(find_backend("cpu"), name)

    def slm_limit(self, target: str) -> int:
        return 1000


def shares(X: Any) -> None:
    s = xetile.slm((16, 16), f32)
    xetile.store_tile(
        xetile.load_tile(xetile.init_tile(X, [0, 0], (16, 16))),
        xetile.init_tile(s, [0, 0], (16, 16)),
    )


def test_the_limit_is_that_of_the_target() -> None:
    signature = Signature((ArrayParam("X", f32, 2, 1),))
    small: Any = Small()
    with pytest.raises(TileShapeError, match="1024 bytes, but 1000 are") as caught:
        compiler.build(shares, signature, small, "host")
    assert caught.value.code == "X0211"
    assert compiler.build(shares, signature, find_backend("cpu"), "host")


# Text -------------------------------------------------------------------------------

DIVERGENT = """
gpu.module @m {
  gpu.func @k(%a: memref<4x8xf32>) kernel {
    %c0 = arith.constant 0 : index
    %id = gpu.thread_id x
    %first = arith.cmpi eq, %id, %c0 : index
    scf.if %first {
      gpu.barrier
    }
    gpu.return
  }
}
"""
LARGE = """
func.func @k(%a: memref<4x8xf32>) {
  %s = memref.alloc() : memref<1024x256xf32, 3>
  %c0 = arith.constant 0 : index
  %t = memref.alloc() : memref<16xf32, 3>
  return
}
"""


@BACKENDS
def test_a_text_with_a_barrier_for_some(backend: str) -> None:
    kernel = xetl.load_mlir(DIVERGENT)["k"]
    with pytest.raises(IRError) as caught:
        kernel[1, (4, 1, 1)](array(), backend=backend)
    error = caught.value
    assert (error.code, error.line, error.column) == ("X0707", 8, 7)
    assert " 8 |       gpu.barrier\n   |       ^^^^^^^^^^^" in str(error)
    assert "`scf.if` at line 7, which depends on `gpu.thread_id` at line 5" in str(
        error
    )
    # The very same is legal where there is one subgroup, or one along x.
    kernel[1](array(), backend=backend)
    kernel[1, (1, 4, 1)](array(), backend=backend)


@BACKENDS
def test_a_text_with_too_much_shared_memory(backend: str) -> None:
    with pytest.raises(IRError, match="beside 1048576 bytes") as caught:
        xetl.load_mlir(LARGE)["k"][1](array(), backend=backend)
    error = caught.value
    assert (error.code, error.line, error.column) == ("X0706", 5, 8)
    assert error.source_line == "  %t = memref.alloc() : memref<16xf32, 3>"


# Work that is done several times -----------------------------------------------------


@xetile.kernel
def multiplies(A: Any, B: Any, C: Any, BM: constexpr, WG: constexpr) -> None:
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (BM, 16)))
    b = xetile.load_tile(xetile.init_tile(B, [0, 0], (16, 32)))
    c = xetile.tile_mma(a, b, wg_map=WG)
    xetile.store_tile(c, xetile.init_tile(C, [0, 0], (BM, 32)))


@xetile.kernel
def adds_one(A: Any, C: Any, WG: constexpr) -> None:
    # A row that all share is no waste: it is the store that counts.
    row = xetile.load_tile(xetile.init_tile(A, [0, 0], (1, 32), wg_map=WG))
    rows = xetile.tile_broadcast(row, [0], (32, 32))
    xetile.store_tile(rows, xetile.init_tile(C, [0, 0], (32, 32), wg_map=SQUARE))
    xetile.store_tile(row, xetile.init_tile(C, [0, 0], (1, 32), wg_map=WG))


SQUARE = xetile.wg_map([4, 2], [8, 16])


def products() -> list[Any]:
    return [np.ones((32, 16), "f4"), np.ones((16, 32), "f4"), np.zeros((32, 32), "f4")]


@BACKENDS
def test_a_map_larger_than_its_tile_is_legal_and_warned_of(backend: str) -> None:
    wide = xetile.wg_map([4, 4], [16, 16])  # spreads 64 x 64
    a, b, c = products()
    with pytest.warns(TileMapWarning, match="8 subgroups each do the same") as caught:
        multiplies[1](a, b, c, BM=16, WG=wide, backend=backend)
    assert np.array_equal(c[:16], np.full((16, 32), 16))
    assert "is larger than what it spreads, (16, 32)" in str(caught[0].message)
    line = linecache.getline(caught[0].filename, caught[0].lineno)
    assert line.strip() == "c = xetile.tile_mma(a, b, wg_map=WG)"
    report = multiplies.explain(a, b, c, BM=16, WG=wide, backend=backend)
    assert "maps: 8 subgroups each do the same work" in str(report)


@BACKENDS
def test_operands_may_be_shared(backend: str) -> None:
    a, b, c = products()
    multiplies[1](a, b, c, BM=32, WG=SQUARE, backend=backend)
    assert np.array_equal(c, np.full((32, 32), 16))
    adds_one[1](
        a.reshape(16, 32), c, WG=xetile.wg_map([4, 2], [1, 16]), backend=backend
    )
    assert np.array_equal(c, np.ones((32, 32)))

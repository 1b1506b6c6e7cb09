"""Compare and swap, and the order of atomics, on each backend."""

from __future__ import annotations

import re

import numpy as np
import pytest

import xetl
from tests.frontend.page import NUMPY
from xetl import xetile
from xetl.errors import IRError
from xetl.xetile import constexpr

ALL = pytest.mark.parametrize("backend", ["reference", "cpu", "xegpu"])
SHAPE = (4, 32)


@xetile.kernel(grid=1)
def swap(X, EXPECTED, DESIRED, OLD, R: constexpr = 4, C: constexpr = 32):
    expected = xetile.load_tile(xetile.init_tile(EXPECTED, [0, 0], (R, C)))
    desired = xetile.load_tile(xetile.init_tile(DESIRED, [0, 0], (R, C)))
    old = xetile.atomic_cas(xetile.init_tile(X, [0, 0], (R, C)), expected, desired)
    xetile.store_tile(old, xetile.init_tile(OLD, [0, 0], (R, C)))


@ALL
@pytest.mark.parametrize("dtype", ["i32", "u32", "i64", "u64", "f32", "f64"])
def test_swaps_where_memory_has_what_is_expected(dtype: str, backend: str) -> None:
    """Outside of the array the old value is 0."""
    rng = np.random.default_rng(0)
    kind = np.dtype(NUMPY[dtype])
    x = rng.integers(0, 3, (3, 29)).astype(kind)
    expected, desired = rng.integers(0, 3, (2, *SHAPE)).astype(kind)
    before, old = x.copy(), np.full(SHAPE, 9, kind)
    swap(x, expected, desired + 5, old, backend=backend)
    equal = before == expected[:3, :29]
    np.testing.assert_array_equal(x, np.where(equal, desired[:3, :29] + 5, before))
    np.testing.assert_array_equal(old[:3, :29], before)
    assert not old[3:].any()
    assert not old[:, 29:].any()


@ALL
@pytest.mark.parametrize("layout", [np.asfortranarray, lambda x: x[::-1, ::-1]])
def test_in_other_layouts(layout, backend: str) -> None:
    x = layout(np.arange(128, dtype=np.int32).reshape(SHAPE))
    before = x.copy()
    expected = np.where(np.arange(128).reshape(SHAPE) % 2, x, -1).astype(np.int32)
    old = np.zeros(SHAPE, np.int32)
    swap(x, expected, -np.ones(SHAPE, np.int32), old, backend=backend)
    np.testing.assert_array_equal(old, before)
    np.testing.assert_array_equal(x, np.where(before == expected, -1, before))


@xetile.kernel(grid=1)
def swap_among_subgroups(X, OLD, BLOCKS: constexpr):
    map_ = xetile.wg_map(sg_layout=[2, 2], sg_data=[8, 16])
    tile = xetile.init_tile(X, [0, 0], (16, 32), wg_map=map_, inner_blocks=BLOCKS)
    row = xetile.arange(16)[:, None] + xetile.zeros((16, 32), xetile.i32)
    if BLOCKS is not None:
        row = xetile.tile_pack(row, BLOCKS)
    old = xetile.atomic_cas(tile, row, -1)
    if BLOCKS is not None:
        old = xetile.tile_unpack(old)
    xetile.store_tile(old, xetile.init_tile(OLD, [0, 0], (16, 32)))


@ALL
@pytest.mark.parametrize("blocks", [None, [4, 16]])
def test_among_subgroups_and_in_blocks(blocks, backend: str) -> None:
    x = np.random.default_rng(2).integers(0, 16, (16, 32)).astype(np.int32)
    before, old = x.copy(), np.zeros((16, 32), np.int32)
    swap_among_subgroups(x, old, blocks, backend=backend)
    np.testing.assert_array_equal(old, before)
    row = np.arange(16)[:, None]
    np.testing.assert_array_equal(x, np.where(before == row, -1, before))


@ALL
def test_floats_are_compared_by_their_bits(backend: str) -> None:
    x = np.zeros(SHAPE, np.float32)
    x[0], x[1], x[2] = np.nan, 0.0, -0.0
    expected = np.zeros(SHAPE, np.float32)
    expected[0] = np.nan
    old = np.zeros(SHAPE, np.float32)
    swap(x, expected, np.ones(SHAPE, np.float32), old, backend=backend)
    assert np.all(x[[0, 1, 3]] == 1)
    assert np.all(np.signbit(x[2]))


@xetile.kernel
def largest(X, PLACES, OUT, N: constexpr):
    """The largest value for each place, by nothing but compare and swap."""
    start = xetile.program_id(0) * N
    value = xetile.load_tile(xetile.init_tile(X, [start], (N,)))
    place = xetile.load_tile(xetile.init_tile(PLACES, [start], (N,)))
    tile = xetile.init_tile(OUT, [place])
    wanted = value > -1
    found = xetile.load_gather(tile, mask=None)
    while xetile.any(wanted):
        old = xetile.atomic_cas(tile, found, xetile.maximum(found, value))
        wanted = wanted & (old != found)
        found = xetile.where(wanted, old, found)
        found = xetile.where(wanted, found, xetile.maximum(found, value))


@ALL
def test_all_programs_swap_at_once(backend: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 1000, 16 * 16).astype(np.int32)
    places = rng.integers(0, 8, len(x)).astype(np.int32)
    out = np.zeros(8, np.int32)
    largest[(16,)](x, places, out, 16, backend=backend)
    expected = np.zeros(8, np.int32)
    np.maximum.at(expected, places, x)
    np.testing.assert_array_equal(out, expected)


@xetile.kernel(grid=1)
def in_shared_memory(OUT, OLD):
    memory = xetile.slm((4, 32), xetile.i32)
    tile = xetile.init_tile(memory, [0, 0], (4, 32))
    columns = xetile.arange(32)[None, :] + xetile.zeros((4, 1), xetile.i32)
    xetile.store_tile(columns % 2, tile)
    xetile.barrier()
    old = xetile.atomic_cas(tile, 1, 7, scope="group")
    xetile.store_tile(old, xetile.init_tile(OLD, [0, 0], (4, 32)))
    xetile.store_tile(xetile.load_tile(tile), xetile.init_tile(OUT, [0, 0], (4, 32)))


@ALL
def test_in_shared_memory(backend: str) -> None:
    out, old = np.zeros((2, *SHAPE), np.int32)
    in_shared_memory(out, old, backend=backend)
    columns = np.broadcast_to(np.arange(32) % 2, SHAPE)
    np.testing.assert_array_equal(old, columns)
    np.testing.assert_array_equal(out, columns * 7)


TEXT = """
func.func @k(%X: memref<4x16xi32>, %Y: memref<4x16xi32>) {
  %v = arith.constant dense<7> : vector<4x16xi32>
  %e = arith.constant dense<1> : vector<4x16xi32>
  %t = xetile.init_tile %X[0, 0] : memref<4x16xi32> -> !xetile.tile<4x16xi32>
  %u = xetile.init_tile %Y[0, 0] : memref<4x16xi32> -> !xetile.tile<4x16xi32>
  %o = xetile.atomic_rmw_tile <assign>, %v, %t, %e
      : vector<4x16xi32>, !xetile.tile<4x16xi32>, vector<4x16xi32> -> vector<4x16xi32>
  xegpu.fence memory_kind = global, fence_scope = system
  xetile.store_tile %o, %u : vector<4x16xi32>, !xetile.tile<4x16xi32>
  func.return
}
"""


@ALL
def test_a_text(backend: str) -> None:
    x, old = np.arange(64, dtype=np.int32).reshape(4, 16) % 3, np.zeros((4, 16), "i4")
    before = x.copy()
    xetl.load_mlir(TEXT)["k"][(1, 1, 1)](x, old, backend=backend)
    np.testing.assert_array_equal(old, before)
    np.testing.assert_array_equal(x, np.where(before == 1, 7, before))


def test_only_an_assignment_compares() -> None:
    with pytest.raises(IRError, match="`add` compares nothing") as error:
        xetl.load_mlir(TEXT.replace("<assign>", "<add>"))
    assert error.value.line == 7


@xetile.kernel
def counted(LOCK, DATA, SEM: constexpr, SCOPE: constexpr):
    """Each program adds a row to DATA while it has the lock."""
    lock = xetile.init_tile(LOCK, [0, 0], (1, 1))
    taken = xetile.atomic_cas(lock, 0, 1, sem="acquire", scope=SCOPE)
    while taken.max() != 0:
        taken = xetile.atomic_cas(lock, 0, 1, sem="acquire", scope=SCOPE)
    tile = xetile.init_tile(DATA, [0, 0], (8, 32))
    xetile.store_tile(xetile.load_tile(tile) + 1.0, tile)
    free = xetile.zeros((1, 1), xetile.i32)
    xetile.atomic_rmw_tile("xchg", free, lock, sem=SEM, scope=SCOPE)


@pytest.mark.parametrize("scope", ["device", "system"])
@pytest.mark.parametrize("sem", ["release", "acq_rel"])
@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_a_lock(backend: str, sem: str, scope: str) -> None:
    """Plain stores between two ordered atomics are seen by the next who locks."""
    lock, data = np.zeros((1, 1), np.int32), np.zeros((8, 32), np.float32)
    counted[(64,)](lock, data, sem, scope, backend=backend)
    np.testing.assert_array_equal(data, 64)


def test_order_is_in_the_code() -> None:
    """LLVM's fences, and SPIR-V's with the scope that was asked for."""
    text = counted.ir(
        "llvm", "i32[1,1] f32[8,32]", backend="cpu", SEM="release", SCOPE="device"
    )
    assert text.count("fence acq_rel") == 3
    for scope, number in (("group", 2), ("device", 1), ("system", 0)):
        text = counted.ir(
            "llvm",
            "i32[1,1] f32[8,32]",
            target="pvc",
            backend="xegpu",
            SEM="release",
            SCOPE=scope,
        )
        assert re.search(rf'MemoryBarrier\w*"\(i32 {number},', text)

"""Arrays, views and tiles: what is read from where."""

import math

import pytest
from building import build, names, ops

from xetl import xetile
from xetl.xetile import f32, i64


def test_transposed_view_swaps_sizes_and_strides():
    def kernel(X):
        xetile.prefetch_tile(xetile.init_tile(X.T, [0, 0], (8, 4)))

    module = build(kernel, X="f32 2")
    (view,) = ops(module, "memref.reinterpret_cast")
    rows, columns = ops(module, "memref.extract_strided_metadata")[0].sizes
    assert view.mixed_sizes == (columns, rows)
    assert view.mixed_strides[0] == 1
    (tile,) = ops(module, "xetile.init_tile")
    assert tile.result.type.order == (0, 1)


def test_an_index_outside_selects_an_empty_view():
    def kernel(X, b):
        xetile.prefetch_tile(xetile.init_tile(X[b, 1], [0, 0], (8, 4)))

    module = build(kernel, X="f32 4", b="i64")
    (view,) = ops(module, "memref.reinterpret_cast")
    operands = (*view.mixed_offsets, *view.mixed_sizes)
    assert [operand.owner.name for operand in operands] == ["arith.select"] * 3
    assert {op.predicate_name for op in ops(module, "arith.cmpi")} == {"ult"}


def test_all_indices_load_a_scalar():
    def kernel(X, IDS):
        _ = xetile.zeros((4, 4), f32) + X[IDS[0], 1]

    module = build(kernel, X="f32 2", IDS="i32 1")
    assert names(module).count("memref.load") == 2
    assert names(module).count("scf.if") == 2
    assert "arith.index_cast" in names(module)


@pytest.mark.parametrize("layout", ["", "S"])
def test_rank_one_is_a_row(layout):
    def kernel(X):
        row = xetile.load_tile(xetile.init_tile(X, [3], (8,)), padding=-xetile.inf)
        xetile.static_assert(row.shape == (8,))
        one = xetile.load_tile(xetile.init_tile(X, [0, 3], (1, 8)))
        xetile.static_assert(one.shape == (1, 8) and one.ndim == 2)

    module = build(kernel, X=f"f32 1 {layout}")
    tile, _ = ops(module, "xetile.init_tile")
    assert tile.mixed_offsets == (0, 3)
    assert ops(module, "xetile.load_tile")[0].padding.value.data == -math.inf


def test_scatter_tiles():
    def kernel(V, IDS, OUT):
        rows = xetile.load_tile(xetile.init_tile(IDS, [0], (16,)))
        t = xetile.init_tile(V, rows)
        t = xetile.update_tile_offset(t, rows)
        v = xetile.load_gather(t, rows >= 0, padding=1)
        xetile.store_scatter(v, None, xetile.init_tile(OUT, rows.to(i64)))
        xetile.atomic_rmw_tile("add", v, xetile.init_tile(OUT, [0], (16,)))
        xetile.atomic_rmw_tile("xchg", v, xetile.init_tile(OUT, rows), mask=rows > 2)

    module = build(kernel, V="f32 1", IDS="i32 1", OUT="f32 1")
    tile = ops(module, "xetile.init_tile")[1]
    assert tile.result.type.scattered
    assert str(tile.indices.type) == "vector<1x16xindex>"
    kinds = [op.kind.data for op in ops(module, "xetile.atomic_rmw_tile")]
    assert kinds == ["add", "assign"]


def test_slm():
    def kernel(X):
        s = xetile.slm((16, 16), f32)
        x = xetile.load_tile(xetile.init_tile(X, [0, 0], (16, 16)))
        xetile.store_tile(x, xetile.init_tile(s, [0, 0], (16, 16)))
        xetile.barrier()
        _ = xetile.load_tile(xetile.init_tile(s.T, [0, 0], (16, 16)))

    module = build(kernel, X="f32 2")
    tiles = ops(module, "xetile.init_tile")
    assert [op.result.type.memory_space for op in tiles] == [0, 3, 3]
    assert "gpu.barrier" in names(module)


def test_address_as_base():
    def kernel(P, n):
        t = xetile.init_tile(
            P, [0, 0], (4, 4), dtype=f32, base_shape=[n, 8], base_strides=[8, 1]
        )
        xetile.store_tile(xetile.load_tile(t), t)

    (tile,) = ops(build(kernel, P="i64", n="i64"), "xetile.init_tile")
    assert str(tile.source.type) == "i64"
    assert tile.mixed_strides == (8, 1)


def test_maps_ride_on_tiles_and_values():
    def kernel(X, WG, SG):
        t = xetile.init_tile(X, [0, 0], (64, 64), wg_map=xetile.xe_map(WG, SG))
        v = xetile.tile_reduce("add", xetile.load_tile(t), [1])
        v = xetile.tile_broadcast(v, [1], (64, 64), wg_map=WG)
        v = xetile.tile_conv_layout(v, WG)

    maps = xetile.wg_map([2, 2], [32, 32]), xetile.sg_map([2, 8], [1, 2])
    module = build(kernel, X="f32 2", WG=maps[0], SG=maps[1])
    (tile,) = ops(module, "xetile.init_tile")
    assert tile.result.type.wg_map.sg_data == (32, 32)
    assert tile.result.type.sg_map.wi_layout == (2, 8)
    assert ops(module, "xetile.tile_broadcast")[0].wg_map.sg_layout == (2, 2)


def test_shapes_and_strides_are_ints_of_the_run():
    def kernel(X, Y):
        n = X.shape[-1] // 2 + X.stride(0) + len(X)
        xetile.static_assert(X.ndim == 2 and X.dtype == f32 and X.stride(1) == 1)
        xetile.prefetch_tile(xetile.init_tile(Y, [n], [8]), locality=1)

    module = build(kernel, X="f32 2", Y="f32 1")
    assert "arith.floordivsi" in names(module)

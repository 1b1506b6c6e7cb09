"""Prefetches change nothing, and ask for what later steps load."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from meaning import same_meaning
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from xetl import xetile
from xetl.devices import DEVICES, find_device
from xetl.dialects.upstream import scf
from xetl.dialects.xetile import LoadTileOp, PrefetchTileOp, tile_type
from xetl.frontend import build_module
from xetl.language.distribution import Layout, origins, problem_with
from xetl.language.dtypes import BY_NAME
from xetl.language.signature import ArrayParam, Signature
from xetl.transforms.canonicalize import CanonicalizePass
from xetl.transforms.cse import CSEPass
from xetl.transforms.diagnostics import collect_remarks
from xetl.transforms.distribute_to_subgroups import DistributeToSubgroupsPass
from xetl.transforms.insert_prefetches import InsertPrefetchesPass, choose_share
from xetl.transforms.insert_prefetches.moving_tiles import moving_tile
from xetl.transforms.normalize_tiles import NormalizeTilesPass
from xetl.transforms.place_barriers import PlaceBarriersPass
from xetl.transforms.propagate_wg_maps import PropagateWgMapsPass
from xetl.xetile import f32

WG = xetile.wg_map(sg_layout=[2, 2], sg_data=[8, 16])


def carried(A, B, C):
    """The loop carries the tiles; it starts behind the first columns."""
    a = xetile.init_tile(A, [0, 0], (16, 16))
    b = xetile.update_tile_offset(xetile.init_tile(B, [0, 0], (16, 32)), [16, 0])
    acc = xetile.zeros((16, 32), f32)
    for _ in range(16, A.shape[1], 8):
        a = xetile.update_tile_offset(a, [0, 16])
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc, wg_map=WG)
        b = xetile.update_tile_offset(b, [16, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [0, 0], (16, 32)))


def described(A, B, C):
    """Each step describes its tiles; those of B are moved and transposed."""
    acc = xetile.zeros((16, 32), f32)
    for i in range(A.shape[1] // 16):
        a = xetile.load_tile(xetile.init_tile(A, [0, i * 16], (16, 16)))
        b = xetile.init_tile(B.T, [0, 16 * i - 16], (32, 16))
        b = xetile.load_tile(xetile.update_tile_offset(b, [0, 16])).T
        acc = xetile.tile_mma(a * 2, b, acc, wg_map=WG)
    xetile.store_tile(acc, xetile.init_tile(C, [0, 0], (16, 32)))


def in_place(A, B, C):
    """It writes what it reads."""
    for i in range(A.shape[1] // 16):
        tile = xetile.init_tile(A, [0, i * 16], (16, 16))
        b = xetile.load_tile(xetile.init_tile(B, [i * 16, 0], (16, 16)))
        xetile.store_tile((xetile.load_tile(tile) @ b).to(A.dtype), tile)


def by_hand(A, B, C):
    """It asks for A itself, and for B not at all."""
    acc = xetile.zeros((16, 32), f32)
    for i in range(A.shape[1] // 16):
        a = xetile.init_tile(A, [0, i * 16], (16, 16))
        xetile.prefetch_tile(xetile.update_tile_offset(a, [0, 32]))
        b = xetile.load_tile(xetile.init_tile(B, [i * 16, 0], (16, 32)))
        acc += xetile.load_tile(a) @ b
    xetile.store_tile(acc, xetile.init_tile(C, [0, 0], (16, 32)))


ALL = (carried, described, in_place, by_hand)


def built(kernel) -> ModuleOp:
    names = {"A": "f16", "B": "f16", "C": "f32"}
    params = [ArrayParam(name, BY_NAME[d], 2, 1) for name, d in names.items()]
    return build_module(kernel, Signature(tuple(params)))


def arrays() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, s).astype(np.float16) for s in ((16, 80), (80, 32)))
    return [a, b, np.zeros((16, 32), np.float32)]


def passes(prefetching: ModulePass) -> list[ModulePass]:
    return [
        *(NormalizeTilesPass(), CanonicalizePass(), CSEPass(), PropagateWgMapsPass()),
        *(prefetching, PlaceBarriersPass(), DistributeToSubgroupsPass()),
        *(CanonicalizePass(), CSEPass()),
    ]


class Prefetches:
    """Counts them, in loops and in front of them, behind a pass."""

    def __init__(self, after: str = "insert-prefetches") -> None:
        self.after = after
        self.inside = self.outside = 0

    def __call__(self, name: str, module: ModuleOp) -> None:
        if name != self.after:
            return
        for op in module.walk():
            if isinstance(op, PrefetchTileOp):
                inside = isinstance(op.parent_op(), scf.ForOp)
                self.inside += inside
                self.outside += not inside


@pytest.mark.parametrize("distance", [0, 1, 2, 5, 40])
@pytest.mark.parametrize(
    ("kernel", "tiles", "own"),
    [(carried, 2, 0), (described, 2, 0), (in_place, 1, 0), (by_hand, 0, 1)],
)
def test_nothing_changes(kernel, tiles: int, own: int, distance: int) -> None:
    found = Prefetches()
    todo = passes(InsertPrefetchesPass("pvc", distance))
    same_meaning(built(kernel), (1,), arrays(), todo, look=found)
    assert found.inside == own + (tiles if distance else 0)
    assert found.outside == tiles * max(0, distance - 1)


class LoadDescribed(ModulePass):
    """Loads take the tile that is described for the number their loop counts."""

    name = "load-described"

    def apply(self, ctx, op: ModuleOp) -> None:
        for load in [each for each in op.walk() if isinstance(each, LoadTileOp)]:
            loop = load.parent_op()
            moving = isinstance(loop, scf.ForOp) and moving_tile(load.tile, loop)
            if moving:
                counter, type_ = loop.body.block.args[0], tile_type(load.tile)
                point = InsertPoint.before(load)
                load.operands[0] = moving.at(counter, type_, point)
                load.attributes["moved"] = op.attributes["moved"] = type_


@pytest.mark.parametrize("kernel", ALL)
def test_a_tile_is_known_for_each_number_that_is_counted(kernel) -> None:
    seen = []

    def look(name: str, module: ModuleOp) -> None:
        if name == LoadDescribed.name:
            seen.append("moved" in module.attributes)

    same_meaning(built(kernel), (1,), arrays(), passes(LoadDescribed()), look=look)
    assert seen == [True]


def test_the_user_is_told() -> None:
    with collect_remarks() as remarks:
        for kernel in (carried, by_hand):
            same_meaning(built(kernel), (1,), arrays(), passes(InsertPrefetchesPass()))
        off = passes(InsertPrefetchesPass("opencl"))
        same_meaning(built(carried), (1,), arrays(), off)
    texts = [each.text for each in remarks if each.topic == "prefetch"]
    assert len(texts) == 3
    assert texts[0].startswith("the loop asks for tiles 8 steps ahead, each of 4 subg")
    assert "memory takes about 700 cycles, a step at least 8" in texts[0]
    assert "own prefetches" in texts[1]
    assert "on `opencl` a prefetch is nothing" in texts[2]


# Distances ----------------------------------------------------------------------------


def gemm(A, B, C):
    """32x64 of C a subgroup, 32 steps of K at a time."""
    m, n = xetile.program_id(0) * 256, xetile.program_id(1) * 256
    acc = xetile.zeros((256, 256), f32)
    for k in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (256, 32)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (32, 256)))
        acc += a @ b
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (256, 256)))


def short(A, B, C):
    """Two steps."""
    acc = xetile.zeros((256, 256), f32)
    for k in range(0, 64, 32):
        a = xetile.load_tile(xetile.init_tile(A, [0, k], (256, 32)))
        b = xetile.load_tile(xetile.init_tile(B, [k, 0], (32, 256)))
        acc += a @ b
    xetile.store_tile(acc, xetile.init_tile(C, [0, 0], (256, 256)))


def deep(A, B, C):
    """Steps of 256 KiB: all of the first cache of bmg, half of that of pvc."""
    acc = xetile.zeros((256, 256), f32)
    for k in range(0, A.shape[1], 256):
        a = xetile.load_tile(xetile.init_tile(A, [0, k], (256, 256)))
        b = xetile.load_tile(xetile.init_tile(B, [k, 0], (256, 256)))
        acc += a @ b
    xetile.store_tile(acc, xetile.init_tile(C, [0, 0], (256, 256)))


@pytest.mark.parametrize(
    ("kernel", "device", "steps"),
    [
        *((gemm, "pvc", 3), (gemm, "bmg", 2), (gemm, "opencl", 0)),
        *((short, "pvc", 1), (short, "bmg", 1)),
        *((deep, "pvc", 1), (deep, "bmg", 0)),
    ],
)
def test_the_distance_is_that_of_the_device(kernel, device: str, steps: int) -> None:
    module = built(kernel)
    found = Prefetches()
    for each in passes(InsertPrefetchesPass(device))[:5]:
        each.apply(None, module)  # pyright: ignore[reportArgumentType]
        found(each.name, module)
    assert found.inside == (2 if steps else 0)
    assert found.outside == 2 * max(0, steps - 1)


# Shares -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "subgroups", "share"),
    [
        ((256, 32), 32, Layout((32, 1), (8, 32))),
        ((32, 256), 32, Layout((4, 8), (8, 32))),
        ((32, 64), 2, Layout((1, 2), (32, 32))),
        ((64, 32), 1, Layout((1, 1), (64, 32))),
    ],
)
def test_a_share_is_few_messages_and_whole_lines(
    shape: tuple[int, int], subgroups: int, share: Layout
) -> None:
    for device in ("pvc", "bmg"):
        found = choose_share(shape, 16, subgroups, find_device(device))
        assert (found.sg_layout, found.sg_data) == (share.sg_layout, share.sg_data)


@given(
    st.sampled_from([1, 8, 16, 24, 32, 100, 256]),
    st.sampled_from([1, 16, 24, 32, 64, 100, 256]),
    st.sampled_from([4, 8, 16, 32, 64]),
    st.integers(1, 32),
    st.sampled_from(list(DEVICES.values())),
)
def test_shares_are_all_of_a_tile(rows, columns, bits, subgroups, device) -> None:
    shape = rows, columns
    found = choose_share(shape, bits, subgroups, device)
    assert problem_with(shape, found) is None
    height, width = found.sg_data
    asked = {
        (row + i, column + j)
        for subgroup in range(subgroups)
        for row, column in origins(shape, found, subgroup)
        for i in (0, height - 1)
        for j in (0, width - 1)
    }
    assert {(0, 0), (rows - 1, columns - 1)} <= asked
    parts = {place for sg in range(subgroups) for place in origins(shape, found, sg)}
    assert len(parts) * height * width == rows * columns

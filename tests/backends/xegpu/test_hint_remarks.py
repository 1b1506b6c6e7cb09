"""Hints that a device has not are left out, and `explain()` says where and why."""

from __future__ import annotations

import pytest
from lane_interpreter import to_lanes
from test_lanes_values import kernel

import xetl
from xetl import pipeline
from xetl.backend import find_backend
from xetl.transforms.diagnostics import collect_remarks


def hint(level: int, word: str, dialect: str = "xegpu") -> str:
    return f"l{level}_hint = #{dialect}.cache_hint<{word}>"


def remarks_of(*hints: str) -> list[str]:
    """What is said of a load with these hints, on its line."""
    body = f"""
    %d = xegpu.create_nd_tdesc %a0 : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %d[%c0, %c0] <{{{", ".join(hints)}}}>
        : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>"""
    text = kernel(body, "64x64xf32")
    with collect_remarks() as found:
        to_lanes(text)
    assert {each.topic for each in found} <= {"caches"}
    line = next(n for n, at in enumerate(text.splitlines(), 1) if "load_nd" in at)
    assert all(each.line == line for each in found)
    return [each.text for each in found]


def test_a_pair_that_the_device_has_not():
    (text,) = remarks_of(hint(1, "cached"), hint(3, "streaming"))
    start = "hints are left out: `pvc` has no load that is `cached` in L1 and "
    assert text.startswith(start + "`streaming` in L3. It has `uncached` in L1 and")


def test_a_cache_that_no_message_speaks_of():
    (text,) = remarks_of(hint(2, "cached"))
    assert text == "`l2_hint` is left out: messages speak of L1 and L3 only"


@pytest.mark.parametrize(
    "hints", [(), (hint(1, "cached"),), (hint(1, "streaming"), hint(3, "uncached"))]
)
def test_nothing_is_said_of_what_is_obeyed(hints: tuple[str, ...]):
    assert remarks_of(*hints) == []


TILES = """
gpu.module @m {{
  gpu.func @k(%a: memref<64x64xf32>) kernel
      attributes {{known_block_size = array<i32: 1, 1, 1>}} {{
    %t = xetile.init_tile %a[0, 0] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
    %v = xetile.load_tile %t {{{}}} : !xetile.tile<8x16xf32> -> vector<8x16xf32>
    xetile.store_tile %v, %t {{{}}} : vector<8x16xf32>, !xetile.tile<8x16xf32>
    gpu.return
  }}
}}
"""


def lowered(load: str, store: str, target: str) -> tuple[str, list[str]]:
    """The lanes of a kernel of tiles with hints, and what is said of it."""
    module, _ = xetl.load_mlir(TILES.format(load, store))["k"].for_any_arguments()
    with collect_remarks() as found:
        made = pipeline.lowered(module, find_backend("xegpu"), target)
    return str(made), [each.text for each in found if each.topic == "caches"]


def test_hints_of_tiles_reach_the_lanes():
    load, store = hint(1, "streaming", "xetile"), hint(1, "write_through", "xetile")
    text, said = lowered(load, store, "bmg")
    assert not said
    # Lanes move the blocks of the second kernel: their functions take no hints.
    assert text.count('l1_hint = "streaming", l3_hint = "cached"') == 1
    assert text.count('l1_hint = "write_through", l3_hint = "write_back"') == 1
    assert lowered(load, store, "opencl")[0].count("_hint") == 0


def test_a_word_for_stores_says_nothing_to_a_load():
    text, said = lowered(hint(1, "write_back", "xetile"), "", "pvc")
    assert said == [
        "`l1_hint` is left out: `write_back` says nothing to `xetile.load_tile`"
    ]
    assert "_hint" not in text


@pytest.mark.parametrize(
    ("written", "l1", "l3"),
    [
        ("locality<3>", "cached", "cached"),
        ("locality<2>", "uncached", "cached"),
        ("locality<1>", "streaming", "cached"),
        ("locality<0>", "streaming", "uncached"),
        (f"locality<3> {{{hint(1, 'uncached', 'xetile')}}}", "uncached", "cached"),
    ],
)
def test_a_prefetch_says_which_cache(written: str, l1: str, l3: str):
    tile = "!xetile.tile<8x16xf32>"
    text = TILES.format("", "").replace(
        "xetile.store", f"xetile.prefetch_tile %t {written} : {tile}\n xetile.store"
    )
    module, _ = xetl.load_mlir(text)["k"].for_any_arguments()
    lanes = str(pipeline.lowered(module, find_backend("xegpu"), "pvc"))
    (line,) = [each for each in lanes.splitlines() if "block_prefetch" in each]
    assert f'l1_hint = "{l1}", l3_hint = "{l3}"' in line

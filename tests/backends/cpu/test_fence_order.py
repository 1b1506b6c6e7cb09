"""A load stays on its side of a fence, however late its value is used."""

from __future__ import annotations

import xetl

TEXT = """
gpu.module @m {{
  gpu.func @k(%a: memref<8x16xf32>, %b: memref<8x16xf32>) kernel
      attributes {{known_block_size = array<i32: 1, 1, 1>}} {{
    %ta = xetile.init_tile %a[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
    %tb = xetile.init_tile %b[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
    %v = xetile.load_tile %ta : !xetile.tile<8x16xf32> -> vector<8x16xf32>
    {}
    xetile.store_tile %v, %tb : vector<8x16xf32>, !xetile.tile<8x16xf32>
    gpu.return
  }}
}}
"""
FENCE = "xegpu.fence memory_kind = global, fence_scope = gpu"


def loops(between: str) -> str:
    return xetl.load_mlir(TEXT.format(between))["k"].ir("loops", backend="cpu")


def test_a_load_is_done_before_the_fence():
    before, after = loops(FENCE).split("xegpu.fence")
    assert "load" in before
    assert "store" in before  # what was loaded is kept in scratch
    assert "load" in after


def test_without_a_fence_nothing_is_kept():
    text = loops("")
    assert "xegpu.fence" not in text
    assert text.count("store") < loops(FENCE).count("store")

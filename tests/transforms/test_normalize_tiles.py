"""What the random kernels do not have: shared memory by columns, blocks, batches."""

import numpy as np
import pytest
from meaning import same_meaning
from xdsl.dialects.builtin import ModuleOp

from xetl.transforms.normalize_tiles import NormalizeTilesPass

KERNEL = """
gpu.module @kernels {
  gpu.func @kernel(%a: memref<12x10xf32>, %b: memref<10x12xf32>)
      kernel attributes {xetile.level = "workgroup"} {
    BODY
    gpu.return
  }
}
"""

SHARED = """
    %slm = memref.alloc() : memref<8x12xf32, strided<[1, 8]>, 3>
    %s = xetile.init_tile %slm[0, 0] : memref<8x12xf32, strided<[1, 8]>, 3>
      -> !xetile.tile<8x4xf32, #xetile.tile_attr<order = [0, 1], memory_space = 3>>
    %t = xetile.init_tile %a[5, 7] : memref<12x10xf32> -> !xetile.tile<8x4xf32>
    %u = xetile.init_tile %b[0, 0] : memref<10x12xf32> -> !xetile.tile<8x4xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %r:2 = scf.for %k = %c0 to %c3 step %c1 iter_args(%p = %s, %q = %u)
        -> (!xetile.tile<8x4xf32, #xetile.tile_attr<order = [0, 1], memory_space = 3>>,
            !xetile.tile<8x4xf32>) {
      %v = xetile.load_tile %t {padding = 2.0 : f32}
        : !xetile.tile<8x4xf32> -> vector<8x4xf32>
      xetile.store_tile %v, %p : vector<8x4xf32>,
        !xetile.tile<8x4xf32, #xetile.tile_attr<order = [0, 1], memory_space = 3>>
      %w = xetile.load_tile %p
        : !xetile.tile<8x4xf32, #xetile.tile_attr<order = [0, 1], memory_space = 3>>
        -> vector<8x4xf32>
      xetile.store_tile %w, %q : vector<8x4xf32>, !xetile.tile<8x4xf32>
      %n = xetile.update_tile_offset %p, [0, 4]
        : !xetile.tile<8x4xf32, #xetile.tile_attr<order = [0, 1], memory_space = 3>>
      %m = xetile.update_tile_offset %q, [1, 4] : !xetile.tile<8x4xf32>
      scf.yield %n, %m
        : !xetile.tile<8x4xf32, #xetile.tile_attr<order = [0, 1], memory_space = 3>>,
          !xetile.tile<8x4xf32>
    }
"""

BLOCKS = """
    %t = xetile.init_tile %a[5, 7] : memref<12x10xf32>
      -> !xetile.tile<8x4xf32, #xetile.tile_attr<inner_blocks = [4, 2]>>
    %u = xetile.init_tile %b[0, 0] : memref<10x12xf32>
      -> !xetile.tile<8x4xf32, #xetile.tile_attr<inner_blocks = [4, 2]>>
    %v = xetile.load_tile %t
      : !xetile.tile<8x4xf32, #xetile.tile_attr<inner_blocks = [4, 2]>>
      -> vector<2x2x4x2xf32>
    %w = arith.addf %v, %v : vector<2x2x4x2xf32>
    xetile.store_tile %w, %u : vector<2x2x4x2xf32>,
      !xetile.tile<8x4xf32, #xetile.tile_attr<inner_blocks = [4, 2]>>
"""


def no_other_form(name: str, module: ModuleOp) -> None:
    if name:
        assert "order" not in str(module)
        assert "inner_blocks" not in str(module)


@pytest.mark.parametrize("body", [SHARED, BLOCKS], ids=["shared", "blocks"])
def test_other_forms_mean_the_same(body: str) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 9, (12, 10)).astype(np.float32)
    b = np.zeros((10, 12), np.float32)
    text = KERNEL.replace("BODY", body)
    _, left = same_meaning(
        text, (1,), [a, b], [NormalizeTilesPass()], look=no_other_form
    )
    assert left.any()

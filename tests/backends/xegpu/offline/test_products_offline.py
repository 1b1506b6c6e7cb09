"""The bars of products: 32 dpas a step of K, five loads, nothing spilled."""

import ml_dtypes
import numpy as np
import pytest

from tests.backends.xegpu.offline.compiling import compiled, lanes_of
from tests.backends.xegpu.offline.hand_made import HAS_OCLOC, REASON
from xetl import xetile
from xetl.xetile import constexpr, f32

pytestmark = pytest.mark.skipif(not HAS_OCLOC, reason=REASON)
WG = xetile.wg_map(sg_layout=[8, 4], sg_data=[32, 64])


def gemm(A, B, C, BM: constexpr = 256, BN: constexpr = 256, BK: constexpr = 32):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), f32)
    for _ in range(0, A.shape[1], BK):
        xetile.prefetch_tile(xetile.update_tile_offset(a, [0, 3 * BK]))
        xetile.prefetch_tile(xetile.update_tile_offset(b, [3 * BK, 0]))
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc, wg_map=WG)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.parametrize("target", ["pvc", "bmg"])
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_a_step_of_32x64(target: str, dtype) -> None:
    a, b = (np.zeros((512, 512), dtype) for _ in range(2))
    module = lanes_of(gemm, [a, b, np.zeros((512, 512), np.float32)], target)
    seen = compiled(module, target)["gemm"]
    assert seen.found == seen.planned
    assert (seen.found.dpas, seen.found.stores) == (32, 16)
    assert seen.found.loads <= 5
    assert seen.facts.spill_bytes == 0
    assert seen.facts.registers == 256
    assert (seen.counts.calls, seen.facts.simd) == (0, 16)

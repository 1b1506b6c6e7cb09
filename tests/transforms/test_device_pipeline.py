"""The whole way from a workgroup to the blocks of a device, pass by pass."""

import numpy as np
import pytest
from meaning import same_meaning
from workgroup_kernels import kernel_of
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from xetl.dialects.kernel_attributes import LEVEL, SUBGROUP
from xetl.dialects.text import read_module
from xetl.dialects.upstream import gpu, memref
from xetl.transforms.check_workgroup import shared_bytes
from xetl.transforms.device_pipeline import STAGE_AFTER, device_passes
from xetl.transforms.stages import check_stage

OF_SUBGROUPS = """
gpu.module @m { gpu.func @k(%x: memref<64x32xf32>) kernel
    attributes {xetile.level = "subgroup", xetile.subgroups = array<i64: 2, 1>} {
  %sg = gpu.subgroup_id : index
  %size = arith.constant 32 : index
  %row = arith.muli %sg, %size : index
  %t = xetile.init_tile %x[%row, 0] : memref<64x32xf32> -> !xetile.tile<32x32xf32>
  %v = xetile.load_tile %t : !xetile.tile<32x32xf32> -> vector<32x32xf32>
  %w = arith.addf %v, %v : vector<32x32xf32>
  xetile.store_tile %w, %t : vector<32x32xf32>, !xetile.tile<32x32xf32>
  gpu.return
} }"""


def begins(name: str, module: ModuleOp) -> None:
    """Check the stage that begins after a pass."""
    if name in STAGE_AFTER:
        check_stage(module, STAGE_AFTER[name])


@pytest.mark.filterwarnings("ignore::xetl.errors.TileMapWarning")
# 297: a moved tile that is accessed in blocks of two sizes.
@pytest.mark.parametrize("seed", [297, *range(100, 116)])
def test_any_kernel_keeps_its_meaning(seed: int) -> None:
    kernel = kernel_of(seed)
    same_meaning(kernel.text, kernel.grid, kernel.arrays, device_passes(), look=begins)


def test_a_kernel_of_subgroups_comes_to_the_blocks_as_it_is():
    left = {}

    def look(name: str, module: ModuleOp) -> None:
        begins(name, module)
        left[name] = str(module)

    x = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    (found,) = same_meaning(OF_SUBGROUPS, (1,), [x], device_passes(), look=look)
    np.testing.assert_array_equal(found, 2 * x)
    assert left["distribute-to-subgroups"] == left["normalize-tiles"]
    assert "inner_blocks" in left["choose-inner-blocks"]


def test_calls_are_part_of_the_kernel():
    value = "vector<64x64xf32>"
    text = f"""
#r = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>
!r = !xetile.tile<64x64xf32, #xetile.tile_attr<wg_map = #r>>
gpu.module @m {{
  func.func @root(%v: {value}) -> {value} {{
    %w = math.sqrt %v : {value}
    return %w : {value}
  }}
  func.func @count(%x: memref<1xf32>) {{
    %zero = arith.constant 0 : index
    %one = arith.constant 1.0 : f32
    %old = memref.atomic_rmw addf %one, %x[%zero] : (f32, memref<1xf32>) -> f32
    return
  }}
  gpu.func @k(%x: memref<64x64xf32>, %n: memref<1xf32>) kernel
    attributes {{xetile.level = "workgroup"}} {{
    %t = xetile.init_tile %x[0, 0] : memref<64x64xf32> -> !r
    %v = xetile.load_tile %t : !r -> {value}
    %w = func.call @root(%v) : ({value}) -> {value}
    xetile.store_tile %w, %t : {value}, !r
    func.call @count(%n) : (memref<1xf32>) -> ()
    gpu.return
  }}
}}"""
    x = np.random.default_rng(0).integers(0, 9, (64, 64)).astype(np.float32)
    arrays = [x**2, np.zeros(1, np.float32)]
    found, count = same_meaning(text, (3,), arrays, device_passes(), checks=("uninit",))
    assert count == 3
    np.testing.assert_allclose(found, x**0.25, rtol=1e-6)


def test_shared_memory_that_a_kernel_leaves_is_enough():
    """What a kernel asks for and what exchanges take fit the limit together."""
    limit = 1 << 14
    text = """
#r = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>
#c = #xetile.wg_map<sg_layout = [1, 4], sg_data = [64, 16]>
!r = !xetile.tile<64x64xf32, #xetile.tile_attr<wg_map = #r>>
gpu.module @m { gpu.func @k(%x: memref<64x64xf32>) kernel
    attributes {xetile.level = "workgroup"} {
  %own = memref.alloc() : memref<3072xf32, 3>
  %zero = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  memref.store %one, %own[%zero] : memref<3072xf32, 3>
  %y = memref.load %own[%zero] : memref<3072xf32, 3>
  memref.store %y, %x[%zero, %zero] : memref<64x64xf32>
  %t = xetile.init_tile %x[0, 0] : memref<64x64xf32> -> !r
  %v = xetile.load_tile %t : !r -> vector<64x64xf32>
  %w = xetile.tile_conv_layout %v {map = #c} : vector<64x64xf32>
  %z = math.sqrt %w {map = #c} : vector<64x64xf32>
  %s = xetile.tile_scan <add>, %z [0] {map = #c} : vector<64x64xf32>
      -> vector<64x64xf32>
  %u = xetile.tile_conv_layout %s {map = #r} : vector<64x64xf32>
  xetile.store_tile %u, %t : vector<64x64xf32>, !r
  gpu.return
} }"""
    x = np.random.default_rng(0).integers(0, 4, (64, 64)).astype(np.float32) ** 2
    same_meaning(text, (1,), [x], device_passes(slm_limit=limit), look=begins)
    module = read_module(text)
    for each in device_passes(slm_limit=limit):
        each.apply(Context(), module)
    sizes = [shared_bytes(op) for op in module.walk() if isinstance(op, memref.AllocOp)]
    assert len(sizes) == 2
    assert sum(sizes) <= limit
    levels = [
        op.attributes[LEVEL] for op in module.walk() if isinstance(op, gpu.FuncOp)
    ]
    assert levels == [StringAttr(SUBGROUP)]

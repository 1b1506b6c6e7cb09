"""Kernels whose subgroups touch each other's elements: right with the barriers placed.

Each case is run before and after the passes to subgroups, races checked; and without
`place-barriers`, to see that it is this pass that makes it right.
"""

import numpy as np
import pytest
from meaning import same_meaning

from xetl.dialects.text import read_module
from xetl.dialects.upstream import gpu
from xetl.errors import CheckError
from xetl.transforms.canonicalize import CanonicalizePass
from xetl.transforms.cse import CSEPass
from xetl.transforms.diagnostics import collect_remarks
from xetl.transforms.distribute_to_subgroups import DistributeToSubgroupsPass
from xetl.transforms.normalize_tiles import NormalizeTilesPass
from xetl.transforms.place_barriers import PlaceBarriersPass
from xetl.transforms.propagate_wg_maps import PropagateWgMapsPass

TILES = """
#rows = #xetile.wg_map<sg_layout = [4, 1], sg_data = [4, 16]>
#columns = #xetile.wg_map<sg_layout = [1, 4], sg_data = [16, 4]>
#blocks = #xetile.wg_map<sg_layout = [2, 2], sg_data = [4, 8]>
!rows = !xetile.tile<16x16xf32, #xetile.tile_attr<wg_map = #rows>>
!columns = !xetile.tile<16x16xf32, #xetile.tile_attr<wg_map = #columns>>
!blocks = !xetile.tile<16x16xf32, #xetile.tile_attr<wg_map = #blocks>>
!slm_rows = !xetile.tile<16x16xf32,
    #xetile.tile_attr<wg_map = #rows, memory_space = 3>>
!slm_columns = !xetile.tile<16x16xf32,
    #xetile.tile_attr<wg_map = #columns, memory_space = 3>>
"""
V = "vector<16x16xf32>"
X = "memref<16x64xf32>"

STORE_THEN_LOAD = f"""
  %r = xetile.init_tile %x[0, 0] : {X} -> !rows
  %c = xetile.init_tile %x[0, 0] : {X} -> !columns
  %o = xetile.init_tile %y[0, 0] : {X} -> !columns
  %v = xetile.load_tile %r : !rows -> {V}
  %e = math.exp %v : {V}
  xetile.store_tile %e, %r : {V}, !rows
  %w = xetile.load_tile %c : !columns -> {V}
  xetile.store_tile %w, %o : {V}, !columns"""

WRITE_AFTER_READ = f"""
  %r = xetile.init_tile %x[0, 0] : {X} -> !rows
  %c = xetile.init_tile %x[0, 0] : {X} -> !columns
  %o = xetile.init_tile %y[0, 0] : {X} -> !rows
  %v = xetile.load_tile %r : !rows -> {V}
  xetile.store_tile %v, %o : {V}, !rows
  %one = arith.constant dense<1.0> : {V}
  xetile.store_tile %one, %c : {V}, !columns"""

WRITE_AFTER_WRITE = f"""
  %r = xetile.init_tile %x[0, 0] : {X} -> !rows
  %c = xetile.init_tile %x[0, 0] : {X} -> !columns
  %one = arith.constant dense<1.0> : {V}
  %two = arith.constant dense<2.0> : {V}
  xetile.store_tile %one, %r : {V}, !rows
  xetile.store_tile %two, %c : {V}, !columns"""

STAGED = f"""
  %slm = memref.alloc() : memref<16x16xf32, 3>
  %r = xetile.init_tile %slm[0, 0] : memref<16x16xf32, 3> -> !slm_rows
  %c = xetile.init_tile %slm[0, 0] : memref<16x16xf32, 3> -> !slm_columns
  scf.for %i = %c0 to %c64 step %c16 {{
    %t = xetile.init_tile %x[0, %i] : {X} -> !rows
    %u = xetile.init_tile %y[0, %i] : {X} -> !columns
    %v = xetile.load_tile %t : !rows -> {V}
    xetile.store_tile %v, %r : {V}, !slm_rows
    %w = xetile.load_tile %c : !slm_columns -> {V}
    xetile.store_tile %w, %u : {V}, !columns
  }}"""

CARRIED = f"""
  %first = xetile.init_tile %x[0, 0] : {X} -> !rows
  scf.for %i = %c0 to %c40 step %c8 iter_args(%t = %first) -> (!rows) {{
    %v = xetile.load_tile %t : !rows -> {V}
    %w = arith.addf %v, %v : {V}
    %shifted = arith.addi %i, %c8 : index
    %u = xetile.init_tile %x[0, %shifted] : {X} -> !columns
    %one = arith.constant dense<3.0> : {V}
    xetile.store_tile %one, %u : {V}, !columns
    %o = xetile.init_tile %y[0, %i] : {X} -> !rows
    xetile.store_tile %w, %o : {V}, !rows
    %next = xetile.update_tile_offset %t, [0, 8] : !rows
    scf.yield %next : !rows
  }}"""

OVERLAPPING = f"""
  scf.for %i = %c0 to %c40 step %c8 {{
    %u = xetile.init_tile %x[0, %i] : {X} -> !blocks
    %v = xetile.load_tile %u : !blocks -> {V}
    %w = arith.addf %v, %v : {V}
    xetile.store_tile %w, %u : {V}, !blocks
  }}"""

BRANCHES = f"""
  %r = xetile.init_tile %x[0, 0] : {X} -> !rows
  %c = xetile.init_tile %x[0, 0] : {X} -> !columns
  %o = xetile.init_tile %y[0, 0] : {X} -> !columns
  %bx = gpu.block_id x
  %first = arith.cmpi eq, %bx, %c0 : index
  %one = arith.constant dense<1.0> : {V}
  scf.if %first {{
    xetile.store_tile %one, %r : {V}, !rows
  }}
  %v = xetile.load_tile %c : !columns -> {V}
  xetile.store_tile %v, %o : {V}, !columns"""

ELEMENTS = f"""
  %f = arith.constant 5.0 : f32
  memref.store %f, %x[%c0, %c8] : {X}
  %g = memref.load %x[%c0, %c8] : {X}
  %o = xetile.init_tile %y[0, 0] : {X} -> !rows
  %v = vector.broadcast %g : f32 to {V}
  xetile.store_tile %v, %o : {V}, !rows"""

NEEDED = {
    "store, then load": STORE_THEN_LOAD,
    "write after read": WRITE_AFTER_READ,
    "write after write": WRITE_AFTER_WRITE,
    "staged": STAGED,
    "carried by a loop": CARRIED,
    "overlapping turns": OVERLAPPING,
    "branches": BRANCHES,
    "elements": ELEMENTS,
}

GEMM = """
#c = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 16]>
!c = !xetile.tile<32x32xf32, #xetile.tile_attr<wg_map = #c>>
gpu.module @m { gpu.func @k(%a: memref<32x64xf32>, %b: memref<64x32xf32>,
    %d: memref<32x32xf32>) kernel attributes {xetile.level = "workgroup",
    xetile.alias_groups = array<i64: -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %t = xetile.init_tile %d[0, 0] : memref<32x32xf32> -> !c
  %first = xetile.load_tile %t : !c -> vector<32x32xf32>
  %sum = scf.for %k = %c0 to %c64 step %c16 iter_args(%acc = %first)
      -> (vector<32x32xf32>) {
    %ta = xetile.init_tile %a[0, %k] : memref<32x64xf32> -> !xetile.tile<32x16xf32>
    %tb = xetile.init_tile %b[%k, 0] : memref<64x32xf32> -> !xetile.tile<16x32xf32>
    %va = xetile.load_tile %ta : !xetile.tile<32x16xf32> -> vector<32x16xf32>
    %vb = xetile.load_tile %tb : !xetile.tile<16x32xf32> -> vector<16x32xf32>
    %new = xetile.tile_mma %va, %vb, %acc
        : vector<32x16xf32>, vector<16x32xf32>, vector<32x32xf32> -> vector<32x32xf32>
    scf.yield %new : vector<32x32xf32>
  }
  xetile.store_tile %sum, %t : vector<32x32xf32>, !c
  gpu.return
} }"""


def kernel(body, groups="-1, -1"):
    constants = "\n".join(
        f"  %c{i} = arith.constant {i} : index" for i in (0, 8, 16, 40, 64)
    )
    return f"""{TILES}
gpu.module @m {{ gpu.func @k(%x: {X}, %y: {X}) kernel attributes {{
    xetile.level = "workgroup", xetile.alias_groups = array<i64: {groups}>}} {{
{constants}
{body}
  gpu.return
}} }}"""


def passes(*placing):
    """The road to subgroups."""
    return [
        *(NormalizeTilesPass(), CanonicalizePass(), CSEPass(), PropagateWgMapsPass()),
        *placing,
        *(DistributeToSubgroupsPass(), CanonicalizePass(), CSEPass()),
    ]


def barriers(module):
    return sum(isinstance(op, gpu.BarrierOp) for op in module.walk())


def matrices():
    rng = np.random.default_rng(1)
    return [rng.standard_normal((16, 64)).astype(np.float32) for _ in range(2)]


@pytest.mark.parametrize("name", NEEDED)
def test_barriers_that_are_needed(name):
    text = kernel(NEEDED[name])
    same_meaning(text, (1,), matrices(), passes(PlaceBarriersPass()))
    with pytest.raises(CheckError) as caught:
        same_meaning(text, (1,), matrices(), passes())
    assert caught.value.code in ("X0822", "X0823")


def test_an_array_that_is_given_twice():
    text = kernel(STAGED.replace("%slm[0, 0] : memref<16x16xf32, 3>", f"%y[0, 0] : {X}")
                  .replace("slm_", ""), "0, 0")  # fmt: skip
    x, _ = matrices()
    same_meaning(text, (1,), [x, x], passes(PlaceBarriersPass()))


def test_a_product_needs_none():
    rng = np.random.default_rng(2)
    shapes = (32, 64), (64, 32), (32, 32)
    arrays = [rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes]
    counted = []
    left = same_meaning(
        *(GEMM, (1,), arrays, passes(PlaceBarriersPass())),
        look=lambda name, module: counted.append((name, barriers(module))),
    )
    a, b, c = arrays
    np.testing.assert_array_equal(left[2], a @ b + c)
    assert dict(counted)["place-barriers"] == 0


def test_what_is_placed_is_explained():
    module = read_module(kernel(STORE_THEN_LOAD))
    with collect_remarks() as remarks:
        for each in passes(PlaceBarriersPass()):
            each.apply(None, module)
    (remark,) = [each for each in remarks if each.topic == "barriers"]
    assert remark.text.startswith(
        "all subgroups wait before this: `store_tile` at line"
    )
    assert remark.text.endswith("writes the same memory in other subgroups")

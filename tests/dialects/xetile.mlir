// RUN: xetl-opt %s --verify-stage xetile | filecheck %s
// RUN: xetl-opt %s | xetl-opt - | filecheck %s
// RUN: xetl-opt %s --generic | xetl-opt - | filecheck %s
// Both spellings are read, one is written.

// CHECK-DAG: %t = xetile.init_tile %m[8, %i] : memref<1024x1024xf16> -> !xetile.tile<32x64xf16>
// CHECK: %t1 = xetile.init_tile %dm[%i, %j], [%h, %w], [%s, %one] : memref<?x?xf16> -> !xetile.tile<32x64xf16>
// CHECK: %t2 = xetile.init_tile %p[%i, %j], [%h, %w], [%s, %one] : i64 -> !xetile.tile<32x64xf16>
// CHECK: %t3 = xetile.init_tile %sm, %idx : memref<1024xf32>, vector<1x32xindex> -> !xetile.tile<1x32xf32, #xetile.tile_attr<scattered = true>>
// CHECK: %t4 = xetile.init_tile %x3[1, %i, %j] : memref<4x64x64xf16, strided<[4096, 64, 1], offset: ?>> -> !xetile.tile<64x32xf16>
// A map alone stands for a tile_attr with that map.
// CHECK: %t5 = {{.*}} !xetile.tile<256x256xf16, #xetile.tile_attr<wg_map = <sg_layout = [8, 4], sg_data = [32, 64]>>>
// CHECK: %t6 = {{.*}} #xetile.tile_attr<sg_map = <wi_layout = [2, 8], wi_data = [1, 2]>, wg_map = <sg_layout = [8, 4], sg_data = [32, 64]>>>
// CHECK: xetile.load_tile %t8 : !xetile.tile<32x16xf16, #xetile.tile_attr<array_length = 2 : i64>> -> vector<32x16xf16>, vector<32x16xf16>
// CHECK: %l = xetile.load_tile %t4 {padding = 1.000000e-01 : f32, l1_hint = #xetile.cache_hint<cached>} : !xetile.tile<64x32xf16> -> vector<64x32xf16>
// CHECK: xetile.store_tile %l, %t4 : vector<64x32xf16>, !xetile.tile<64x32xf16>
// CHECK: xetile.prefetch_tile %t locality<3> : !xetile.tile<32x64xf16>
// CHECK: xetile.update_tile_offset %t, [%i, 32] : !xetile.tile<32x64xf16>
// CHECK: xetile.update_tile_offset %t3, %idx : !xetile.tile<1x32xf32, #xetile.tile_attr<scattered = true>>, vector<1x32xindex>
// CHECK: xetile.tile_mma %v, %b, %c : vector<64x32xf16>, vector<32x128xf16>, vector<64x128xf32> -> vector<64x128xf32>
// CHECK: xetile.tile_mma %v, %b : vector<64x32xf16>, vector<32x128xf16> -> vector<64x128xf32>
// CHECK: xetile.tile_mma %v, %b, %c {wg_map_c = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 64]>}
// CHECK-COUNT-3: xetile.atomic_rmw_tile <add> %l, %t4 : vector<64x32xf16>, !xetile.tile<64x32xf16> -> vector<64x32xf16>
// CHECK: xetile.tile_transpose %v, [1, 0] : vector<64x32xf16> -> vector<32x64xf16>
// CHECK: xetile.tile_reduce <add>, %v [0] : vector<64x32xf16> -> vector<1x32xf16>
// CHECK: xetile.tile_reduce <add>, %v [0] {reduction_size = 8 : i64} : vector<64x32xf16> -> vector<8x32xf16>
// CHECK: xetile.tile_broadcast %x1 [0] : vector<1x32xf16> -> vector<8x32xf16>
// CHECK: xetile.tile_conv_layout %v {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 16]>, source_map = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 32]>} : vector<64x32xf16>
// CHECK: xetile.load_gather %t3, %mask {padding = 1.000000e+00 : f32} :
// CHECK: xetile.store_scatter %g, %mask, %t3 : vector<1x32xf32>, vector<1x32xi1>, !xetile.tile
// CHECK: xetile.tile_pack %v {inner_blocks = array<i64: 16, 16>} : vector<64x32xf16> -> vector<4x2x16x16xf16>
// CHECK: xetile.tile_unpack %pk {inner_blocks = array<i64: 16, 16>} : vector<4x2x16x16xf16> -> vector<64x32xf16>
// CHECK: math.exp %v {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 16]>} : vector<64x32xf16>
// CHECK: scf.for {{.*}} iter_args(%a = %d, %tt = %t) -> (vector<64x128xf32>, !xetile.tile<32x64xf16>) {
// CHECK: xegpu.compile_hint
// CHECK: xegpu.alloc_nbarrier 8
// CHECK: gpu.return

#wg = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 64]>
#scatter = #xetile.tile_attr<scattered = true>
#xm = #xetile.xe_map<wg = #wg, sg = <wi_layout = [2, 8], wi_data = [1, 2]>>
module @m attributes {gpu.container_module} {
gpu.module @k {
gpu.func @f(%m: memref<1024x1024xf16>, %dm: memref<?x?xf16>, %p: i64, %i: index, %j: index, %h: index, %w: index, %s: index, %v: vector<64x32xf16>, %b: vector<32x128xf16>, %c: vector<64x128xf32>, %sm: memref<1024xf32>, %idx: vector<1x32xindex>, %mask: vector<1x32xi1>, %x3: memref<4x64x64xf16, strided<[4096, 64, 1], offset: ?>>) kernel attributes {VectorComputeFunctionINTEL, spirv.entry_point_abi = #spirv.entry_point_abi<>, known_block_size = array<i32: 1, 2, 3>, gpu.known_grid_size = array<i32: 1,1,1>} {
  %one = arith.constant 1 : index
  %t = xetile.init_tile %m[8, %i] : memref<1024x1024xf16> -> !xetile.tile<32x64xf16>
  %t1 = xetile.init_tile %dm[%i, %j], [%h, %w], [%s, %one] : memref<?x?xf16> -> !xetile.tile<32x64xf16>
  %t2 = xetile.init_tile %p[%i, %j], [%h, %w], [%s, %one] : i64 -> !xetile.tile<32x64xf16>
  %t3 = xetile.init_tile %sm, %idx : memref<1024xf32>, vector<1x32xindex> -> !xetile.tile<1x32xf32, #xetile.tile_attr<scattered = true>>
  %t3b = xetile.init_tile %sm, %idx : memref<1024xf32>, vector<1x32xindex> -> !xetile.tile<1x32xf32, #scatter>
  %t4 = xetile.init_tile %x3[1, %i, %j] : memref<4x64x64xf16, strided<[4096, 64, 1], offset: ?>> -> !xetile.tile<64x32xf16>
  %t5 = xetile.init_tile %m[8, %i] : memref<1024x1024xf16> -> !xetile.tile<256x256xf16, #wg>
  %t6 = xetile.init_tile %m[8, %i] : memref<1024x1024xf16> -> !xetile.tile<256x256xf16, #xm>
  %t7 = xetile.init_tile %m[8, %i] : memref<1024x1024xf16> -> !xetile.tile<128x128xf16, #xetile.tile_attr<wg_map = <sg_layout = [2, 2], sg_data = [32, 128]>, sg_map = <wi_layout = [2, 8], wi_data = [1, 2]>>>
  %t8 = xetile.init_tile %m[8, %i] : memref<1024x1024xf16> -> !xetile.tile<32x16xf16, #xetile.tile_attr<array_length = 2 : i64>>
  %vv:2 = xetile.load_tile %t8 : !xetile.tile<32x16xf16, #xetile.tile_attr<array_length = 2 : i64>> -> vector<32x16xf16>, vector<32x16xf16>
  %l = xetile.load_tile %t4 {padding = 0.1 : f32, l1_hint = #xetile.cache_hint<cached>} : !xetile.tile<64x32xf16> -> vector<64x32xf16>
  xetile.store_tile %l, %t4 : vector<64x32xf16>, !xetile.tile<64x32xf16>
  xetile.prefetch_tile %t : !xetile.tile<32x64xf16>
  xetile.prefetch_tile %t locality<3> : !xetile.tile<32x64xf16>
  %u = xetile.update_tile_offset %t, [%i, 32] : !xetile.tile<32x64xf16>
  %u2 = xetile.update_tile_offset %t3, %idx : !xetile.tile<1x32xf32, #xetile.tile_attr<scattered = true>>, vector<1x32xindex>
  %d = xetile.tile_mma %v, %b, %c : vector<64x32xf16>, vector<32x128xf16>, vector<64x128xf32> -> vector<64x128xf32>
  %d1 = xetile.tile_mma %v, %b : vector<64x32xf16>, vector<32x128xf16> -> vector<64x128xf32>
  %d2 = xetile.tile_mma %v, %b, %c {wg_map_c = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 64]>} : vector<64x32xf16>, vector<32x128xf16>, vector<64x128xf32> -> vector<64x128xf32>
  %r = xetile.atomic_rmw addf %l, %t4 : vector<64x32xf16>, !xetile.tile<64x32xf16> -> vector<64x32xf16>
  %r1 = xetile.atomic_rmw "addf" %l, %t4 : vector<64x32xf16>, !xetile.tile<64x32xf16> -> vector<64x32xf16>
  %r2 = xetile.atomic_rmw_tile <add> %l, %t4 : vector<64x32xf16>, !xetile.tile<64x32xf16> -> vector<64x32xf16>
  %x = xetile.transpose %v, [1, 0] : vector<64x32xf16> -> vector<32x64xf16>
  %x1 = xetile.reduction <add>, %v [0] : vector<64x32xf16> -> vector<1x32xf16>
  %x2 = xetile.reduction <add>, %v [0] {reduction_size = 8 : i64} : vector<64x32xf16> -> vector<8x32xf16>
  %x4 = xetile.broadcast %x1 [0] : vector<1x32xf16> -> vector<8x32xf16>
  %x5 = xetile.convert_layout %v {wg_map_result = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 16]>, wg_map_source = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 32]>} : vector<64x32xf16>
  %g = xetile.load %t3, %mask {padding = 1.0 : f32} : !xetile.tile<1x32xf32, #xetile.tile_attr<scattered = true>>, vector<1x32xi1> -> vector<1x32xf32>
  xetile.store %g, %t3, %mask : vector<1x32xf32>, !xetile.tile<1x32xf32, #xetile.tile_attr<scattered = true>>, vector<1x32xi1>
  %pk = xetile.tile_pack %v {inner_blocks = array<i64: 16, 16>} : vector<64x32xf16> -> vector<4x2x16x16xf16>
  %pu = xetile.tile_unpack %pk {inner_blocks = array<i64: 16, 16>} : vector<4x2x16x16xf16> -> vector<64x32xf16>
  %bid = gpu.block_id x {my.attr}
  %sg = gpu.subgroup_id : index
  gpu.barrier
  %e = math.exp %v {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 16]>} : vector<64x32xf16>
  %cst = arith.constant dense<0xFF800000> : vector<4xf32>
  %cst1 = arith.constant dense<[0.0, -0.0, 0x7FC00001, 0x7F800000]> : vector<4xf32>
  %cst2 = arith.constant dense<0x7E00> : vector<2x2xf16>
  %cst3 = arith.constant 0x7FC0 : bf16
  %res:2 = scf.for %k = %i to %j step %one iter_args(%a = %d, %tt = %t) -> (vector<64x128xf32>, !xetile.tile<32x64xf16>) {
    scf.yield %a, %tt : vector<64x128xf32>, !xetile.tile<32x64xf16>
  }
  scf.for %k = %i to %j step %one {
  }
  %cond = arith.cmpi slt, %i, %j : index
  %if = scf.if %cond -> (index) { scf.yield %i : index } else { scf.yield %j : index }
  scf.if %cond { gpu.barrier }
  xegpu.compile_hint
  xegpu.alloc_nbarrier 8
  return
}
}
}

// A GEMM at workgroup level: 2x2 subgroups make 64x64; maps on tiles, constants and products.
// launch: test_kernel (2, 2, 1) (2, 2, 1)
// A: 128x64 f16 integers
// B: 64x128 f16 integers
// C: 128x128 f32 zeros
// expect C = A @ B
#map_a = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>
#map_b = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>
#map_c = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>
#tile_attr_a = #xetile.tile_attr<wg_map = #map_a>
#tile_attr_b = #xetile.tile_attr<wg_map = #map_b>
#tile_attr_c = #xetile.tile_attr<wg_map = #map_c>
module @gemm attributes {gpu.container_module} {
  gpu.module @test_kernel attributes {spirv.target_env = #spirv.target_env<#spirv.vce<v1.4, [Addresses], []>, api=OpenCL, #spirv.resource_limits<>>} {
    gpu.func @test_kernel(%A: memref<128x64xf16>, %B: memref<64x128xf16>, %C: memref<128x128xf32>) kernel attributes {VectorComputeFunctionINTEL, gpu.known_block_size = array<i32: 2, 2, 1>, gpu.known_grid_size = array<i32: 2, 2, 1>, spirv.entry_point_abi = #spirv.entry_point_abi<>} {
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %c64 = arith.constant 64 : index
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %m = arith.muli %bx, %c64 : index
      %n = arith.muli %by, %c64 : index
      %ta = xetile.init_tile %A[%m, %c0] : memref<128x64xf16> -> !xetile.tile<64x32xf16, #tile_attr_a>
      %tb = xetile.init_tile %B[%c0, %n] : memref<64x128xf16> -> !xetile.tile<32x64xf16, #tile_attr_b>
      %tc = xetile.init_tile %C[%m, %n] : memref<128x128xf32> -> !xetile.tile<64x64xf32, #tile_attr_c>
      %zero = arith.constant {map = #map_c} dense<0.0> : vector<64x64xf32>
      %r:3 = scf.for %k = %c0 to %c64 step %c32 iter_args(%a = %ta, %b = %tb, %acc = %zero) -> (!xetile.tile<64x32xf16, #tile_attr_a>, !xetile.tile<32x64xf16, #tile_attr_b>, vector<64x64xf32>) {
        %va = xetile.load_tile %a : !xetile.tile<64x32xf16, #tile_attr_a> -> vector<64x32xf16>
        %vb = xetile.load_tile %b : !xetile.tile<32x64xf16, #tile_attr_b> -> vector<32x64xf16>
        %d = xetile.tile_mma %va, %vb, %acc {wg_map_a = #map_a, wg_map_b = #map_b, wg_map_c = #map_c} : vector<64x32xf16>, vector<32x64xf16>, vector<64x64xf32> -> vector<64x64xf32>
        %na = xetile.update_tile_offset %a, [%c0, %c32] : !xetile.tile<64x32xf16, #tile_attr_a>
        %nb = xetile.update_tile_offset %b, [%c32, %c0] : !xetile.tile<32x64xf16, #tile_attr_b>
        scf.yield %na, %nb, %d : !xetile.tile<64x32xf16, #tile_attr_a>, !xetile.tile<32x64xf16, #tile_attr_b>, vector<64x64xf32>
      }
      xetile.store_tile %r#2, %tc : vector<64x64xf32>, !xetile.tile<64x64xf32, #tile_attr_c>
      gpu.return
    }
  }
}

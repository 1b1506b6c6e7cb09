// RUN: xetl-opt %s | filecheck %s
// A module around everything, attributes of other dialects, several kernels, `return`
// in a device function, maps on arithmetic, cache hints.
// CHECK: gpu.func @add
// CHECK: gpu.func @two
builtin.module attributes {gpu.container_module} {
  func.func private @ext(memref<4xf32>)
  func.func @host(%a: memref<16x16xf32>) {
    return
  }
  gpu.module @kernels attributes {spirv.target_env = #spirv.target_env<#spirv.vce<v1.4, [Addresses], []>, api=OpenCL, #spirv.resource_limits<>>} {
    gpu.func @add(%a: memref<16x16xf32>) kernel attributes {VectorComputeFunctionINTEL, known_block_size = array<i32: 1, 1, 1>, known_grid_size = array<i32: 1, 1, 1>, spirv.entry_point_abi = #spirv.entry_point_abi<>} {
      %c = arith.constant dense<1.0> : vector<16x16xf32>
      %t = xetile.init_tile %a[0, 0] : memref<16x16xf32> -> !xetile.tile<16x16xf32>
      %v = xetile.load_tile %t {l1_hint = #xetile.cache_hint<cached>, l2_hint = #xetile.cache_hint<uncached>} : !xetile.tile<16x16xf32> -> vector<16x16xf32>
      %w = arith.addf %v, %c {map = #xetile.wg_map<sg_layout = [1, 1], sg_data = [16, 16]>} : vector<16x16xf32>
      %cst = arith.constant 2.0 : f32
      %b = vector.broadcast %cst : f32 to vector<16x16xf32>
      %m = arith.maximumf %w, %b : vector<16x16xf32>
      xetile.store_tile %m, %t : vector<16x16xf32>, !xetile.tile<16x16xf32>
      gpu.return
    }
    gpu.func @two(%a: memref<16x16xbf16>) kernel {
      %t = xetile.init_tile %a[0, 0] : memref<16x16xbf16> -> !xetile.tile<16x16xbf16>
      %v = xetile.load_tile %t : !xetile.tile<16x16xbf16> -> vector<16x16xbf16>
      %w = math.exp %v fastmath<fast> : vector<16x16xbf16>
      xetile.store_tile %w, %t : vector<16x16xbf16>, !xetile.tile<16x16xbf16>
      return
    }
  }
}

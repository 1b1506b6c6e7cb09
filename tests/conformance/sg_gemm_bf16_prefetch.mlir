// bf16, prefetched tiles that run ahead and out of the matrix, f32 sums.
// launch: gemm (2, 2) (1,)
// A: 64x96 bf16 integers
// B: 96x64 bf16 integers
// C: 64x64 f32 zeros
// expect C = A @ B
gpu.module @kernels attributes {spirv.target_env = #spirv.target_env<#spirv.vce<v1.0, [Kernel], []>, #spirv.resource_limits<>>} {
  gpu.func @gemm(%A: memref<64x96xbf16>, %B: memref<96x64xbf16>, %C: memref<64x64xf32>) kernel attributes {VectorComputeFunctionINTEL, known_block_size = array<i32: 1, 1, 1>, known_grid_size = array<i32: 2, 2, 1>, spirv.entry_point_abi = #spirv.entry_point_abi<>} {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c96 = arith.constant 96 : index
    %0 = gpu.block_id  x
    %1 = gpu.block_id  y
    %2 = index.mul %0, %c32
    %3 = index.mul %1, %c32
    %cst = arith.constant dense<0.000000e+00> : vector<32x32xf32>
    %4 = xetile.init_tile %A[%2, 0] : memref<64x96xbf16> -> !xetile.tile<32x32xbf16>
    %5 = xetile.init_tile %B[0, %3] : memref<96x64xbf16> -> !xetile.tile<32x32xbf16>
    %6 = xetile.init_tile %A[%2, 32] : memref<64x96xbf16> -> !xetile.tile<32x32xbf16>
    %7 = xetile.init_tile %B[32, %3] : memref<96x64xbf16> -> !xetile.tile<32x32xbf16>
    xetile.prefetch_tile %4 : !xetile.tile<32x32xbf16>
    xetile.prefetch_tile %5 {l1_hint = #xetile.cache_hint<cached>, l2_hint = #xetile.cache_hint<uncached>} : !xetile.tile<32x32xbf16>
    %8:5 = scf.for %arg0 = %c0 to %c96 step %c32 iter_args(%a = %4, %b = %5, %pa = %6, %pb = %7, %acc = %cst) -> (!xetile.tile<32x32xbf16>, !xetile.tile<32x32xbf16>, !xetile.tile<32x32xbf16>, !xetile.tile<32x32xbf16>, vector<32x32xf32>) {
      xetile.prefetch_tile %pa {l1_hint = #xetile.cache_hint<streaming>, l3_hint = #xetile.cache_hint<read_invalidate>} : !xetile.tile<32x32xbf16>
      xetile.prefetch_tile %pb locality<2> : !xetile.tile<32x32xbf16>
      %9 = xetile.load_tile %a {l1_hint = #xetile.cache_hint<cached>} : !xetile.tile<32x32xbf16> -> vector<32x32xbf16>
      %10 = xetile.load_tile %b : !xetile.tile<32x32xbf16> -> vector<32x32xbf16>
      xegpu.compile_hint
      %11 = xetile.tile_mma %9, %10, %acc : vector<32x32xbf16>, vector<32x32xbf16>, vector<32x32xf32> -> vector<32x32xf32>
      xegpu.compile_hint
      %12 = xetile.update_tile_offset %a, [0, 32] : !xetile.tile<32x32xbf16>
      %13 = xetile.update_tile_offset %b, [%c32, 0] : !xetile.tile<32x32xbf16>
      %14 = xetile.update_tile_offset %pa, [0, %c32] : !xetile.tile<32x32xbf16>
      %15 = xetile.update_tile_offset %pb, [32, 0] : !xetile.tile<32x32xbf16>
      scf.yield %12, %13, %14, %15, %11 : !xetile.tile<32x32xbf16>, !xetile.tile<32x32xbf16>, !xetile.tile<32x32xbf16>, !xetile.tile<32x32xbf16>, vector<32x32xf32>
    }
    %16 = xetile.init_tile %C[%2, %3] : memref<64x64xf32> -> !xetile.tile<32x32xf32>
    xetile.store_tile %8#4, %16 {l1_hint = #xetile.cache_hint<write_back>, l2_hint = #xetile.cache_hint<write_through>} : vector<32x32xf32>, !xetile.tile<32x32xf32>
    gpu.return
  }
}

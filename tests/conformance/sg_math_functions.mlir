// Functions of `math` on vectors; two kernels.
// launch: k (1) (1)
// A: 8x32 f32 positive
// O: 96x32 f32 zeros
// tolerance: 3e-6
// expect O = np.concatenate([np.exp(A), np.log(A), np.sqrt(A), np.sin(A), np.cos(A), np.tanh(A), 1 / np.sqrt(A), np.exp2(A), np.log2(A), A ** A, erf(A), np.floor(A) + np.ceil(A)])
// launch: more (1) (1)
// A: 8x32 f32 uniform
// O: 72x32 f32 zeros
// tolerance: 3e-6
// expect O = np.concatenate([np.abs(A), np.expm1(A), np.log1p(A), np.arctan(A), np.arctan2(A, 1), np.cbrt(A), np.tan(A), np.arcsin(A), np.sinh(A)])
gpu.module @m {
  gpu.func @k(%A: memref<8x32xf32>, %O: memref<96x32xf32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<8x32xf32> -> !xetile.tile<8x32xf32>
    %a = xetile.load_tile %ta : !xetile.tile<8x32xf32> -> vector<8x32xf32>
    %0 = math.exp %a : vector<8x32xf32>
    %1 = math.log %a fastmath<fast> : vector<8x32xf32>
    %2 = math.sqrt %a : vector<8x32xf32>
    %3 = math.sin %a : vector<8x32xf32>
    %4 = math.cos %a : vector<8x32xf32>
    %5 = math.tanh %a : vector<8x32xf32>
    %6 = math.rsqrt %a : vector<8x32xf32>
    %7 = math.exp2 %a : vector<8x32xf32>
    %8 = math.log2 %a : vector<8x32xf32>
    %9 = math.powf %a, %a : vector<8x32xf32>
    %10 = math.erf %a : vector<8x32xf32>
    %11 = math.floor %a : vector<8x32xf32>
    %12 = math.ceil %a : vector<8x32xf32>
    %13 = arith.addf %11, %12 : vector<8x32xf32>
    %t0 = xetile.init_tile %O[0, 0] : memref<96x32xf32> -> !xetile.tile<8x32xf32>
    xetile.store_tile %0, %t0 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    %t1 = xetile.update_tile_offset %t0, [8, 0] : !xetile.tile<8x32xf32>
    xetile.store_tile %1, %t1 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    %t2 = xetile.update_tile_offset %t1, [8, 0] : !xetile.tile<8x32xf32>
    xetile.store_tile %2, %t2 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    %t3 = xetile.update_tile_offset %t2, [8, 0] : !xetile.tile<8x32xf32>
    xetile.store_tile %3, %t3 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    %t4 = xetile.update_tile_offset %t3, [8, 0] : !xetile.tile<8x32xf32>
    xetile.store_tile %4, %t4 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    %t5 = xetile.update_tile_offset %t4, [8, 0] : !xetile.tile<8x32xf32>
    xetile.store_tile %5, %t5 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    %t6 = xetile.update_tile_offset %t5, [8, 0] : !xetile.tile<8x32xf32>
    xetile.store_tile %6, %t6 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    %t7 = xetile.update_tile_offset %t6, [8, 0] : !xetile.tile<8x32xf32>
    xetile.store_tile %7, %t7 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    %t8 = xetile.update_tile_offset %t7, [8, 0] : !xetile.tile<8x32xf32>
    xetile.store_tile %8, %t8 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    %t9 = xetile.update_tile_offset %t8, [8, 0] : !xetile.tile<8x32xf32>
    xetile.store_tile %9, %t9 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    %t10 = xetile.update_tile_offset %t9, [8, 0] : !xetile.tile<8x32xf32>
    xetile.store_tile %10, %t10 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    %t11 = xetile.update_tile_offset %t10, [8, 0] : !xetile.tile<8x32xf32>
    xetile.store_tile %13, %t11 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    gpu.return
  }
  gpu.func @more(%A: memref<8x32xf32>, %O: memref<72x32xf32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<8x32xf32> -> !xetile.tile<8x32xf32>
    %a = xetile.load_tile %ta : !xetile.tile<8x32xf32> -> vector<8x32xf32>
    %one = arith.constant dense<1.0> : vector<8x32xf32>
    %0 = math.absf %a : vector<8x32xf32>
    %1 = math.expm1 %a : vector<8x32xf32>
    %2 = math.log1p %a : vector<8x32xf32>
    %3 = math.atan %a : vector<8x32xf32>
    %4 = math.atan2 %a, %one : vector<8x32xf32>
    %5 = math.cbrt %a : vector<8x32xf32>
    %6 = math.tan %a : vector<8x32xf32>
    %7 = math.asin %a : vector<8x32xf32>
    %8 = math.sinh %a : vector<8x32xf32>
    %t0 = xetile.init_tile %O[0, 0] : memref<72x32xf32> -> !xetile.tile<8x32xf32>
    xetile.store_tile %0, %t0 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    %t1 = xetile.update_tile_offset %t0, [8, 0] : !xetile.tile<8x32xf32>
    xetile.store_tile %1, %t1 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    %t2 = xetile.update_tile_offset %t1, [8, 0] : !xetile.tile<8x32xf32>
    xetile.store_tile %2, %t2 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    %t3 = xetile.update_tile_offset %t2, [8, 0] : !xetile.tile<8x32xf32>
    xetile.store_tile %3, %t3 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    %t4 = xetile.update_tile_offset %t3, [8, 0] : !xetile.tile<8x32xf32>
    xetile.store_tile %4, %t4 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    %t5 = xetile.update_tile_offset %t4, [8, 0] : !xetile.tile<8x32xf32>
    xetile.store_tile %5, %t5 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    %t6 = xetile.update_tile_offset %t5, [8, 0] : !xetile.tile<8x32xf32>
    xetile.store_tile %6, %t6 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    %t7 = xetile.update_tile_offset %t6, [8, 0] : !xetile.tile<8x32xf32>
    xetile.store_tile %7, %t7 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    %t8 = xetile.update_tile_offset %t7, [8, 0] : !xetile.tile<8x32xf32>
    xetile.store_tile %8, %t8 : vector<8x32xf32>, !xetile.tile<8x32xf32>
    gpu.return
  }
}

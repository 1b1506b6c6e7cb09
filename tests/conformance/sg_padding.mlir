// Tiles that stick out on all sides: padding as float, integer, exponent; dropped stores.
// launch: k (1) (1)
// A: 20x20 f16 integers
// I: 12x12 i32 integers
// B: 32x32 f32 zeros
// J: 16x16 i32 zeros
// P: 8x8 f16 zeros
// expect B = np.pad(A, ((6, 6), (6, 6)), constant_values=0.5)
// expect J = np.pad(I, ((0, 4), (0, 4)), constant_values=-3)
// expect P = A[:8, :8]
gpu.module @m {
  gpu.func @k(%A: memref<20x20xf16>, %I: memref<12x12xi32>, %B: memref<32x32xf32>, %J: memref<16x16xi32>, %P: memref<8x8xf16>) kernel {
    %cm6 = arith.constant -6 : index
    %ta = xetile.init_tile %A[%cm6, -6] : memref<20x20xf16> -> !xetile.tile<32x32xf16>
    %a = xetile.load_tile %ta {padding = 5.000000e-01 : f32} : !xetile.tile<32x32xf16> -> vector<32x32xf16>
    %f = arith.extf %a : vector<32x32xf16> to vector<32x32xf32>
    %tb = xetile.init_tile %B[0, 0] : memref<32x32xf32> -> !xetile.tile<32x32xf32>
    xetile.store_tile %f, %tb : vector<32x32xf32>, !xetile.tile<32x32xf32>
    %ti = xetile.init_tile %I[0, 0] : memref<12x12xi32> -> !xetile.tile<16x16xi32>
    %i = xetile.load_tile %ti {padding = -3 : i32} : !xetile.tile<16x16xi32> -> vector<16x16xi32>
    %tj = xetile.init_tile %J[0, 0] : memref<16x16xi32> -> !xetile.tile<16x16xi32>
    xetile.store_tile %i, %tj : vector<16x16xi32>, !xetile.tile<16x16xi32>
    %tp = xetile.init_tile %P[-6, -6] : memref<8x8xf16> -> !xetile.tile<32x32xf16>
    xetile.store_tile %a, %tp : vector<32x32xf16>, !xetile.tile<32x32xf16>
    gpu.return
  }
}

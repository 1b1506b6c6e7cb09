// A is changed before the product: added to itself, cast down.
// launch: k (1) (1)
// A: 16x32 f32 integers
// B: 32x16 f16 integers
// C: 16x16 f32 zeros
// expect C = np.maximum(A * 2 + 1, 0) @ B
gpu.module @m {
  gpu.func @k(%A: memref<16x32xf32>, %B: memref<32x16xf16>, %C: memref<16x16xf32>) kernel {
    %one = arith.constant dense<1.0> : vector<16x32xf32>
    %zero = arith.constant dense<0.0> : vector<16x32xf32>
    %ta = xetile.init_tile %A[0, 0] : memref<16x32xf32> -> !xetile.tile<16x32xf32>
    %tb = xetile.init_tile %B[0, 0] : memref<32x16xf16> -> !xetile.tile<32x16xf16>
    %a = xetile.load_tile %ta : !xetile.tile<16x32xf32> -> vector<16x32xf32>
    %b = xetile.load_tile %tb : !xetile.tile<32x16xf16> -> vector<32x16xf16>
    %a2 = arith.addf %a, %a : vector<16x32xf32>
    %a3 = arith.addf %a2, %one fastmath<contract> : vector<16x32xf32>
    %p = arith.cmpf ogt, %a3, %zero : vector<16x32xf32>
    %a4 = arith.select %p, %a3, %zero : vector<16x32xi1>, vector<16x32xf32>
    %ah = arith.truncf %a4 : vector<16x32xf32> to vector<16x32xf16>
    %d = xetile.tile_mma %ah, %b : vector<16x32xf16>, vector<32x16xf16> -> vector<16x16xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<16x16xf32> -> !xetile.tile<16x16xf32>
    xetile.store_tile %d, %tc : vector<16x16xf32>, !xetile.tile<16x16xf32>
    gpu.return
  }
}

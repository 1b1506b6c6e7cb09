// A bias of one row is added to the product, then relu, then cast to f16.
// launch: k (2, 2) (1)
// A: 32x16 f16 integers
// B: 16x32 f16 integers
// bias: 1x32 f32 integers
// C: 32x32 f16 zeros
// expect C = np.maximum(A @ B + bias, 0)
gpu.module @m {
  gpu.func @k(%A: memref<32x16xf16>, %B: memref<16x32xf16>, %bias: memref<1x32xf32>, %C: memref<32x32xf16>) kernel {
    %c16 = arith.constant 16 : index
    %x = gpu.block_id x
    %y = gpu.block_id y
    %m = arith.muli %x, %c16 : index
    %n = arith.muli %y, %c16 : index
    %ta = xetile.init_tile %A[%m, 0] : memref<32x16xf16> -> !xetile.tile<16x16xf16>
    %tb = xetile.init_tile %B[0, %n] : memref<16x32xf16> -> !xetile.tile<16x16xf16>
    %tbias = xetile.init_tile %bias[0, %n] : memref<1x32xf32> -> !xetile.tile<1x16xf32>
    %a = xetile.load_tile %ta : !xetile.tile<16x16xf16> -> vector<16x16xf16>
    %b = xetile.load_tile %tb : !xetile.tile<16x16xf16> -> vector<16x16xf16>
    %v = xetile.load_tile %tbias : !xetile.tile<1x16xf32> -> vector<1x16xf32>
    %d = xetile.tile_mma %a, %b : vector<16x16xf16>, vector<16x16xf16> -> vector<16x16xf32>
    %w = xetile.broadcast %v [0] : vector<1x16xf32> -> vector<16x16xf32>
    %e = arith.addf %d, %w : vector<16x16xf32>
    %z = arith.constant dense<0.0> : vector<16x16xf32>
    %f = arith.maximumf %e, %z : vector<16x16xf32>
    %g = arith.truncf %f : vector<16x16xf32> to vector<16x16xf16>
    %tc = xetile.init_tile %C[%m, %n] : memref<32x32xf16> -> !xetile.tile<16x16xf16>
    xetile.store_tile %g, %tc : vector<16x16xf16>, !xetile.tile<16x16xf16>
    gpu.return
  }
}

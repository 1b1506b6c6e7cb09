// A is stored as its transpose and turned round in registers.
// launch: k (1) (1)
// At: 32x16 f16 integers
// B: 32x16 f16 integers
// C: 16x16 f32 zeros
// expect C = At.T @ B
gpu.module @m {
  gpu.func @k(%At: memref<32x16xf16>, %B: memref<32x16xf16>, %C: memref<16x16xf32>) kernel {
    %ta = xetile.init_tile %At[0, 0] : memref<32x16xf16> -> !xetile.tile<32x16xf16>
    %tb = xetile.init_tile %B[0, 0] : memref<32x16xf16> -> !xetile.tile<32x16xf16>
    %at = xetile.load_tile %ta : !xetile.tile<32x16xf16> -> vector<32x16xf16>
    %a = xetile.transpose %at, [1, 0] : vector<32x16xf16> -> vector<16x32xf16>
    %b = xetile.load_tile %tb : !xetile.tile<32x16xf16> -> vector<32x16xf16>
    %d = xetile.tile_mma %a, %b : vector<16x32xf16>, vector<32x16xf16> -> vector<16x16xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<16x16xf32> -> !xetile.tile<16x16xf32>
    xetile.store_tile %d, %tc : vector<16x16xf32>, !xetile.tile<16x16xf32>
    gpu.return
  }
}

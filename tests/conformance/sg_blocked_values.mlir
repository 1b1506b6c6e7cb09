// inner_blocks in both spellings, values of rank 4, tile_pack and tile_unpack.
// launch: k (1) (1)
// A: 32x32 f16 integers
// B: 32x32 f16 integers
// C: 32x32 f32 zeros
// expect C = A @ B + 1
gpu.module @m {
  gpu.func @k(%A: memref<32x32xf16>, %B: memref<32x32xf16>, %C: memref<32x32xf32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<32x32xf16> -> !xetile.tile<32x32xf16, #xetile.tile_attr<inner_blocks = [8, 16]>>
    %tb = xetile.init_tile %B[0, 0] : memref<32x32xf16> -> !xetile.tile<32x32xf16>
    %a = xetile.load_tile %ta : !xetile.tile<32x32xf16, #xetile.tile_attr<inner_blocks = array<i64: 8, 16>>> -> vector<4x2x8x16xf16>
    %b0 = xetile.load_tile %tb : !xetile.tile<32x32xf16> -> vector<32x32xf16>
    %b = xetile.tile_pack %b0 {inner_blocks = array<i64: 16, 16>} : vector<32x32xf16> -> vector<2x2x16x16xf16>
    %d = xetile.tile_mma %a, %b : vector<4x2x8x16xf16>, vector<2x2x16x16xf16> -> vector<4x2x8x16xf32>
    %one = arith.constant dense<1.0> : vector<4x2x8x16xf32>
    %e = arith.addf %d, %one : vector<4x2x8x16xf32>
    %c = xetile.tile_unpack %e {inner_blocks = array<i64: 8, 16>} : vector<4x2x8x16xf32> -> vector<32x32xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<32x32xf32> -> !xetile.tile<32x32xf32>
    xetile.store_tile %c, %tc : vector<32x32xf32>, !xetile.tile<32x32xf32>
    gpu.return
  }
}

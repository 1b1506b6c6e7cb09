// Two and four vectors of one load.
// launch: k (1) (1)
// A: 16x64 f16 integers
// B: 32x32 f16 integers
// C: 16x16 f32 zeros
// expect C = (A[:, :16] + A[:, 48:]) @ B[:16, :16] + (A[:, 16:32] - A[:, 32:48]) @ B[:16, 16:]
gpu.module @m {
  gpu.func @k(%A: memref<16x64xf16>, %B: memref<32x32xf16>, %C: memref<16x16xf32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<16x64xf16> -> !xetile.tile<16x16xf16, #xetile.tile_attr<array_length = 4 : i64>>
    %tb = xetile.init_tile %B[0, 0] : memref<32x32xf16> -> !xetile.tile<16x16xf16, #xetile.tile_attr<order = [1, 0], array_length = 2>>
    %a:4 = xetile.load_tile %ta : !xetile.tile<16x16xf16, #xetile.tile_attr<array_length = 4 : i64>> -> vector<16x16xf16>, vector<16x16xf16>, vector<16x16xf16>, vector<16x16xf16>
    %b0, %b1 = xetile.load_tile %tb : !xetile.tile<16x16xf16, #xetile.tile_attr<array_length = 2>> -> vector<16x16xf16>, vector<16x16xf16>
    %s = arith.addf %a#0, %a#3 : vector<16x16xf16>
    %d = arith.subf %a#1, %a#2 : vector<16x16xf16>
    %p = xetile.tile_mma %s, %b0 : vector<16x16xf16>, vector<16x16xf16> -> vector<16x16xf32>
    %q = xetile.tile_mma %d, %b1, %p : vector<16x16xf16>, vector<16x16xf16>, vector<16x16xf32> -> vector<16x16xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<16x16xf32> -> !xetile.tile<16x16xf32>
    xetile.store_tile %q, %tc : vector<16x16xf32>, !xetile.tile<16x16xf32>
    gpu.return
  }
}

// B is transposed, once with vector.transpose and once with the RFC's name.
// launch: k (1) (1)
// A: 16x32 f16 integers
// Bt: 16x32 f16 integers
// C: 16x16 f32 zeros
// D: 16x16 f32 zeros
// expect C = A @ Bt.T
// expect D = A @ Bt.T
gpu.module @m {
  gpu.func @k(%A: memref<16x32xf16>, %Bt: memref<16x32xf16>, %C: memref<16x16xf32>, %D: memref<16x16xf32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<16x32xf16> -> !xetile.tile<16x32xf16>
    %tb = xetile.init_tile %Bt[0, 0] : memref<16x32xf16> -> !xetile.tile<16x32xf16>
    %a = xetile.load_tile %ta : !xetile.tile<16x32xf16> -> vector<16x32xf16>
    %bt = xetile.load_tile %tb : !xetile.tile<16x32xf16> -> vector<16x32xf16>
    %b = vector.transpose %bt, [1, 0] : vector<16x32xf16> to vector<32x16xf16>
    %b2 = xetile.tile_transpose %bt, [1, 0] : vector<16x32xf16> -> vector<32x16xf16>
    %d = xetile.tile_mma %a, %b : vector<16x32xf16>, vector<32x16xf16> -> vector<16x16xf32>
    %e = xetile.tile_mma %a, %b2 : vector<16x32xf16>, vector<32x16xf16> -> vector<16x16xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<16x16xf32> -> !xetile.tile<16x16xf32>
    %td = xetile.init_tile %D[0, 0] : memref<16x16xf32> -> !xetile.tile<16x16xf32>
    xetile.store_tile %d, %tc : vector<16x16xf32>, !xetile.tile<16x16xf32>
    xetile.store_tile %e, %td : vector<16x16xf32>, !xetile.tile<16x16xf32>
    gpu.return
  }
}

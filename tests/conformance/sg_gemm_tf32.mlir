// tf32 matrices come as f32; products of small whole numbers are exact.
// launch: k (1) (1)
// A: 16x16 tf32 integers
// B: 16x16 tf32 integers
// C: 16x16 f32 zeros
// expect C = A @ B
gpu.module @m {
  gpu.func @k(%A: memref<16x16xtf32>, %B: memref<16x16xtf32>, %C: memref<16x16xf32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<16x16xtf32> -> !xetile.tile<16x16xtf32>
    %tb = xetile.init_tile %B[0, 0] : memref<16x16xtf32> -> !xetile.tile<16x16xtf32>
    %tc = xetile.init_tile %C[0, 0] : memref<16x16xf32> -> !xetile.tile<16x16xf32>
    %a = xetile.load_tile %ta : !xetile.tile<16x16xtf32> -> vector<16x16xtf32>
    %b = xetile.load_tile %tb : !xetile.tile<16x16xtf32> -> vector<16x16xtf32>
    %c = xetile.load_tile %tc : !xetile.tile<16x16xf32> -> vector<16x16xf32>
    %d = xetile.tile_mma %a, %b, %c : vector<16x16xtf32>, vector<16x16xtf32>, vector<16x16xf32> -> vector<16x16xf32>
    xetile.store_tile %d, %tc : vector<16x16xf32>, !xetile.tile<16x16xf32>
    gpu.return
  }
}

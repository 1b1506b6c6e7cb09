// A batch of matrices: leading offsets by SSA and constant, dynamic sizes of rank 3.
// launch: k (3) (1)
// A: 3x16x16 f32 integers
// B: 2x3x16x16 f32 integers
// C: 3x16x16 f32 zeros
// n: 16
// expect C = A @ B[1]
gpu.module @m {
  gpu.func @k(%A: memref<3x16x16xf32>, %B: memref<2x3x16x16xf32>, %C: memref<3x16x16xf32, strided<[256, 16, 1], offset: 0>>, %n: index) kernel {
    %x = gpu.block_id x
    %ta = xetile.init_tile %A[%x, 0, 0] : memref<3x16x16xf32> -> !xetile.tile<16x16xf32>
    %tb = xetile.init_tile %B[1, %x, 0, 0] : memref<2x3x16x16xf32> -> !xetile.tile<16x16xf32>
    %a = xetile.load_tile %ta : !xetile.tile<16x16xf32> -> vector<16x16xf32>
    %b = xetile.load_tile %tb : !xetile.tile<16x16xf32> -> vector<16x16xf32>
    %d = xetile.tile_mma %a, %b : vector<16x16xf32>, vector<16x16xf32> -> vector<16x16xf32>
    %tc = xetile.init_tile %C[%x, 0, 0] : memref<3x16x16xf32, strided<[256, 16, 1], offset: 0>> -> !xetile.tile<16x16xf32>
    xetile.store_tile %d, %tc : vector<16x16xf32>, !xetile.tile<16x16xf32>
    gpu.return
  }
}

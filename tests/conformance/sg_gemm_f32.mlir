// f32 matrices, f32 sums, a grid of three dimensions.
// launch: k (1, 2, 2) (1, 1, 1)
// A: 32x32 f32 integers
// B: 32x32 f32 integers
// C: 32x32 f32 zeros
// expect C = A @ B
module {
  gpu.module @m {
    gpu.func @k(%A: memref<32x32xf32>, %B: memref<32x32xf32>, %C: memref<32x32xf32>) kernel {
      %y = gpu.block_id y
      %z = gpu.block_id z
      %dy = gpu.grid_dim y
      %c32 = arith.constant 32 : index
      %rows = arith.divui %c32, %dy : index
      %r = arith.muli %y, %rows : index
      %q = arith.muli %z, %rows : index
      %ta = xetile.init_tile %A[%r, 0] : memref<32x32xf32> -> !xetile.tile<16x32xf32>
      %tb = xetile.init_tile %B[0, %q] : memref<32x32xf32> -> !xetile.tile<32x16xf32>
      %a = xetile.load_tile %ta : !xetile.tile<16x32xf32> -> vector<16x32xf32>
      %b = xetile.load_tile %tb : !xetile.tile<32x16xf32> -> vector<32x16xf32>
      %zero = arith.constant dense<0.0> : vector<16x16xf32>
      %d = xetile.tile_mma %a, %b, %zero : vector<16x32xf32>, vector<32x16xf32>, vector<16x16xf32> -> vector<16x16xf32>
      %tc = xetile.init_tile %C[%r, %q] : memref<32x32xf32> -> !xetile.tile<16x16xf32>
      xetile.store_tile %d, %tc : vector<16x16xf32>, !xetile.tile<16x16xf32>
      gpu.return
    }
  }
}

// `reduction_size`: groups of 8 along a dimension.
// launch: k (1) (1)
// A: 16x32 f32 integers
// B: 16x4 f32 zeros
// C: 4x32 f32 zeros
// expect B = A.reshape(16, 4, 8).sum(2)
// expect C = A.reshape(4, 4, 32).max(1)
gpu.module @m {
  gpu.func @k(%A: memref<16x32xf32>, %B: memref<16x4xf32>, %C: memref<4x32xf32>) kernel {
    %t = xetile.init_tile %A[0, 0] : memref<16x32xf32> -> !xetile.tile<16x32xf32>
    %v = xetile.load_tile %t : !xetile.tile<16x32xf32> -> vector<16x32xf32>
    %r = xetile.reduction <add>, %v [1] {reduction_size = 8 : i64} : vector<16x32xf32> -> vector<16x4xf32>
    %s = xetile.reduction <maximumf>, %v [0] {reduction_size = 4 : i64} : vector<16x32xf32> -> vector<4x32xf32>
    %tb = xetile.init_tile %B[0, 0] : memref<16x4xf32> -> !xetile.tile<16x4xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<4x32xf32> -> !xetile.tile<4x32xf32>
    xetile.store_tile %r, %tb : vector<16x4xf32>, !xetile.tile<16x4xf32>
    xetile.store_tile %s, %tc : vector<4x32xf32>, !xetile.tile<4x32xf32>
    gpu.return
  }
}

// A large reduction in three steps: shape_cast to 8x32x128, over the first and then the last dimensions.
// launch: k (1) (1)
// A: 256x128 f16 integers
// R: 32x128 f16 zeros
// S: 1x32 f32 zeros
// T: 1x1 f32 zeros
// expect R = A.reshape(8, 32, 128).sum(0)
// expect S = A.reshape(8, 32, 128).sum((0, 2))[None] + 1
// expect T = [[A.max() + 0]]
gpu.module @m {
  gpu.func @k(%A: memref<256x128xf16>, %R: memref<32x128xf16>, %S: memref<1x32xf32>, %T: memref<1x1xf32>) kernel {
    %t = xetile.init_tile %A[0, 0] : memref<256x128xf16> -> !xetile.tile<256x128xf16>
    %v = xetile.load_tile %t : !xetile.tile<256x128xf16> -> vector<256x128xf16>
    %b = vector.shape_cast %v : vector<256x128xf16> to vector<8x32x128xf16>
    %acc = arith.constant dense<0.0> : vector<32x128xf16>
    %r = vector.multi_reduction <add>, %b, %acc [0] : vector<8x32x128xf16> to vector<32x128xf16>
    %tr = xetile.init_tile %R[0, 0] : memref<32x128xf16> -> !xetile.tile<32x128xf16>
    xetile.store_tile %r, %tr : vector<32x128xf16>, !xetile.tile<32x128xf16>
    %f = arith.extf %b : vector<8x32x128xf16> to vector<8x32x128xf32>
    %one = arith.constant dense<1.0> : vector<32xf32>
    %s = vector.multi_reduction <add>, %f, %one [0, 2] : vector<8x32x128xf32> to vector<32xf32>
    %s2 = vector.shape_cast %s : vector<32xf32> to vector<1x32xf32>
    %ts = xetile.init_tile %S[0, 0] : memref<1x32xf32> -> !xetile.tile<1x32xf32>
    xetile.store_tile %s2, %ts : vector<1x32xf32>, !xetile.tile<1x32xf32>
    %low = arith.constant -1.0e4 : f32
    %m = vector.multi_reduction <maximumf>, %f, %low [0, 1, 2] : vector<8x32x128xf32> to f32
    %mb = vector.broadcast %m : f32 to vector<1x1xf32>
    %tt = xetile.init_tile %T[0, 0] : memref<1x1xf32> -> !xetile.tile<1x1xf32>
    xetile.store_tile %mb, %tt : vector<1x1xf32>, !xetile.tile<1x1xf32>
    gpu.return
  }
}

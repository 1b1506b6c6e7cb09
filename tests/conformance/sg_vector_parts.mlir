// extract, insert, strided slices, shuffle, shape casts through rank 3, constant positions and SSA ones.
// launch: k (1) (1)
// A: 16x32 f32 integers
// B: 16x32 f32 zeros
// expect B = np.concatenate([A[8:], A[:4], np.stack([A[3], A[2] + A[1, 5], A[1], A[0] * 2])])
gpu.module @m {
  gpu.func @k(%A: memref<16x32xf32>, %B: memref<16x32xf32>) kernel {
    %c1 = arith.constant 1 : index
    %t = xetile.init_tile %A[0, 0] : memref<16x32xf32> -> !xetile.tile<16x32xf32>
    %v = xetile.load_tile %t : !xetile.tile<16x32xf32> -> vector<16x32xf32>
    %r = vector.shape_cast %v : vector<16x32xf32> to vector<2x8x32xf32>
    %hi = vector.extract %r[1] : vector<8x32xf32> from vector<2x8x32xf32>
    %lo = vector.extract %r[0] : vector<8x32xf32> from vector<2x8x32xf32>
    %four = vector.extract_strided_slice %lo {offsets = [0], sizes = [4], strides = [1]} : vector<8x32xf32> to vector<4x32xf32>
    %zero = arith.constant dense<0.0> : vector<16x32xf32>
    %w0 = vector.insert_strided_slice %hi, %zero {offsets = [0, 0], strides = [1, 1]} : vector<8x32xf32> into vector<16x32xf32>
    %w1 = vector.insert_strided_slice %four, %w0 {offsets = [8, 0], strides = [1, 1]} : vector<4x32xf32> into vector<16x32xf32>
    %sh = vector.shuffle %four, %four [3, 2, 1, 0] : vector<4x32xf32>, vector<4x32xf32>
    %s = vector.extract %v[%c1, 5] : f32 from vector<16x32xf32>
    %sb = vector.broadcast %s : f32 to vector<32xf32>
    %row = vector.extract %sh[1] : vector<32xf32> from vector<4x32xf32>
    %row2 = arith.addf %row, %sb : vector<32xf32>
    %sh2 = vector.insert %row2, %sh[%c1] : vector<32xf32> into vector<4x32xf32>
    %z = vector.extract %sh[3] : vector<32xf32> from vector<4x32xf32>
    %z2 = arith.addf %z, %z : vector<32xf32>
    %sh3 = vector.insert %z2, %sh2 [3] : vector<32xf32> into vector<4x32xf32>
    %w2 = vector.insert_strided_slice %sh3, %w1 {offsets = [12, 0], strides = [1, 1]} : vector<4x32xf32> into vector<16x32xf32>
    %u = xetile.init_tile %B[0, 0] : memref<16x32xf32> -> !xetile.tile<16x32xf32>
    xetile.store_tile %w2, %u : vector<16x32xf32>, !xetile.tile<16x32xf32>
    gpu.return
  }
}

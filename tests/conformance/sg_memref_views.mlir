// subview, reinterpret_cast, cast, dim, collapse_shape, expand_shape, extract_strided_metadata under tiles.
// launch: k (1) (1)
// A: 4x16x16 f32 integers
// B: 64x16 f32 zeros
// n: 3
// expect B = np.concatenate([A[3], A[1, 8:], A[1, :8], A[0] + A[2], np.zeros((16, 16)) + 16 + 4 + A[0, 0, 1]])
gpu.module @m {
  gpu.func @k(%A: memref<4x16x16xf32>, %B: memref<64x16xf32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %s3 = memref.subview %A[%n, 0, 0] [1, 16, 16] [1, 1, 1] : memref<4x16x16xf32> to memref<16x16xf32, strided<[16, 1], offset: ?>>
    %t0 = xetile.init_tile %s3[0, 0] : memref<16x16xf32, strided<[16, 1], offset: ?>> -> !xetile.tile<16x16xf32>
    %v0 = xetile.load_tile %t0 : !xetile.tile<16x16xf32> -> vector<16x16xf32>
    %u0 = xetile.init_tile %B[0, 0] : memref<64x16xf32> -> !xetile.tile<16x16xf32>
    xetile.store_tile %v0, %u0 : vector<16x16xf32>, !xetile.tile<16x16xf32>
    %flat = memref.collapse_shape %A [[0, 1], [2]] : memref<4x16x16xf32> into memref<64x16xf32>
    %t1 = xetile.init_tile %flat[24, 0] : memref<64x16xf32> -> !xetile.tile<8x16xf32>
    %v1 = xetile.load_tile %t1 : !xetile.tile<8x16xf32> -> vector<8x16xf32>
    %t2 = xetile.update_tile_offset %t1, [-8, 0] : !xetile.tile<8x16xf32>
    %v2 = xetile.load_tile %t2 : !xetile.tile<8x16xf32> -> vector<8x16xf32>
    %low = memref.subview %B[16, 0] [16, 16] [1, 1] : memref<64x16xf32> to memref<16x16xf32, strided<[16, 1], offset: 256>>
    %u1 = xetile.init_tile %low[0, 0] : memref<16x16xf32, strided<[16, 1], offset: 256>> -> !xetile.tile<8x16xf32>
    %u2 = xetile.update_tile_offset %u1, [8, 0] : !xetile.tile<8x16xf32>
    xetile.store_tile %v1, %u1 : vector<8x16xf32>, !xetile.tile<8x16xf32>
    xetile.store_tile %v2, %u2 : vector<8x16xf32>, !xetile.tile<8x16xf32>
    %four = memref.expand_shape %flat [[0, 1], [2]] output_shape [4, 16, 16] : memref<64x16xf32> into memref<4x16x16xf32>
    %t3 = xetile.init_tile %four[0, 0, 0] : memref<4x16x16xf32> -> !xetile.tile<16x16xf32>
    %v3 = xetile.load_tile %t3 : !xetile.tile<16x16xf32> -> vector<16x16xf32>
    %r = memref.reinterpret_cast %A to offset: [512], sizes: [16, 16], strides: [16, 1] : memref<4x16x16xf32> to memref<16x16xf32, strided<[16, 1], offset: 512>>
    %t4 = xetile.init_tile %r[0, 0] : memref<16x16xf32, strided<[16, 1], offset: 512>> -> !xetile.tile<16x16xf32>
    %v4 = xetile.load_tile %t4 : !xetile.tile<16x16xf32> -> vector<16x16xf32>
    %v5 = arith.addf %v3, %v4 : vector<16x16xf32>
    %any = memref.cast %B : memref<64x16xf32> to memref<?x16xf32>
    %rows = memref.dim %any, %c0 : memref<?x16xf32>
    %u3 = xetile.init_tile %any[32, 0], [%rows, 16], [16, 1] : memref<?x16xf32> -> !xetile.tile<16x16xf32>
    xetile.store_tile %v5, %u3 : vector<16x16xf32>, !xetile.tile<16x16xf32>
    %base, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %B : memref<64x16xf32> -> memref<f32>, index, index, index, index, index
    %d = memref.dim %A, %c0 : memref<4x16x16xf32>
    %sum = arith.addi %strides#0, %d : index
    %si = arith.index_cast %sum : index to i32
    %sf = arith.sitofp %si : i32 to f32
    %one = memref.load %A[%c0, %c0, %c1] : memref<4x16x16xf32>
    %all = arith.addf %sf, %one : f32
    %v6 = vector.broadcast %all : f32 to vector<16x16xf32>
    %u4 = xetile.init_tile %B[48, 0] : memref<64x16xf32> -> !xetile.tile<16x16xf32>
    xetile.store_tile %v6, %u4 : vector<16x16xf32>, !xetile.tile<16x16xf32>
    gpu.return
  }
}

// memref.transpose of shared memory: stored row major, read as its transpose (order [0, 1]).
// launch: k (1) (2, 1, 1)
// A: 16x32 f32 integers
// B: 32x16 f32 zeros
// expect B = A.T
gpu.module @m {
  gpu.func @k(%A: memref<16x32xf32>, %B: memref<32x16xf32>) kernel attributes {known_block_size = array<i32: 2, 1, 1>} {
    %c16 = arith.constant 16 : index
    %sg = gpu.thread_id x
    %at = arith.muli %sg, %c16 : index
    %slm = memref.alloc() : memref<16x32xf32, 3>
    %tr = memref.transpose %slm (i, j) -> (j, i) : memref<16x32xf32, 3> to memref<32x16xf32, strided<[1, 32]>, 3>
    %ta = xetile.init_tile %A[0, %at] : memref<16x32xf32> -> !xetile.tile<16x16xf32>
    %v = xetile.load_tile %ta : !xetile.tile<16x16xf32> -> vector<16x16xf32>
    %ts = xetile.init_tile %slm[0, %at] : memref<16x32xf32, 3> -> !xetile.tile<16x16xf32, #xetile.tile_attr<memory_space = 3 : i64>>
    xetile.store_tile %v, %ts : vector<16x16xf32>, !xetile.tile<16x16xf32, #xetile.tile_attr<memory_space = 3 : i64>>
    gpu.barrier
    %tt = xetile.init_tile %tr[%at, 0] : memref<32x16xf32, strided<[1, 32]>, 3> -> !xetile.tile<16x16xf32, #xetile.tile_attr<memory_space = 3, order = [0, 1]>>
    %w = xetile.load_tile %tt : !xetile.tile<16x16xf32, #xetile.tile_attr<order = [0, 1], memory_space = 3>> -> vector<16x16xf32>
    %tb = xetile.init_tile %B[%at, 0] : memref<32x16xf32> -> !xetile.tile<16x16xf32>
    xetile.store_tile %w, %tb : vector<16x16xf32>, !xetile.tile<16x16xf32>
    gpu.return
  }
}

// Four subgroups stage rows through shared memory: alloc of bytes, a view, a barrier.
// launch: k (1) (4, 1, 1)
// A: 32x32 f16 integers
// B: 32x32 f16 zeros
// expect B = A[::-1].reshape(4, 8, 32)[:, ::-1].reshape(32, 32)
gpu.module @m {
  gpu.func @k(%A: memref<32x32xf16>, %B: memref<32x32xf16>) kernel attributes {VectorComputeFunctionINTEL, known_block_size = array<i32: 4, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c24 = arith.constant 24 : index
    %sg = gpu.subgroup_id : index
    %row = arith.muli %sg, %c8 : index
    %back = arith.subi %c24, %row : index
    %bytes = memref.alloc() : memref<2048xi8, 3>
    %slm = memref.view %bytes[%c0][] : memref<2048xi8, 3> to memref<32x32xf16, 3>
    %ta = xetile.init_tile %A[%row, 0] : memref<32x32xf16> -> !xetile.tile<8x32xf16>
    %v = xetile.load_tile %ta : !xetile.tile<8x32xf16> -> vector<8x32xf16>
    %ts = xetile.init_tile %slm[%row, 0] : memref<32x32xf16, 3> -> !xetile.tile<8x32xf16, #xetile.tile_attr<memory_space = 3 : i32>>
    xetile.store_tile %v, %ts : vector<8x32xf16>, !xetile.tile<8x32xf16, #xetile.tile_attr<memory_space = 3 : i64>>
    gpu.barrier
    %tr = xetile.init_tile %slm[%back, 0] : memref<32x32xf16, 3> -> !xetile.tile<8x32xf16, #xetile.tile_attr<memory_space = 3>>
    %w = xetile.load_tile %tr : !xetile.tile<8x32xf16, #xetile.tile_attr<memory_space = 3>> -> vector<8x32xf16>
    %tb = xetile.init_tile %B[%row, 0] : memref<32x32xf16> -> !xetile.tile<8x32xf16>
    xetile.store_tile %w, %tb : vector<8x32xf16>, !xetile.tile<8x32xf16>
    gpu.return
  }
}

// One subgroup stores and only arrives; the others only wait.
// launch: k (2) (4, 1, 1)
// A: 2x64 f32 integers
// B: 6x64 f32 zeros
// expect B = np.concatenate([np.stack([A[b] * s for s in (1, 2, 3)]) for b in range(2)])
gpu.module @m {
  gpu.func @k(%A: memref<2x64xf32>, %B: memref<6x64xf32>) kernel attributes {known_block_size = array<i32: 4, 1, 1>} {
    xegpu.alloc_nbarrier 2
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %i1 = arith.constant 1 : i8
    %i4 = arith.constant 4 : i8
    %bar = xegpu.init_nbarrier %i1, %i4 : i8, i8 -> !xegpu.nbarrier
    %b = gpu.block_id x
    %sg = gpu.thread_id x
    %slm = memref.alloc() : memref<1x64xf32, 3>
    %ts = xetile.init_tile %slm[0, 0] : memref<1x64xf32, 3> -> !xetile.tile<1x64xf32, #xetile.tile_attr<memory_space = 3 : i64>>
    %first = arith.cmpi eq, %sg, %c0 : index
    scf.if %first {
      %ta = xetile.init_tile %A[%b, 0] : memref<2x64xf32> -> !xetile.tile<1x64xf32>
      %v = xetile.load_tile %ta : !xetile.tile<1x64xf32> -> vector<1x64xf32>
      xetile.store_tile %v, %ts : vector<1x64xf32>, !xetile.tile<1x64xf32, #xetile.tile_attr<memory_space = 3 : i64>>
      xegpu.nbarrier_arrive %bar : !xegpu.nbarrier
    } else {
      xegpu.nbarrier_arrive %bar : !xegpu.nbarrier
      xegpu.nbarrier_wait %bar : !xegpu.nbarrier
      %v = xetile.load_tile %ts : !xetile.tile<1x64xf32, #xetile.tile_attr<memory_space = 3 : i64>> -> vector<1x64xf32>
      %i = arith.index_cast %sg : index to i32
      %f = arith.sitofp %i : i32 to f32
      %fv = vector.broadcast %f : f32 to vector<1x64xf32>
      %w = arith.mulf %v, %fv : vector<1x64xf32>
      %base = arith.muli %b, %c3 : index
      %less = arith.subi %sg, %c1 : index
      %row = arith.addi %base, %less : index
      %tb = xetile.init_tile %B[%row, 0] : memref<6x64xf32> -> !xetile.tile<1x64xf32>
      xetile.store_tile %w, %tb : vector<1x64xf32>, !xetile.tile<1x64xf32>
    }
    gpu.return
  }
}

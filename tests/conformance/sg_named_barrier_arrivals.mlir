// Two of four subgroups bring rows, two take them: some arrive only, others wait only.
// launch: k (1) (4, 1, 1)
// A: 2x32 f32 integers
// B: 2x32 f32 zeros
// expect B = A * 10
gpu.module @m {
  gpu.func @k(%A: memref<2x32xf32>, %B: memref<2x32xf32>) kernel attributes {known_block_size = array<i32: 4, 1, 1>} {
    xegpu.alloc_nbarrier 1
    %c2 = arith.constant 2 : index
    %i0 = arith.constant 0 : i8
    %i4 = arith.constant 4 : i8
    %bar = xegpu.init_nbarrier %i0, %i4 : i8, i8 -> !xegpu.nbarrier
    %sg = gpu.subgroup_id : index
    %slm = memref.alloc() : memref<2x32xf32, 3>
    %brings = arith.cmpi ult, %sg, %c2 : index
    scf.if %brings {
      %ta = xetile.init_tile %A[%sg, 0] : memref<2x32xf32> -> !xetile.tile<1x32xf32>
      %v = xetile.load_tile %ta : !xetile.tile<1x32xf32> -> vector<1x32xf32>
      %ts = xetile.init_tile %slm[%sg, 0] : memref<2x32xf32, 3> -> !xetile.tile<1x32xf32, #xetile.tile_attr<memory_space = 3>>
      xetile.store_tile %v, %ts : vector<1x32xf32>, !xetile.tile<1x32xf32, #xetile.tile_attr<memory_space = 3>>
    }
    xegpu.nbarrier_arrive %bar : !xegpu.nbarrier
    %takes = arith.cmpi uge, %sg, %c2 : index
    scf.if %takes {
      xegpu.nbarrier_wait %bar : !xegpu.nbarrier
      %row = arith.subi %sg, %c2 : index
      %ts = xetile.init_tile %slm[%row, 0] : memref<2x32xf32, 3> -> !xetile.tile<1x32xf32, #xetile.tile_attr<memory_space = 3>>
      %v = xetile.load_tile %ts : !xetile.tile<1x32xf32, #xetile.tile_attr<memory_space = 3>> -> vector<1x32xf32>
      %ten = arith.constant dense<10.0> : vector<1x32xf32>
      %w = arith.mulf %v, %ten : vector<1x32xf32>
      %tb = xetile.init_tile %B[%row, 0] : memref<2x32xf32> -> !xetile.tile<1x32xf32>
      xetile.store_tile %w, %tb : vector<1x32xf32>, !xetile.tile<1x32xf32>
    }
    gpu.return
  }
}

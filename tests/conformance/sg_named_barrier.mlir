// Two producers and two consumers meet at named barriers.
// launch: k (1) (4, 1, 1)
// A: 2x32 f32 integers
// B: 2x32 f32 zeros
// expect B = 2 * A[::-1]
gpu.module @m {
  gpu.func @k(%A: memref<2x32xf32>, %B: memref<2x32xf32>) kernel attributes {VectorComputeFunctionINTEL, known_block_size = array<i32: 4, 1, 1>} {
    xegpu.alloc_nbarrier 8
    %id1 = arith.constant 1 : i8
    %n = arith.constant 4 : i8
    %nb = xegpu.init_nbarrier %id1, %n : i8, i8 -> !xegpu.nbarrier
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %sg = gpu.subgroup_id : index
    %slm = memref.alloc() : memref<2x32xf32, 3>
    %producer = arith.cmpi ult, %sg, %c2 : index
    scf.if %producer {
      %ta = xetile.init_tile %A[%sg, 0] : memref<2x32xf32> -> !xetile.tile<1x32xf32>
      %v = xetile.load_tile %ta : !xetile.tile<1x32xf32> -> vector<1x32xf32>
      %w = arith.addf %v, %v : vector<1x32xf32>
      %ts = xetile.init_tile %slm[%sg, 0] : memref<2x32xf32, 3> -> !xetile.tile<1x32xf32, #xetile.tile_attr<memory_space = 3>>
      xetile.store_tile %w, %ts : vector<1x32xf32>, !xetile.tile<1x32xf32, #xetile.tile_attr<memory_space = 3>>
    }
    xegpu.nbarrier_arrive %nb : !xegpu.nbarrier
    xegpu.nbarrier_wait %nb : !xegpu.nbarrier
    %consumer = arith.cmpi uge, %sg, %c2 : index
    scf.if %consumer {
      %from = arith.subi %c3, %sg : index
      %to = arith.subi %sg, %c2 : index
      %ts = xetile.init_tile %slm[%from, 0] : memref<2x32xf32, 3> -> !xetile.tile<1x32xf32, #xetile.tile_attr<memory_space = 3>>
      %v = xetile.load_tile %ts : !xetile.tile<1x32xf32, #xetile.tile_attr<memory_space = 3>> -> vector<1x32xf32>
      %tb = xetile.init_tile %B[%to, 0] : memref<2x32xf32> -> !xetile.tile<1x32xf32>
      xetile.store_tile %v, %tb : vector<1x32xf32>, !xetile.tile<1x32xf32>
    }
    gpu.return
  }
}

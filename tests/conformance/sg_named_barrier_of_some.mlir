// Two pairs of subgroups exchange rows at barriers of their own, in branches of their own.
// launch: k (1) (4, 1, 1)
// A: 4x32 f32 integers
// B: 4x32 f32 zeros
// expect B = A + A.reshape(2, 2, 32)[:, ::-1].reshape(4, 32)
gpu.module @m {
  gpu.func @k(%A: memref<4x32xf32>, %B: memref<4x32xf32>) kernel attributes {VectorComputeFunctionINTEL, known_block_size = array<i32: 4, 1, 1>} {
    xegpu.alloc_nbarrier 3
    %id1 = arith.constant 1 : i8
    %id2 = arith.constant 2 : i8
    %n = arith.constant 2 : i8
    %left = xegpu.init_nbarrier %id1, %n : i8, i8 -> !xegpu.nbarrier
    %right = xegpu.init_nbarrier %id2, %n : i8, i8 -> !xegpu.nbarrier
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %sg = gpu.subgroup_id : index
    %beside = arith.xori %sg, %c1 : index
    %slm = memref.alloc() : memref<4x32xf32, 3>
    %ta = xetile.init_tile %A[%sg, 0] : memref<4x32xf32> -> !xetile.tile<1x32xf32>
    %v = xetile.load_tile %ta : !xetile.tile<1x32xf32> -> vector<1x32xf32>
    %is_right = arith.cmpi uge, %sg, %c2 : index
    %sum = scf.if %is_right -> (vector<1x32xf32>) {
      %ts = xetile.init_tile %slm[%sg, 0] : memref<4x32xf32, 3> -> !xetile.tile<1x32xf32, #xetile.tile_attr<memory_space = 3>>
      xetile.store_tile %v, %ts : vector<1x32xf32>, !xetile.tile<1x32xf32, #xetile.tile_attr<memory_space = 3>>
      xegpu.nbarrier_arrive %right : !xegpu.nbarrier
      xegpu.nbarrier_wait %right : !xegpu.nbarrier
      %to = xetile.init_tile %slm[%beside, 0] : memref<4x32xf32, 3> -> !xetile.tile<1x32xf32, #xetile.tile_attr<memory_space = 3>>
      %w = xetile.load_tile %to : !xetile.tile<1x32xf32, #xetile.tile_attr<memory_space = 3>> -> vector<1x32xf32>
      %s = arith.addf %v, %w : vector<1x32xf32>
      scf.yield %s : vector<1x32xf32>
    } else {
      %ts = xetile.init_tile %slm[%sg, 0] : memref<4x32xf32, 3> -> !xetile.tile<1x32xf32, #xetile.tile_attr<memory_space = 3>>
      xetile.store_tile %v, %ts : vector<1x32xf32>, !xetile.tile<1x32xf32, #xetile.tile_attr<memory_space = 3>>
      xegpu.nbarrier_arrive %left : !xegpu.nbarrier
      xegpu.nbarrier_wait %left : !xegpu.nbarrier
      %to = xetile.init_tile %slm[%beside, 0] : memref<4x32xf32, 3> -> !xetile.tile<1x32xf32, #xetile.tile_attr<memory_space = 3>>
      %w = xetile.load_tile %to : !xetile.tile<1x32xf32, #xetile.tile_attr<memory_space = 3>> -> vector<1x32xf32>
      %s = arith.addf %w, %v : vector<1x32xf32>
      scf.yield %s : vector<1x32xf32>
    }
    %tb = xetile.init_tile %B[%sg, 0] : memref<4x32xf32> -> !xetile.tile<1x32xf32>
    xetile.store_tile %sum, %tb : vector<1x32xf32>, !xetile.tile<1x32xf32>
    gpu.return
  }
}

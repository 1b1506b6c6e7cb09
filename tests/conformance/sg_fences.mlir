// The workgroup that counts to the end adds what all have written: fences keep the order.
// launch: k (8) (2, 1, 1)
// A: 16x32 f32 integers
// P: 16x32 f32 zeros
// N: 1 i32 zeros
// B: 1x32 f32 zeros
// expect P = A + A
// expect N = np.array([16])
// expect B = (2 * A).sum(0, keepdims=True)
gpu.module @m {
  gpu.func @k(%A: memref<16x32xf32>, %P: memref<16x32xf32>, %N: memref<1xi32>, %B: memref<1x32xf32>) kernel attributes {VectorComputeFunctionINTEL, known_block_size = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %one = arith.constant 1 : i32
    %last = arith.constant 15 : i32
    %x = gpu.block_id x
    %sg = gpu.subgroup_id : index
    %first = arith.muli %x, %c2 : index
    %row = arith.addi %first, %sg : index
    %ta = xetile.init_tile %A[%row, 0] : memref<16x32xf32> -> !xetile.tile<1x32xf32>
    %v = xetile.load_tile %ta : !xetile.tile<1x32xf32> -> vector<1x32xf32>
    %w = arith.addf %v, %v : vector<1x32xf32>
    %tp = xetile.init_tile %P[%row, 0] : memref<16x32xf32> -> !xetile.tile<1x32xf32>
    xetile.store_tile %w, %tp : vector<1x32xf32>, !xetile.tile<1x32xf32>
    xegpu.fence memory_kind = global, fence_scope = gpu
    %before = memref.atomic_rmw addi %one, %N[%c0] : (i32, memref<1xi32>) -> i32
    xegpu.fence memory_kind = global, fence_scope = gpu
    xegpu.fence memory_kind = slm, fence_scope = workgroup
    %is_last = arith.cmpi eq, %before, %last : i32
    scf.if %is_last {
      %all = xetile.init_tile %P[0, 0] : memref<16x32xf32> -> !xetile.tile<16x32xf32>
      %m = xetile.load_tile %all : !xetile.tile<16x32xf32> -> vector<16x32xf32>
      %s = xetile.reduction <add>, %m [0] : vector<16x32xf32> -> vector<1x32xf32>
      %tb = xetile.init_tile %B[0, 0] : memref<1x32xf32> -> !xetile.tile<1x32xf32>
      xetile.store_tile %s, %tb : vector<1x32xf32>, !xetile.tile<1x32xf32>
    }
    gpu.return
  }
}

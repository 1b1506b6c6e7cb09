// Atomic operations on block tiles; kinds bare, quoted and bracketed; both names.
// launch: k (4) (1)
// A: 8x16 f32 zeros
// I: 8x16 i32 zeros
// M: 8x16 f32 integers
// O: 8x16 i32 zeros
// expect A = 4 * np.ones((8, 16))
// expect I = 6 * np.ones((8, 16))
// expect M = np.maximum(M, 1)
// expect O = 15 * np.ones((8, 16))
gpu.module @m {
  gpu.func @k(%A: memref<8x16xf32>, %I: memref<8x16xi32>, %M: memref<8x16xf32>, %O: memref<8x16xi32>) kernel {
    %one = arith.constant dense<1.0> : vector<8x16xf32>
    %x = gpu.block_id x
    %xi = arith.index_cast %x : index to i32
    %xv = vector.broadcast %xi : i32 to vector<8x16xi32>
    %c1 = arith.constant dense<1> : vector<8x16xi32>
    %bit = arith.shli %c1, %xv : vector<8x16xi32>
    %ta = xetile.init_tile %A[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
    %ti = xetile.init_tile %I[0, 0] : memref<8x16xi32> -> !xetile.tile<8x16xi32>
    %tm = xetile.init_tile %M[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
    %to = xetile.init_tile %O[0, 0] : memref<8x16xi32> -> !xetile.tile<8x16xi32>
    %0 = xetile.atomic_rmw addf %one, %ta : vector<8x16xf32>, !xetile.tile<8x16xf32> -> vector<8x16xf32>
    %1 = xetile.atomic_rmw "addi" %xv, %ti : vector<8x16xi32>, !xetile.tile<8x16xi32> -> vector<8x16xi32>
    %2 = xetile.atomic_rmw <maximumf>, %one, %tm : vector<8x16xf32>, !xetile.tile<8x16xf32> -> vector<8x16xf32>
    %3 = xetile.atomic_rmw_tile <ori> %bit, %to : vector<8x16xi32>, !xetile.tile<8x16xi32> -> vector<8x16xi32>
    gpu.return
  }
}

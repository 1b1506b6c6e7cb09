// Subgroups bring parts of A and B to shared memory, all multiply from there.
// launch: k (2) (2, 2, 1)
// A: 64x64 f16 integers
// B: 64x32 f16 integers
// C: 64x32 f32 zeros
// expect C = A @ B
gpu.module @kern attributes {spirv.target_env = #spirv.target_env<#spirv.vce<v1.4, [Kernel], []>, api=OpenCL, #spirv.resource_limits<>>} {
  gpu.func @k(%A: memref<64x64xf16>, %B: memref<64x32xf16>, %C: memref<64x32xf32>) kernel attributes {VectorComputeFunctionINTEL, gpu.known_block_size = array<i32: 2, 2, 1>, gpu.known_grid_size = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %bx = gpu.block_id x
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %m0 = arith.muli %bx, %c32 : index
    %i = arith.muli %ty, %c16 : index
    %j = arith.muli %tx, %c16 : index
    %slm_a = memref.alloc() : memref<32x32xf16, 3>
    %slm_b = memref.alloc() : memref<32x32xf16, 3>
    %mi = arith.addi %m0, %i : index
    %zero = arith.constant dense<0.0> : vector<16x16xf32>
    %sa = xetile.init_tile %slm_a[%i, %j] : memref<32x32xf16, 3> -> !xetile.tile<16x16xf16, #xetile.tile_attr<memory_space = 3>>
    %sb = xetile.init_tile %slm_b[%i, %j] : memref<32x32xf16, 3> -> !xetile.tile<16x16xf16, #xetile.tile_attr<memory_space = 3>>
    %ra = xetile.init_tile %slm_a[%i, 0] : memref<32x32xf16, 3> -> !xetile.tile<16x32xf16, #xetile.tile_attr<memory_space = 3>>
    %rb = xetile.init_tile %slm_b[0, %j] : memref<32x32xf16, 3> -> !xetile.tile<32x16xf16, #xetile.tile_attr<memory_space = 3>>
    %r = scf.for %k = %c0 to %c64 step %c32 iter_args(%acc = %zero) -> (vector<16x16xf32>) {
      %kj = arith.addi %k, %j : index
      %ki = arith.addi %k, %i : index
      %ga = xetile.init_tile %A[%mi, %kj] : memref<64x64xf16> -> !xetile.tile<16x16xf16>
      %gb = xetile.init_tile %B[%ki, %j] : memref<64x32xf16> -> !xetile.tile<16x16xf16>
      %va = xetile.load_tile %ga : !xetile.tile<16x16xf16> -> vector<16x16xf16>
      %vb = xetile.load_tile %gb : !xetile.tile<16x16xf16> -> vector<16x16xf16>
      gpu.barrier
      xetile.store_tile %va, %sa : vector<16x16xf16>, !xetile.tile<16x16xf16, #xetile.tile_attr<memory_space = 3>>
      xetile.store_tile %vb, %sb : vector<16x16xf16>, !xetile.tile<16x16xf16, #xetile.tile_attr<memory_space = 3>>
      gpu.barrier
      %wa = xetile.load_tile %ra : !xetile.tile<16x32xf16, #xetile.tile_attr<memory_space = 3>> -> vector<16x32xf16>
      %wb = xetile.load_tile %rb : !xetile.tile<32x16xf16, #xetile.tile_attr<memory_space = 3>> -> vector<32x16xf16>
      %d = xetile.tile_mma %wa, %wb, %acc : vector<16x32xf16>, vector<32x16xf16>, vector<16x16xf32> -> vector<16x16xf32>
      scf.yield %d : vector<16x16xf32>
    }
    %tc = xetile.init_tile %C[%mi, %j] : memref<64x32xf32> -> !xetile.tile<16x16xf32>
    xetile.store_tile %r, %tc : vector<16x16xf32>, !xetile.tile<16x16xf32>
    gpu.return
  }
}

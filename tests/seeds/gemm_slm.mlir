// RUN: xetl-opt %s | filecheck %s
// RFC, appendix 2.4: cooperative loads through shared memory, 64x64 of K = 128, with
// two stages instead of four.
// Corrected: the document makes shared tiles of the global arrays, stores values of
// the wrong shape and assigns variables twice; here shared memory is allocated, its
// stages stand side by side, and the loop carries what changes. There is a barrier
// before a stage is written again as well as after.

#mp_a     = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>
#mp_a_cop = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 32]>
#mp_b     = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>
#mp_b_cop = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 32]>
#mp_c     = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>
#a_slm = #xetile.tile_attr<wg_map = #mp_a, memory_space = 3>
#a_cop = #xetile.tile_attr<wg_map = #mp_a_cop, memory_space = 3>
#b_slm = #xetile.tile_attr<wg_map = #mp_b, memory_space = 3>
#b_cop = #xetile.tile_attr<wg_map = #mp_b_cop, memory_space = 3>

gpu.module @seeds {
  // CHECK: gpu.func @test_gemm
  gpu.func @test_gemm(%a: memref<64x128xf16>, %b: memref<128x64xf16>, %c: memref<64x64xf32>) kernel attributes {VectorComputeFunctionINTEL, spirv.entry_point_abi = #spirv.entry_point_abi<>, known_block_size = array<i32: 4, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant dense<0.0> : vector<64x64xf32>
    %sa = memref.alloc() : memref<64x64xf16, 3>
    %sb = memref.alloc() : memref<64x64xf16, 3>
    %ga = xetile.init_tile %a[0, 0] : memref<64x128xf16> -> !xetile.tile<64x32xf16, #mp_a_cop>
    %gb = xetile.init_tile %b[0, 0] : memref<128x64xf16> -> !xetile.tile<32x64xf16, #mp_b_cop>
    %a1 = xetile.load_tile %ga : !xetile.tile<64x32xf16, #mp_a_cop> -> vector<64x32xf16>
    %b1 = xetile.load_tile %gb : !xetile.tile<32x64xf16, #mp_b_cop> -> vector<32x64xf16>
    %ca = xetile.init_tile %sa[0, 0] : memref<64x64xf16, 3> -> !xetile.tile<64x32xf16, #a_cop>
    %cb = xetile.init_tile %sb[0, 0] : memref<64x64xf16, 3> -> !xetile.tile<32x64xf16, #b_cop>
    xetile.store_tile %a1, %ca : vector<64x32xf16>, !xetile.tile<64x32xf16, #a_cop>
    xetile.store_tile %b1, %cb : vector<32x64xf16>, !xetile.tile<32x64xf16, #b_cop>
    gpu.barrier
    %sum = scf.for %k = %c0 to %c128 step %c32 iter_args(%acc = %zero) -> (vector<64x64xf32>) {
      %ahead = arith.addi %k, %c32 : index
      %na = xetile.init_tile %a[0, %ahead] : memref<64x128xf16> -> !xetile.tile<64x32xf16, #mp_a_cop>
      %nb = xetile.init_tile %b[%ahead, 0] : memref<128x64xf16> -> !xetile.tile<32x64xf16, #mp_b_cop>
      %av = xetile.load_tile %na : !xetile.tile<64x32xf16, #mp_a_cop> -> vector<64x32xf16>
      %bv = xetile.load_tile %nb : !xetile.tile<32x64xf16, #mp_b_cop> -> vector<32x64xf16>
      %here = index.remu %k, %c64
      %there = index.remu %ahead, %c64
      %la = xetile.init_tile %sa[0, %here] : memref<64x64xf16, 3> -> !xetile.tile<64x32xf16, #a_slm>
      %lb = xetile.init_tile %sb[%here, 0] : memref<64x64xf16, 3> -> !xetile.tile<32x64xf16, #b_slm>
      %ar = xetile.load_tile %la : !xetile.tile<64x32xf16, #a_slm> -> vector<64x32xf16>
      %br = xetile.load_tile %lb : !xetile.tile<32x64xf16, #b_slm> -> vector<32x64xf16>
      %next = xetile.tile_mma %ar, %br, %acc {wg_map_a = #mp_a, wg_map_b = #mp_b, wg_map_c = #mp_c} : vector<64x32xf16>, vector<32x64xf16>, vector<64x64xf32> -> vector<64x64xf32>
      gpu.barrier
      %wa = xetile.init_tile %sa[0, %there] : memref<64x64xf16, 3> -> !xetile.tile<64x32xf16, #a_cop>
      %wb = xetile.init_tile %sb[%there, 0] : memref<64x64xf16, 3> -> !xetile.tile<32x64xf16, #b_cop>
      xetile.store_tile %av, %wa : vector<64x32xf16>, !xetile.tile<64x32xf16, #a_cop>
      xetile.store_tile %bv, %wb : vector<32x64xf16>, !xetile.tile<32x64xf16, #b_cop>
      gpu.barrier
      scf.yield %next : vector<64x64xf32>
    }
    %tc = xetile.init_tile %c[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32, #mp_c>
    xetile.store_tile %sum, %tc : vector<64x64xf32>, !xetile.tile<64x64xf32, #mp_c>
    gpu.return
  }
}

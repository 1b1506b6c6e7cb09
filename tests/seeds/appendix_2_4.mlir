// RUN: xetl-opt %s | filecheck %s
// XeTile RFC (seed 001), appendix 2.4: cooperative loads through shared memory, four stages.
// Corrected: shared memory is allocated, 256x128 for A and 128x256 for B, and its stages
// stand side by side (the document makes shared tiles of the global arrays); what is stored
// has the shape of its tile; %c is a matrix. Tiles are made once and moved from there by
// %slm_offset, which runs round 0, 32, 64, 96 (the document moves the moved ones on, and
// past the end); three stages ahead of it is where the next is stored. The loop carries what
// changes. One barrier a step is enough: a stage is stored one step after it was read.

#mp_a     = #xetile.wg_map<sg_layout=[8,8], sg_data=[32,32]>
#mp_a_cop = #xetile.wg_map<sg_layout=[64,1], sg_data=[4,32]>
#mp_b     = #xetile.wg_map<sg_layout=[8,8], sg_data=[32,32]>
#mp_b_cop = #xetile.wg_map<sg_layout=[8,8], sg_data=[4,32]>
#mp_c     = #xetile.wg_map<sg_layout=[8,8], sg_data=[32,32]>

#a_slm     = #xetile.tile_attr<wg_map = #mp_a, memory_space = 3>
#a_slm_cop = #xetile.tile_attr<wg_map = #mp_a_cop, memory_space = 3>
#b_slm     = #xetile.tile_attr<wg_map = #mp_b, memory_space = 3>
#b_slm_cop = #xetile.tile_attr<wg_map = #mp_b_cop, memory_space = 3>

// CHECK: func.func @test_gemm
// CHECK: memory_space = 3
// CHECK: gpu.barrier
func.func @test_gemm(%a: memref<4096x4096xf16>, %b: memref<4096x4096xf16>, %c: memref<4096x4096xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c96 = arith.constant 96 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %c4096 = arith.constant 4096 : index
  %zero = arith.constant dense<0.0> : vector<256x256xf32>
  %slm_a = memref.alloc() : memref<256x128xf16, 3>
  %slm_b = memref.alloc() : memref<128x256xf16, 3>
  scf.for %i = %c0 to %c4096 step %c256 {
    scf.for %j = %c0 to %c4096 step %c256 {
      %a1_glb = xetile.init_tile %a[%i, %c0] : memref<4096x4096xf16> -> !xetile.tile<256x32xf16, #mp_a_cop>
      %b1_glb = xetile.init_tile %b[%c0, %j] : memref<4096x4096xf16> -> !xetile.tile<32x256xf16, #mp_b_cop>
      %a2_glb = xetile.init_tile %a[%i, %c32] : memref<4096x4096xf16> -> !xetile.tile<256x32xf16, #mp_a_cop>
      %b2_glb = xetile.init_tile %b[%c32, %j] : memref<4096x4096xf16> -> !xetile.tile<32x256xf16, #mp_b_cop>
      %a3_glb = xetile.init_tile %a[%i, %c64] : memref<4096x4096xf16> -> !xetile.tile<256x32xf16, #mp_a_cop>
      %b3_glb = xetile.init_tile %b[%c64, %j] : memref<4096x4096xf16> -> !xetile.tile<32x256xf16, #mp_b_cop>
      %a4_glb = xetile.init_tile %a[%i, %c96] : memref<4096x4096xf16> -> !xetile.tile<256x32xf16, #mp_a_cop>
      %b4_glb = xetile.init_tile %b[%c96, %j] : memref<4096x4096xf16> -> !xetile.tile<32x256xf16, #mp_b_cop>

      %a1_slm = xetile.init_tile %slm_a[%c0, %c0] : memref<256x128xf16, 3> -> !xetile.tile<256x32xf16, #a_slm_cop>
      %b1_slm = xetile.init_tile %slm_b[%c0, %c0] : memref<128x256xf16, 3> -> !xetile.tile<32x256xf16, #b_slm_cop>
      %a2_slm = xetile.init_tile %slm_a[%c0, %c32] : memref<256x128xf16, 3> -> !xetile.tile<256x32xf16, #a_slm_cop>
      %b2_slm = xetile.init_tile %slm_b[%c32, %c0] : memref<128x256xf16, 3> -> !xetile.tile<32x256xf16, #b_slm_cop>
      %a3_slm = xetile.init_tile %slm_a[%c0, %c64] : memref<256x128xf16, 3> -> !xetile.tile<256x32xf16, #a_slm_cop>
      %b3_slm = xetile.init_tile %slm_b[%c64, %c0] : memref<128x256xf16, 3> -> !xetile.tile<32x256xf16, #b_slm_cop>

      %a1_r = xetile.load_tile %a1_glb : !xetile.tile<256x32xf16, #mp_a_cop> -> vector<256x32xf16>
      %b1_r = xetile.load_tile %b1_glb : !xetile.tile<32x256xf16, #mp_b_cop> -> vector<32x256xf16>
      %a2_r = xetile.load_tile %a2_glb : !xetile.tile<256x32xf16, #mp_a_cop> -> vector<256x32xf16>
      %b2_r = xetile.load_tile %b2_glb : !xetile.tile<32x256xf16, #mp_b_cop> -> vector<32x256xf16>
      %a3_r = xetile.load_tile %a3_glb : !xetile.tile<256x32xf16, #mp_a_cop> -> vector<256x32xf16>
      %b3_r = xetile.load_tile %b3_glb : !xetile.tile<32x256xf16, #mp_b_cop> -> vector<32x256xf16>

      gpu.barrier
      xetile.store_tile %a1_r, %a1_slm : vector<256x32xf16>, !xetile.tile<256x32xf16, #a_slm_cop>
      xetile.store_tile %b1_r, %b1_slm : vector<32x256xf16>, !xetile.tile<32x256xf16, #b_slm_cop>
      xetile.store_tile %a2_r, %a2_slm : vector<256x32xf16>, !xetile.tile<256x32xf16, #a_slm_cop>
      xetile.store_tile %b2_r, %b2_slm : vector<32x256xf16>, !xetile.tile<32x256xf16, #b_slm_cop>
      xetile.store_tile %a3_r, %a3_slm : vector<256x32xf16>, !xetile.tile<256x32xf16, #a_slm_cop>
      xetile.store_tile %b3_r, %b3_slm : vector<32x256xf16>, !xetile.tile<32x256xf16, #b_slm_cop>
      gpu.barrier

      %a1_load = xetile.init_tile %slm_a[%c0, %c0] : memref<256x128xf16, 3> -> !xetile.tile<256x32xf16, #a_slm>
      %b1_load = xetile.init_tile %slm_b[%c0, %c0] : memref<128x256xf16, 3> -> !xetile.tile<32x256xf16, #b_slm>
      %c_glb = xetile.init_tile %c[%i, %j] : memref<4096x4096xf32> -> !xetile.tile<256x256xf32, #mp_c>

      %r:4 = scf.for %k = %c0 to %c4096 step %c32 iter_args(%a_glb = %a4_glb, %b_glb = %b4_glb, %slm_offset = %c0, %acc = %zero)
          -> (!xetile.tile<256x32xf16, #mp_a_cop>, !xetile.tile<32x256xf16, #mp_b_cop>, index, vector<256x256xf32>) {
        // cooperative load from global
        %a4_r = xetile.load_tile %a_glb : !xetile.tile<256x32xf16, #mp_a_cop> -> vector<256x32xf16>
        %b4_r = xetile.load_tile %b_glb : !xetile.tile<32x256xf16, #mp_b_cop> -> vector<32x256xf16>

        // load from slm
        %a_here = xetile.update_tile_offset %a1_load, [%c0, %slm_offset] : !xetile.tile<256x32xf16, #a_slm>
        %b_here = xetile.update_tile_offset %b1_load, [%slm_offset, %c0] : !xetile.tile<32x256xf16, #b_slm>
        %a1_rr = xetile.load_tile %a_here : !xetile.tile<256x32xf16, #a_slm> -> vector<256x32xf16>
        %b1_rr = xetile.load_tile %b_here : !xetile.tile<32x256xf16, #b_slm> -> vector<32x256xf16>

        %on = arith.addi %slm_offset, %c32 : index
        %next = arith.remui %on, %c128 : index
        %ahead = arith.addi %slm_offset, %c96 : index
        %free = arith.remui %ahead, %c128 : index
        %a_next = xetile.update_tile_offset %a_glb, [%c0, %c32] : !xetile.tile<256x32xf16, #mp_a_cop>
        %b_next = xetile.update_tile_offset %b_glb, [%c32, %c0] : !xetile.tile<32x256xf16, #mp_b_cop>
        %a4_slm = xetile.update_tile_offset %a1_slm, [%c0, %free] : !xetile.tile<256x32xf16, #a_slm_cop>
        %b4_slm = xetile.update_tile_offset %b1_slm, [%free, %c0] : !xetile.tile<32x256xf16, #b_slm_cop>

        %c_r = xetile.tile_mma %a1_rr, %b1_rr, %acc {wg_map_a = #mp_a, wg_map_b = #mp_b, wg_map_c = #mp_c} : vector<256x32xf16>, vector<32x256xf16>, vector<256x256xf32> -> vector<256x256xf32>

        gpu.barrier

        // cooperative save to slm
        xetile.store_tile %a4_r, %a4_slm : vector<256x32xf16>, !xetile.tile<256x32xf16, #a_slm_cop>
        xetile.store_tile %b4_r, %b4_slm : vector<32x256xf16>, !xetile.tile<32x256xf16, #b_slm_cop>
        scf.yield %a_next, %b_next, %next, %c_r : !xetile.tile<256x32xf16, #mp_a_cop>, !xetile.tile<32x256xf16, #mp_b_cop>, index, vector<256x256xf32>
      }
      xetile.store_tile %r#3, %c_glb : vector<256x256xf32>, !xetile.tile<256x256xf32, #mp_c>
    }
  }
  return
}

// RUN: xetl-opt %s | filecheck %s
// XeTile RFC (seed 001), appendix 2.5: prefetch through two levels of caches.
// Corrected: rows go in steps of 512, the height of a tile; %c is a matrix and its tile has
// another name; the tiles for the second level follow one another (columns 0, 128, 256),
// and so do those for the first (0, 32, 64, 96, 128); tiles of A move by their own maps; `%k %4
// == 0` is every fourth step, k modulo 128; the loop and the branch carry the tiles, the
// loop also the sum; tile_mma takes what was loaded.

#mp_a = #xetile.wg_map<sg_layout=[8,4], sg_data=[64,32]>
#mp_b = #xetile.wg_map<sg_layout=[8,4], sg_data=[32,64]>
#mp_c = #xetile.wg_map<sg_layout=[8,4], sg_data=[64,64]>

#mp_a_copl2 = #xetile.wg_map<sg_layout=[32,1], sg_data=[16,128]>
#mp_b_copl2 = #xetile.wg_map<sg_layout=[16,2], sg_data=[8,128]>

#mp_a_copl1 = #xetile.wg_map<sg_layout=[32,1], sg_data=[16,32]>
#mp_b_copl1 = #xetile.wg_map<sg_layout=[4,8], sg_data=[8,32]>

// CHECK: func.func @test_gemm
// CHECK: xetile.prefetch_tile %{{.*}} locality<2> : !xetile.tile<512x128xf16
// CHECK: xetile.prefetch_tile %{{.*}} locality<3> : !xetile.tile<512x32xf16
func.func @test_gemm(%a: memref<4096x4096xf16>, %b: memref<4096x4096xf16>, %c: memref<4096x4096xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c96 = arith.constant 96 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %c512 = arith.constant 512 : index
  %c4096 = arith.constant 4096 : index
  %zero = arith.constant dense<0.0> : vector<512x256xf32>
  scf.for %i = %c0 to %c4096 step %c512 {
    scf.for %j = %c0 to %c4096 step %c256 {
      %a1_l2 = xetile.init_tile %a[%i, %c0] : memref<4096x4096xf16> -> !xetile.tile<512x128xf16, #mp_a_copl2>
      %b1_l2 = xetile.init_tile %b[%c0, %j] : memref<4096x4096xf16> -> !xetile.tile<128x256xf16, #mp_b_copl2>
      %a2_l2 = xetile.init_tile %a[%i, %c128] : memref<4096x4096xf16> -> !xetile.tile<512x128xf16, #mp_a_copl2>
      %b2_l2 = xetile.init_tile %b[%c128, %j] : memref<4096x4096xf16> -> !xetile.tile<128x256xf16, #mp_b_copl2>
      xetile.prefetch_tile %a1_l2 locality<2> : !xetile.tile<512x128xf16, #mp_a_copl2>
      xetile.prefetch_tile %b1_l2 locality<2> : !xetile.tile<128x256xf16, #mp_b_copl2>
      xetile.prefetch_tile %a2_l2 locality<2> : !xetile.tile<512x128xf16, #mp_a_copl2>
      xetile.prefetch_tile %b2_l2 locality<2> : !xetile.tile<128x256xf16, #mp_b_copl2>
      %a3_l2 = xetile.update_tile_offset %a2_l2, [%c0, %c128] : !xetile.tile<512x128xf16, #mp_a_copl2>
      %b3_l2 = xetile.update_tile_offset %b2_l2, [%c128, %c0] : !xetile.tile<128x256xf16, #mp_b_copl2>

      %a1_l1 = xetile.init_tile %a[%i, %c0] : memref<4096x4096xf16> -> !xetile.tile<512x32xf16, #mp_a_copl1>
      %b1_l1 = xetile.init_tile %b[%c0, %j] : memref<4096x4096xf16> -> !xetile.tile<32x256xf16, #mp_b_copl1>
      %a2_l1 = xetile.init_tile %a[%i, %c32] : memref<4096x4096xf16> -> !xetile.tile<512x32xf16, #mp_a_copl1>
      %b2_l1 = xetile.init_tile %b[%c32, %j] : memref<4096x4096xf16> -> !xetile.tile<32x256xf16, #mp_b_copl1>
      %a3_l1 = xetile.init_tile %a[%i, %c64] : memref<4096x4096xf16> -> !xetile.tile<512x32xf16, #mp_a_copl1>
      %b3_l1 = xetile.init_tile %b[%c64, %j] : memref<4096x4096xf16> -> !xetile.tile<32x256xf16, #mp_b_copl1>
      %a4_l1 = xetile.init_tile %a[%i, %c96] : memref<4096x4096xf16> -> !xetile.tile<512x32xf16, #mp_a_copl1>
      %b4_l1 = xetile.init_tile %b[%c96, %j] : memref<4096x4096xf16> -> !xetile.tile<32x256xf16, #mp_b_copl1>
      xetile.prefetch_tile %a1_l1 locality<3> : !xetile.tile<512x32xf16, #mp_a_copl1>
      xetile.prefetch_tile %b1_l1 locality<3> : !xetile.tile<32x256xf16, #mp_b_copl1>
      xetile.prefetch_tile %a2_l1 locality<3> : !xetile.tile<512x32xf16, #mp_a_copl1>
      xetile.prefetch_tile %b2_l1 locality<3> : !xetile.tile<32x256xf16, #mp_b_copl1>
      xetile.prefetch_tile %a3_l1 locality<3> : !xetile.tile<512x32xf16, #mp_a_copl1>
      xetile.prefetch_tile %b3_l1 locality<3> : !xetile.tile<32x256xf16, #mp_b_copl1>
      xetile.prefetch_tile %a4_l1 locality<3> : !xetile.tile<512x32xf16, #mp_a_copl1>
      xetile.prefetch_tile %b4_l1 locality<3> : !xetile.tile<32x256xf16, #mp_b_copl1>
      %a5_l1 = xetile.update_tile_offset %a4_l1, [%c0, %c32] : !xetile.tile<512x32xf16, #mp_a_copl1>
      %b5_l1 = xetile.update_tile_offset %b4_l1, [%c32, %c0] : !xetile.tile<32x256xf16, #mp_b_copl1>

      %a1_load = xetile.init_tile %a[%i, %c0] : memref<4096x4096xf16> -> !xetile.tile<512x32xf16, #mp_a>
      %b1_load = xetile.init_tile %b[%c0, %j] : memref<4096x4096xf16> -> !xetile.tile<32x256xf16, #mp_b>
      %c_tile = xetile.init_tile %c[%i, %j] : memref<4096x4096xf32> -> !xetile.tile<512x256xf32, #mp_c>

      %r:7 = scf.for %k = %c0 to %c4096 step %c32 iter_args(%al2 = %a3_l2, %bl2 = %b3_l2, %al1 = %a5_l1, %bl1 = %b5_l1, %at = %a1_load, %bt = %b1_load, %acc = %zero)
          -> (!xetile.tile<512x128xf16, #mp_a_copl2>, !xetile.tile<128x256xf16, #mp_b_copl2>, !xetile.tile<512x32xf16, #mp_a_copl1>, !xetile.tile<32x256xf16, #mp_b_copl1>, !xetile.tile<512x32xf16, #mp_a>, !xetile.tile<32x256xf16, #mp_b>, vector<512x256xf32>) {
        %a1_r = xetile.load_tile %at : !xetile.tile<512x32xf16, #mp_a> -> vector<512x32xf16>
        %b1_r = xetile.load_tile %bt : !xetile.tile<32x256xf16, #mp_b> -> vector<32x256xf16>

        %rest = arith.remui %k, %c128 : index
        %fourth = arith.cmpi eq, %rest, %c0 : index
        %l2:2 = scf.if %fourth -> (!xetile.tile<512x128xf16, #mp_a_copl2>, !xetile.tile<128x256xf16, #mp_b_copl2>) {
          gpu.barrier
          xetile.prefetch_tile %al2 locality<2> : !xetile.tile<512x128xf16, #mp_a_copl2>
          xetile.prefetch_tile %bl2 locality<2> : !xetile.tile<128x256xf16, #mp_b_copl2>
          %an = xetile.update_tile_offset %al2, [%c0, %c128] : !xetile.tile<512x128xf16, #mp_a_copl2>
          %bn = xetile.update_tile_offset %bl2, [%c128, %c0] : !xetile.tile<128x256xf16, #mp_b_copl2>
          scf.yield %an, %bn : !xetile.tile<512x128xf16, #mp_a_copl2>, !xetile.tile<128x256xf16, #mp_b_copl2>
        } else {
          scf.yield %al2, %bl2 : !xetile.tile<512x128xf16, #mp_a_copl2>, !xetile.tile<128x256xf16, #mp_b_copl2>
        }
        xetile.prefetch_tile %al1 locality<3> : !xetile.tile<512x32xf16, #mp_a_copl1>
        xetile.prefetch_tile %bl1 locality<3> : !xetile.tile<32x256xf16, #mp_b_copl1>
        %al1n = xetile.update_tile_offset %al1, [%c0, %c32] : !xetile.tile<512x32xf16, #mp_a_copl1>
        %bl1n = xetile.update_tile_offset %bl1, [%c32, %c0] : !xetile.tile<32x256xf16, #mp_b_copl1>

        %a2_load = xetile.update_tile_offset %at, [%c0, %c32] : !xetile.tile<512x32xf16, #mp_a>
        %b2_load = xetile.update_tile_offset %bt, [%c32, %c0] : !xetile.tile<32x256xf16, #mp_b>

        %6 = xetile.tile_mma %a1_r, %b1_r, %acc {wg_map_a = #mp_a, wg_map_b = #mp_b, wg_map_c = #mp_c} : vector<512x32xf16>, vector<32x256xf16>, vector<512x256xf32> -> vector<512x256xf32>
        scf.yield %l2#0, %l2#1, %al1n, %bl1n, %a2_load, %b2_load, %6 : !xetile.tile<512x128xf16, #mp_a_copl2>, !xetile.tile<128x256xf16, #mp_b_copl2>, !xetile.tile<512x32xf16, #mp_a_copl1>, !xetile.tile<32x256xf16, #mp_b_copl1>, !xetile.tile<512x32xf16, #mp_a>, !xetile.tile<32x256xf16, #mp_b>, vector<512x256xf32>
      }
      xetile.store_tile %r#6, %c_tile : vector<512x256xf32>, !xetile.tile<512x256xf32, #mp_c>
    }
  }
  return
}

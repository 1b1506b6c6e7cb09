// RUN: xetl-opt %s | filecheck %s
// RFC, appendix 2.2 (and 2.3: the map of B transposed): transpose, broadcast and
// reduction, 128x128x64 in blocks of 64x64x32.
// Corrected: %2p is no name; the argument is called %bt; rank-1 arrays are given as matrices; the
// bias is f32; the row sums of all column blocks are added up (the document
// overwrites them); the store takes the reduced value.

#mp_a      = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>
#mp_b      = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>
#mp_bt     = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>
#mp_bt_pfh = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 32]>
#mp_c      = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>
#mp_bcast  = #xetile.wg_map<sg_layout = [2, 2], sg_data = [1, 32]>
#mp_reduce = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 1]>
#mp_reduce2 = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>

// CHECK: func.func @test_gemm
// CHECK: xetile.tile_conv_layout
func.func @test_gemm(%a: memref<128x64xf16>, %bt: memref<128x64xf16>, %bcast: memref<1x128xf32>, %res: memref<128x1xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant dense<0.0> : vector<64x64xf32>
  %none = arith.constant dense<0.0> : vector<64x1xf32>
  scf.for %i = %c0 to %c128 step %c64 {
    %3 = xetile.init_tile %res[%i, 0] : memref<128x1xf32> -> !xetile.tile<64x1xf32, #mp_reduce>
    %sum = scf.for %j = %c0 to %c128 step %c64 iter_args(%before = %none) -> (vector<64x1xf32>) {
      %1 = xetile.init_tile %a[%i, %c0] : memref<128x64xf16> -> !xetile.tile<64x32xf16, #mp_a>
      %2 = xetile.init_tile %bt[%j, %c0] : memref<128x64xf16> -> !xetile.tile<64x32xf16, #mp_bt>
      %bp = xetile.init_tile %bt[%j, %c32] : memref<128x64xf16> -> !xetile.tile<64x32xf16, #mp_bt_pfh>
      %7 = xetile.init_tile %bcast[0, %j] : memref<1x128xf32> -> !xetile.tile<1x64xf32, #mp_bcast>
      %r:3 = scf.for %k = %c0 to %c64 step %c32 iter_args(%t1 = %1, %t2 = %2, %acc = %zero)
          -> (!xetile.tile<64x32xf16, #mp_a>, !xetile.tile<64x32xf16, #mp_bt>, vector<64x64xf32>) {
        %4 = xetile.load_tile %t1 : !xetile.tile<64x32xf16, #mp_a> -> vector<64x32xf16>
        %10 = xetile.load_tile %t2 : !xetile.tile<64x32xf16, #mp_bt> -> vector<64x32xf16>
        %5 = xetile.tile_transpose %10, [1, 0] {map = #mp_b} : vector<64x32xf16> -> vector<32x64xf16>
        xetile.prefetch_tile %bp : !xetile.tile<64x32xf16, #mp_bt_pfh>
        %6 = xetile.tile_mma %4, %5, %acc {wg_map_c = #mp_c} : vector<64x32xf16>, vector<32x64xf16>, vector<64x64xf32> -> vector<64x64xf32>
        %n1 = xetile.update_tile_offset %t1, [%c0, %c32] : !xetile.tile<64x32xf16, #mp_a>
        %n2 = xetile.update_tile_offset %t2, [%c0, %c32] : !xetile.tile<64x32xf16, #mp_bt>
        scf.yield %n1, %n2, %6 : !xetile.tile<64x32xf16, #mp_a>, !xetile.tile<64x32xf16, #mp_bt>, vector<64x64xf32>
      }
      %12 = xetile.load_tile %7 : !xetile.tile<1x64xf32, #mp_bcast> -> vector<1x64xf32>
      %13 = xetile.broadcast %12 [0] {map1 = #mp_bcast, map2 = #mp_c} : vector<1x64xf32> -> vector<64x64xf32>
      %14 = arith.addf %r#2, %13 {map = #mp_c} : vector<64x64xf32>
      %15 = xetile.convert_layout %14 {wg_map_result = #mp_reduce2, wg_map_source = #mp_c} : vector<64x64xf32>
      %16 = xetile.reduction <add>, %15 [1] {map1 = #mp_reduce2, map2 = #mp_reduce} : vector<64x64xf32> -> vector<64x1xf32>
      %17 = arith.addf %before, %16 : vector<64x1xf32>
      scf.yield %17 : vector<64x1xf32>
    }
    xetile.store_tile %sum, %3 : vector<64x1xf32>, !xetile.tile<64x1xf32, #mp_reduce>
  }
  return
}

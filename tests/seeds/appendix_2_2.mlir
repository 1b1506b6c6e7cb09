// RUN: xetl-opt %s | filecheck %s
// XeTile RFC (seed 001), appendix 2.2: GEMM with transpose, broadcast and reduction.
// Corrected: `%2p`, `%bcast'` and `%res'` are no names in MLIR; the argument is called %bt;
// a rank-1 array is seen as a matrix by reinterpret_cast, for memref.cast keeps the rank;
// the bias is loaded as f32; the K loop carries the tiles and the sum; prefetched are the
// tiles made for it, and that of B transposed moves along K, too; the row sums of all
// column blocks are added up, for the document's loop stores those of each block over the
// ones before; the store takes the reduced value.

#mp_a     = #xetile.wg_map<sg_layout=[8,4], sg_data=[32,32]>
#mp_a_pfh = #xetile.wg_map<sg_layout=[32,1], sg_data=[8,32]>
#mp_b     = #xetile.wg_map<sg_layout=[8,4], sg_data=[32,64]>
#mp_bt    = #xetile.wg_map<sg_layout=[4,8], sg_data=[64,32]>
#mp_bt_pfh = #xetile.wg_map<sg_layout=[32,1], sg_data=[8,32]>
#mp_c     = #xetile.wg_map<sg_layout=[8,4], sg_data=[32,64]>

#mp_bcast = #xetile.wg_map<sg_layout=[8, 4], sg_data=[1,64]>
#mp_reduce= #xetile.wg_map<sg_layout=[32, 1], sg_data=[8, 1]>
#mp_reduce2= #xetile.wg_map<sg_layout=[32, 1], sg_data=[8, 256]>

// CHECK: func.func @test_gemm
// CHECK: xetile.tile_transpose %{{.*}}, [1, 0] {source_map = #xetile.wg_map<sg_layout = [4, 8], sg_data = [64, 32]>, map = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 64]>}
// CHECK: xetile.tile_conv_layout
func.func @test_gemm(%a: memref<4096x4096xf16>, %bt: memref<4096x4096xf16>, %bcast: memref<4096xf32>, %res: memref<4096xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c192 = arith.constant 192 : index
  %c256 = arith.constant 256 : index
  %c4096 = arith.constant 4096 : index
  %zero = arith.constant dense<0.0> : vector<256x256xf32>
  %none = arith.constant dense<0.0> : vector<256x1xf32>
  %row = memref.reinterpret_cast %bcast to offset: [0], sizes: [1, 4096], strides: [4096, 1] : memref<4096xf32> to memref<1x4096xf32, strided<[4096, 1]>>
  %column = memref.reinterpret_cast %res to offset: [0], sizes: [4096, 1], strides: [1, 1] : memref<4096xf32> to memref<4096x1xf32, strided<[1, 1]>>
  scf.for %i = %c0 to %c4096 step %c256 {
    %3 = xetile.init_tile %column[%i, 0] : memref<4096x1xf32, strided<[1, 1]>> -> !xetile.tile<256x1xf32, #mp_reduce>
    %sums = scf.for %j = %c0 to %c4096 step %c256 iter_args(%before = %none) -> (vector<256x1xf32>) {
      %1 = xetile.init_tile %a[%i, %c0] : memref<4096x4096xf16> -> !xetile.tile<256x32xf16, #mp_a>
      %2 = xetile.init_tile %bt[%j, %c0] : memref<4096x4096xf16> -> !xetile.tile<256x32xf16, #mp_bt>
      %ap = xetile.init_tile %a[%i, %c192] : memref<4096x4096xf16> -> !xetile.tile<256x32xf16, #mp_a_pfh>
      %bp = xetile.init_tile %bt[%j, %c192] : memref<4096x4096xf16> -> !xetile.tile<256x32xf16, #mp_bt_pfh>
      %7 = xetile.init_tile %row[0, %j] : memref<1x4096xf32, strided<[4096, 1]>> -> !xetile.tile<1x256xf32, #mp_bcast>
      %r:5 = scf.for %k = %c0 to %c4096 step %c32 iter_args(%t1 = %1, %t2 = %2, %p1 = %ap, %p2 = %bp, %acc = %zero)
          -> (!xetile.tile<256x32xf16, #mp_a>, !xetile.tile<256x32xf16, #mp_bt>, !xetile.tile<256x32xf16, #mp_a_pfh>, !xetile.tile<256x32xf16, #mp_bt_pfh>, vector<256x256xf32>) {
        %4 = xetile.load_tile %t1 : !xetile.tile<256x32xf16, #mp_a> -> vector<256x32xf16>
        %10 = xetile.load_tile %t2 : !xetile.tile<256x32xf16, #mp_bt> -> vector<256x32xf16>
        %5 = xetile.tile_transpose %10 [1, 0] {source_map = #mp_bt, map = #mp_b} : vector<256x32xf16> -> vector<32x256xf16>
        xetile.prefetch_tile %p1 : !xetile.tile<256x32xf16, #mp_a_pfh>
        xetile.prefetch_tile %p2 : !xetile.tile<256x32xf16, #mp_bt_pfh>
        %6 = xetile.tile_mma %4, %5, %acc {wg_map_a = #mp_a, wg_map_b = #mp_b, wg_map_c = #mp_c} : vector<256x32xf16>, vector<32x256xf16>, vector<256x256xf32> -> vector<256x256xf32>
        %n1 = xetile.update_tile_offset %t1, [%c0, %c32] : !xetile.tile<256x32xf16, #mp_a>
        %n2 = xetile.update_tile_offset %t2, [%c0, %c32] : !xetile.tile<256x32xf16, #mp_bt>
        %q1 = xetile.update_tile_offset %p1, [%c0, %c32] : !xetile.tile<256x32xf16, #mp_a_pfh>
        %q2 = xetile.update_tile_offset %p2, [%c0, %c32] : !xetile.tile<256x32xf16, #mp_bt_pfh>
        scf.yield %n1, %n2, %q1, %q2, %6 : !xetile.tile<256x32xf16, #mp_a>, !xetile.tile<256x32xf16, #mp_bt>, !xetile.tile<256x32xf16, #mp_a_pfh>, !xetile.tile<256x32xf16, #mp_bt_pfh>, vector<256x256xf32>
      }
      %12 = xetile.load_tile %7 : !xetile.tile<1x256xf32, #mp_bcast> -> vector<1x256xf32>
      %13 = xetile.tile_broadcast %12 [0] {source_map = #mp_bcast, map = #mp_c} : vector<1x256xf32> -> vector<256x256xf32>
      %14 = arith.addf %r#4, %13 {map = #mp_c} : vector<256x256xf32>
      %15 = xetile.tile_conv_layout %14 {source_map = #mp_c, map = #mp_reduce2} : vector<256x256xf32>
      %16 = xetile.tile_reduce <add> %15 [1] {source_map = #mp_reduce2, map = #mp_reduce} : vector<256x256xf32> -> vector<256x1xf32>
      %17 = arith.addf %before, %16 {map = #mp_reduce} : vector<256x1xf32>
      scf.yield %17 : vector<256x1xf32>
    }
    xetile.store_tile %sums, %3 : vector<256x1xf32>, !xetile.tile<256x1xf32, #mp_reduce>
  }
  return
}

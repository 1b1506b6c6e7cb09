// RUN: xetl-opt %s | filecheck %s
// XeTile RFC (seed 001), appendix 2.1: simple GEMM with prefetch, at the document's sizes.
// (The tests run it, and those of 2.2 to 2.5, with a smaller number in place of 4096.)
// Corrected: %c is a matrix; `%1p` is no name in MLIR: %ap; the K loop carries the tiles
// and the sum; the operands of tile_mma are the loaded values, with an addend; prefetched
// are the tiles made for it, by their own maps; the moved tile of B is 32x256; the store
// takes the value, then the tile.

#mp_a     = #xetile.wg_map<sg_layout=[8,4], sg_data=[32,32]>
#mp_a_pfh = #xetile.wg_map<sg_layout=[32,1], sg_data=[8,32]>
#mp_b     = #xetile.wg_map<sg_layout=[8,4], sg_data=[32,64]>
#mp_b_pfh = #xetile.wg_map<sg_layout=[4,8], sg_data=[8,32]>
#mp_c     = #xetile.wg_map<sg_layout=[8,4], sg_data=[32,64]>

// CHECK: func.func @test_gemm
// CHECK: xetile.prefetch_tile %{{.*}} : !xetile.tile<32x256xf16, #xetile.tile_attr<wg_map = <sg_layout = [4, 8], sg_data = [8, 32]>>>
func.func @test_gemm(%a: memref<4096x4096xf16>, %b: memref<4096x4096xf16>, %c: memref<4096x4096xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c96 = arith.constant 96 : index
  %c256 = arith.constant 256 : index
  %c4096 = arith.constant 4096 : index
  %zero = arith.constant dense<0.0> : vector<256x256xf32>
  scf.for %i = %c0 to %c4096 step %c256 {
    scf.for %j = %c0 to %c4096 step %c256 {
      %1 = xetile.init_tile %a[%i, %c0] : memref<4096x4096xf16> -> !xetile.tile<256x32xf16, #mp_a>
      %2 = xetile.init_tile %b[%c0, %j] : memref<4096x4096xf16> -> !xetile.tile<32x256xf16, #mp_b>
      %ap = xetile.init_tile %a[%i, %c96] : memref<4096x4096xf16> -> !xetile.tile<256x32xf16, #mp_a_pfh>
      %bp = xetile.init_tile %b[%c96, %j] : memref<4096x4096xf16> -> !xetile.tile<32x256xf16, #mp_b_pfh>
      %3 = xetile.init_tile %c[%i, %j] : memref<4096x4096xf32> -> !xetile.tile<256x256xf32, #mp_c>
      %r:5 = scf.for %k = %c0 to %c4096 step %c32 iter_args(%t1 = %1, %t2 = %2, %p1 = %ap, %p2 = %bp, %acc = %zero)
          -> (!xetile.tile<256x32xf16, #mp_a>, !xetile.tile<32x256xf16, #mp_b>, !xetile.tile<256x32xf16, #mp_a_pfh>, !xetile.tile<32x256xf16, #mp_b_pfh>, vector<256x256xf32>) {
        %4 = xetile.load_tile %t1 : !xetile.tile<256x32xf16, #mp_a> -> vector<256x32xf16>
        %10 = xetile.load_tile %t2 : !xetile.tile<32x256xf16, #mp_b> -> vector<32x256xf16>
        xetile.prefetch_tile %p1 : !xetile.tile<256x32xf16, #mp_a_pfh>
        xetile.prefetch_tile %p2 : !xetile.tile<32x256xf16, #mp_b_pfh>
        %6 = xetile.tile_mma %4, %10, %acc {wg_map_a = #mp_a, wg_map_b = #mp_b, wg_map_c = #mp_c} : vector<256x32xf16>, vector<32x256xf16>, vector<256x256xf32> -> vector<256x256xf32>
        %n1 = xetile.update_tile_offset %t1, [%c0, %c32] : !xetile.tile<256x32xf16, #mp_a>
        %n2 = xetile.update_tile_offset %t2, [%c32, %c0] : !xetile.tile<32x256xf16, #mp_b>
        %q1 = xetile.update_tile_offset %p1, [%c0, %c32] : !xetile.tile<256x32xf16, #mp_a_pfh>
        %q2 = xetile.update_tile_offset %p2, [%c32, %c0] : !xetile.tile<32x256xf16, #mp_b_pfh>
        scf.yield %n1, %n2, %q1, %q2, %6 : !xetile.tile<256x32xf16, #mp_a>, !xetile.tile<32x256xf16, #mp_b>, !xetile.tile<256x32xf16, #mp_a_pfh>, !xetile.tile<32x256xf16, #mp_b_pfh>, vector<256x256xf32>
      }
      xetile.store_tile %r#4, %3 : vector<256x256xf32>, !xetile.tile<256x256xf32, #mp_c>
    }
  }
  return
}

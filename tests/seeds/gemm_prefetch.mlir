// RUN: xetl-opt %s | filecheck %s
// RFC, appendix 2.1: a GEMM with prefetch, 128x128x128 in blocks of 64x64x32.
// Corrected: %c is a matrix; %1p is no name in MLIR; the K loop carries tiles and the accumulator; what is
// prefetched are the prefetch tiles, by their own maps; the store takes the sum.

#mp_a     = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>
#mp_a_pfh = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 32]>
#mp_b     = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>
#mp_b_pfh = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 32]>
#mp_c     = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>

// CHECK: func.func @test_gemm
// CHECK-SAME: xetile.level = "workgroup"
func.func @test_gemm(%a: memref<128x128xf16>, %b: memref<128x128xf16>, %c: memref<128x128xf32>)
    attributes {xetile.level = "workgroup"} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c96 = arith.constant 96 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant {map = #mp_c} dense<0.0> : vector<64x64xf32>
  scf.for %i = %c0 to %c128 step %c64 {
    scf.for %j = %c0 to %c128 step %c64 {
      %1 = xetile.init_tile %a[%i, %c0] : memref<128x128xf16> -> !xetile.tile<64x32xf16, #xetile.tile_attr<wg_map = #mp_a>>
      %2 = xetile.init_tile %b[%c0, %j] : memref<128x128xf16> -> !xetile.tile<32x64xf16, #xetile.tile_attr<wg_map = #mp_b>>
      %ap = xetile.init_tile %a[%i, %c96] : memref<128x128xf16> -> !xetile.tile<64x32xf16, #mp_a_pfh>
      %bp = xetile.init_tile %b[%c96, %j] : memref<128x128xf16> -> !xetile.tile<32x64xf16, #mp_b_pfh>
      %3 = xetile.init_tile %c[%i, %j] : memref<128x128xf32> -> !xetile.tile<64x64xf32, #mp_c>
      %r:5 = scf.for %k = %c0 to %c128 step %c32 iter_args(%t1 = %1, %t2 = %2, %p1 = %ap, %p2 = %bp, %acc = %zero)
          -> (!xetile.tile<64x32xf16, #mp_a>, !xetile.tile<32x64xf16, #mp_b>, !xetile.tile<64x32xf16, #mp_a_pfh>, !xetile.tile<32x64xf16, #mp_b_pfh>, vector<64x64xf32>) {
        %4 = xetile.load_tile %t1 : !xetile.tile<64x32xf16, #mp_a> -> vector<64x32xf16>
        %10 = xetile.load_tile %t2 : !xetile.tile<32x64xf16, #mp_b> -> vector<32x64xf16>
        xetile.prefetch_tile %p1 : !xetile.tile<64x32xf16, #mp_a_pfh>
        xetile.prefetch_tile %p2 : !xetile.tile<32x64xf16, #mp_b_pfh>
        %6 = xetile.tile_mma %4, %10, %acc {wg_map_a = #mp_a, wg_map_b = #mp_b, wg_map_c = #mp_c} : vector<64x32xf16>, vector<32x64xf16>, vector<64x64xf32> -> vector<64x64xf32>
        %n1 = xetile.update_tile_offset %t1, [%c0, %c32] : !xetile.tile<64x32xf16, #mp_a>
        %n2 = xetile.update_tile_offset %t2, [%c32, %c0] : !xetile.tile<32x64xf16, #mp_b>
        %q1 = xetile.update_tile_offset %p1, [%c0, %c32] : !xetile.tile<64x32xf16, #mp_a_pfh>
        %q2 = xetile.update_tile_offset %p2, [%c32, %c0] : !xetile.tile<32x64xf16, #mp_b_pfh>
        scf.yield %n1, %n2, %q1, %q2, %6 : !xetile.tile<64x32xf16, #mp_a>, !xetile.tile<32x64xf16, #mp_b>, !xetile.tile<64x32xf16, #mp_a_pfh>, !xetile.tile<32x64xf16, #mp_b_pfh>, vector<64x64xf32>
      }
      xetile.store_tile %r#4, %3 : vector<64x64xf32>, !xetile.tile<64x64xf32, #mp_c>
    }
  }
  return
}

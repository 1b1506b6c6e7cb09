// RUN: xetl-opt %s -p "raise-to-brgemm{target=amx}" | filecheck %s

!matrix = memref<64x64xbf16>
!tile = !xetile.tile<32x32xbf16>

// What is in C is added behind the product, whose sums start at zero.
// CHECK-LABEL: @accumulates
// CHECK:       %[[C:.*]] = arith.extf
// CHECK:       %[[P:.*]] = xsmm.brgemm.tile
// CHECK-NOT:   plus
// CHECK-NEXT:  %[[S:.*]] = arith.addf %[[P]], %[[C]]
// CHECK-NEXT:  arith.truncf %[[S]]
func.func @accumulates(%A: !matrix, %B: !matrix, %C: !matrix) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %place = xetile.init_tile %C[0, 0] : !matrix -> !tile
  %old = xetile.load_tile %place : !tile -> vector<32x32xbf16>
  %start = arith.extf %old : vector<32x32xbf16> to vector<32x32xf32>
  %sum = scf.for %k = %c0 to %c64 step %c32 iter_args(%acc = %start) -> (vector<32x32xf32>) {
    %a = xetile.init_tile %A[0, %k] : !matrix -> !tile
    %b = xetile.init_tile %B[%k, 0] : !matrix -> !tile
    %x = xetile.load_tile %a : !tile -> vector<32x32xbf16>
    %y = xetile.load_tile %b : !tile -> vector<32x32xbf16>
    %d = xetile.tile_mma %x, %y, %acc : vector<32x32xbf16>, vector<32x32xbf16>, vector<32x32xf32> -> vector<32x32xf32>
    scf.yield %d : vector<32x32xf32>
  }
  %new = arith.truncf %sum : vector<32x32xf32> to vector<32x32xbf16>
  xetile.store_tile %new, %place : vector<32x32xbf16>, !tile
  func.return
}

// RUN: xetl-opt %s -p 'grow-tiles{target=amx}' | filecheck %s
// RUN: xetl-opt %s -p 'grow-tiles{target=avx512}' | filecheck %s --check-prefix=PLAIN

!mat = memref<?x?xbf16, strided<[?, 1]>>

// On tiles of AMX, sums that two stores read are those of a piece of the columns. A stands before the loop, as does
// all that no column decides.
// CHECK-LABEL: @product
// CHECK:       scf.parallel (%x, %y)
// CHECK:         %n = arith.muli %y, %[[STRIDE:.*]] : index
// CHECK-NEXT:    %[[NEXT:.*]] = arith.addi %n, %[[STRIDE]]
// CHECK-NEXT:    %[[END:.*]] = arith.minsi %[[NEXT]],
// CHECK-NEXT:    %a = xetile.init_tile %A[%{{.*}}, 0], {{.*}} !xetile.tile<256x32xbf16>
// CHECK:         %[[COLUMNS:.*]] = arith.subi %[[END]], %n
// CHECK:         %[[STEP:.*]] = arith.constant 512 : index
// CHECK-NEXT:    scf.for %[[AT:.*]] = %{{.*}} to %[[COLUMNS]] step %[[STEP]] {
// CHECK-NEXT:      %[[FIRST:.*]] = arith.addi %n, %[[AT]]
// CHECK-NEXT:      %[[BEHIND:.*]] = arith.addi %[[FIRST]], %[[STEP]]
// CHECK-NEXT:      %[[LAST:.*]] = arith.minsi %[[END]], %[[BEHIND]]
// CHECK-NEXT:      %b = xetile.init_tile %B[0, %[[FIRST]]], {{.*}} !xetile.tile<32x512xbf16>
// CHECK-NEXT:      %[[SIZE:.*]] = arith.minsi %size, %[[LAST]]
// CHECK-NEXT:      %cols = arith.subi %[[SIZE]], %[[FIRST]]
// CHECK:           xsmm.brgemm.tile %a, %b {{.*}} vector<256x512xf32>
// CHECK:           %[[HERE:.*]] = arith.minsi %size, %[[LAST]]
// CHECK-NEXT:      %[[WIDTH:.*]] = arith.minsi %[[HERE]], %[[LAST]]
// CHECK-NEXT:      xetile.init_tile %C[%{{.*}}, %[[FIRST]]], [%{{.*}}, %[[WIDTH]]]
// CHECK:           xetile.store_tile
// CHECK-NEXT:      xetile.store_tile
// CHECK-NEXT:    } {xetl.pieces}

// PLAIN-LABEL: @product
// PLAIN-NOT:   scf.for
func.func @product(%A: !mat, %B: !mat, %C: !mat, %size: index, %count: index, %gx: index, %gy: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%x, %y) = (%c0, %c0) to (%gx, %gy) step (%c1, %c1) {
    %m = arith.muli %x, %c64 : index
    %n = arith.muli %y, %c64 : index
    %a = xetile.init_tile %A[%m, 0], [%size, %size], [%size, 1] : !mat -> !xetile.tile<64x32xbf16>
    %b = xetile.init_tile %B[0, %n], [%size, %size], [%size, 1] : !mat -> !xetile.tile<32x64xbf16>
    %rows = arith.subi %size, %m : index
    %cols = arith.subi %size, %n : index
    %p = xsmm.brgemm.tile %a, %b times %count rows %rows cols %cols : !xetile.tile<64x32xbf16>, !xetile.tile<32x64xbf16> -> vector<64x64xf32>
    %v = arith.addf %p, %p : vector<64x64xf32>
    %h = arith.truncf %v : vector<64x64xf32> to vector<64x64xbf16>
    %c = xetile.init_tile %C[%m, %n], [%size, %size], [%size, 1] : !mat -> !xetile.tile<64x64xbf16>
    xetile.store_tile %h, %c : vector<64x64xbf16>, !xetile.tile<64x64xbf16>
    xetile.store_tile %h, %c : vector<64x64xbf16>, !xetile.tile<64x64xbf16>
    scf.reduce
  }
  func.return
}

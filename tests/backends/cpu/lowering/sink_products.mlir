// RUN: xetl-opt %s -p sink-products | filecheck %s

!f32 = memref<?x?xf32, strided<[?, 1]>>
!bf16 = memref<?x?xbf16, strided<[?, 1]>>
!a = !xetile.tile<16x32xf32>
!b = !xetile.tile<32x64xf32>

// Behind all that its store needs, together with the cast.
// CHECK-LABEL: @sunk
// CHECK:       %[[COL:.*]] = arith.addi
// CHECK-NEXT:  %[[TILE:.*]] = xetile.init_tile %C[0, %[[COL]]]
// CHECK-NEXT:  %[[D:.*]] = xsmm.brgemm.tile
// CHECK-NEXT:  %[[E:.*]] = arith.truncf %[[D]]
// CHECK-NEXT:  xetile.store_tile %[[E]], %[[TILE]]
func.func @sunk(%a: !a, %b: !b, %C: !bf16, %n: index) {
  %d = xsmm.brgemm.tile %a, %b times %n : !a, !b -> vector<16x64xf32>
  %e = arith.truncf %d : vector<16x64xf32> to vector<16x64xbf16>
  %col = arith.addi %n, %n : index
  %c = xetile.init_tile %C[0, %col], [%n, %n], [%n, 1] : !bf16 -> !xetile.tile<16x64xbf16>
  xetile.store_tile %e, %c : vector<16x64xbf16>, !xetile.tile<16x64xbf16>
  func.return
}

// Something is written in between: it may be what the product reads.
// CHECK-LABEL: @written
// CHECK:       xsmm.brgemm.tile
// CHECK-NEXT:  xetile.store_tile %v
// CHECK-NEXT:  xetile.store_tile %d
func.func @written(%a: !a, %b: !b, %c: !xetile.tile<16x64xf32>, %v: vector<16x64xf32>, %n: index) {
  %d = xsmm.brgemm.tile %a, %b times %n : !a, !b -> vector<16x64xf32>
  xetile.store_tile %v, %c : vector<16x64xf32>, !xetile.tile<16x64xf32>
  xetile.store_tile %d, %c : vector<16x64xf32>, !xetile.tile<16x64xf32>
  func.return
}

// Two readers, or one in another block.
// CHECK-LABEL: @other_readers
// CHECK:       xsmm.brgemm.tile
// CHECK-NEXT:  arith.addf
// CHECK:       xsmm.brgemm.tile
// CHECK-NEXT:  scf.if
func.func @other_readers(%a: !a, %b: !b, %c: !xetile.tile<16x64xf32>, %n: index, %yes: i1) {
  %d = xsmm.brgemm.tile %a, %b times %n : !a, !b -> vector<16x64xf32>
  %e = arith.addf %d, %d : vector<16x64xf32>
  xetile.store_tile %d, %c : vector<16x64xf32>, !xetile.tile<16x64xf32>
  xetile.store_tile %e, %c : vector<16x64xf32>, !xetile.tile<16x64xf32>
  %f = xsmm.brgemm.tile %a, %b times %n : !a, !b -> vector<16x64xf32>
  scf.if %yes {
    xetile.store_tile %f, %c : vector<16x64xf32>, !xetile.tile<16x64xf32>
  }
  func.return
}

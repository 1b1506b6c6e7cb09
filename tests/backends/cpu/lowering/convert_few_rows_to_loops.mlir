// RUN: xetl-opt %s -p 'plan-gemm{target=avx512_bf16},place-values{target=avx512_bf16},convert-xetile-to-loops{target=avx512_bf16}' --verify-stage=loops | filecheck %s

!matrix = memref<?x?xf32, strided<[?, 1]>>

// Few rows that stream B: zeros are as many as the product has columns, not its tile.
// CHECK-LABEL: @few_rows
// CHECK:       %[[SUMS:.*]] = memref.alloca() : memref<8x512xf32>
// CHECK:       %[[SOME:.*]] = arith.minsi %n, %{{.*}} : index
// CHECK:       %[[COLS:.*]] = arith.maxsi %[[SOME]], %{{.*}} : index
// CHECK:       scf.for %[[ROW:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK:         scf.for %[[COL:.*]] = %{{.*}} to %[[COLS]] step %{{.*}} {
// CHECK-NEXT:      vector.store %{{.*}}, %[[SUMS]][%[[ROW]], %[[COL]]] : memref<8x512xf32>, vector<16xf32>
func.func @few_rows(%A: !matrix, %B: !matrix, %C: !matrix, %n: index, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%x) = (%c0) to (%grid) step (%c1) {
    %a = xetile.init_tile %A[0, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<8x32xf32>
    %b = xetile.init_tile %B[0, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<32x512xf32>
    %p = xsmm.brgemm.tile %a, %b times %c1 cols %n : !xetile.tile<8x32xf32>, !xetile.tile<32x512xf32> -> vector<8x512xf32>
    %c = xetile.init_tile %C[0, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<8x512xf32>
    xetile.store_tile %p, %c : vector<8x512xf32>, !xetile.tile<8x512xf32>
    scf.reduce
  }
  func.return
}

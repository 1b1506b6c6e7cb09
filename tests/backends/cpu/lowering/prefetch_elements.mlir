// RUN: xetl-opt %s -p 'convert-xetile-to-loops{target=avx2}' | filecheck %s

// One element is asked for; of tiles the processor knows what comes next.
// CHECK-LABEL: @prefetches
// CHECK:       memref.prefetch %{{.*}}[%{{.*}}, %{{.*}}], read, locality<3>, data
// CHECK-NOT:   memref.prefetch
// CHECK:       func.return
func.func @prefetches(%n: index, %X: memref<?x?xf32, strided<[?, 1]>>) attributes {xetile.alias_groups = array<i64: -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%n) step (%c1) {
    %one = xetile.init_tile %X[%p, %n], [%n, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<1x1xf32>
    xetile.prefetch_tile %one : !xetile.tile<1x1xf32>
    %row = xetile.init_tile %X[%p, %n], [%n, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<1x16xf32>
    xetile.prefetch_tile %row : !xetile.tile<1x16xf32>
    scf.reduce
  }
  func.return
}

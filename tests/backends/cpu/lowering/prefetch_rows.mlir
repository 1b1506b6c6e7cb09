// RUN: xetl-opt %s -p 'prefetch-rows{target=amx}' | filecheck %s
// RUN: xetl-opt %s -p 'prefetch-rows{target=avx2}' | filecheck %s
// RUN: xetl-opt %s -p 'prefetch-rows{target=avx512_bf16}' | filecheck %s --check-prefix NEAR

// L3 of some machines is near: what is in flight hides it.
// NEAR-NOT: memref.prefetch

// The second loop over a row asks for the next row: two loads of bf16 share a line.
// Scratch is not asked for.
// CHECK-LABEL: @twice
// CHECK:       scf.for
// CHECK-NOT:     memref.prefetch
// CHECK:       scf.for %[[J:.*]] =
// CHECK:         %[[BELOW:.*]] = arith.addi %p, %
// CHECK-NEXT:    memref.prefetch %X[%[[BELOW]], %[[J]]], read, locality<3>, data
// CHECK-NOT:     memref.prefetch
// CHECK:       scf.for
// CHECK-NOT:     memref.prefetch
// CHECK:       func.return
func.func @twice(%n: index, %X: memref<?x?xbf16, strided<[?, 1]>>) attributes {xetile.alias_groups = array<i64: -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  scf.parallel (%p) = (%c0) to (%n) step (%c1) {
    %buffer = memref.alloca() : memref<1x1024xbf16>
    scf.for %j = %c0 to %n step %c32 {
      %a = vector.load %X[%p, %j] : memref<?x?xbf16, strided<[?, 1]>>, vector<16xbf16>
      %b = vector.load %buffer[%c0, %j] : memref<1x1024xbf16>, vector<16xbf16>
    }
    scf.for %j = %c0 to %n step %c32 {
      %a = vector.load %X[%p, %j] : memref<?x?xbf16, strided<[?, 1]>>, vector<16xbf16>
      %k = arith.addi %j, %c16 : index
      %b = vector.load %X[%p, %k] : memref<?x?xbf16, strided<[?, 1]>>, vector<16xbf16>
      %c = vector.load %buffer[%c0, %j] : memref<1x1024xbf16>, vector<16xbf16>
    }
    scf.for %j = %c0 to %n step %c32 {
      %a = vector.load %X[%p, %j] : memref<?x?xbf16, strided<[?, 1]>>, vector<16xbf16>
    }
    scf.reduce
  }
  func.return
}

// Rows of a tile have sums of their own in each loop; the last loop is there twice, to
// store past the caches or not.
// CHECK-LABEL: @in_a_tile
// CHECK:         scf.if
// CHECK:           memref.prefetch
// CHECK:         } else {
// CHECK:           memref.prefetch
func.func @in_a_tile(%n: index, %is_large: i1, %X: memref<?x?xf32, strided<[?, 1]>>) attributes {xetile.alias_groups = array<i64: -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.parallel (%p) = (%c0) to (%n) step (%c16) {
    scf.for %i = %c0 to %c16 step %c1 {
      %r = arith.addi %i, %p : index
      scf.for %j = %c0 to %n step %c16 {
        %a = vector.load %X[%r, %j] : memref<?x?xf32, strided<[?, 1]>>, vector<16xf32>
      }
      %s = arith.addi %i, %p : index
      scf.if %is_large {
        scf.for %j = %c0 to %n step %c16 {
          %a = vector.load %X[%s, %j] : memref<?x?xf32, strided<[?, 1]>>, vector<16xf32>
        }
      } else {
        scf.for %j = %c0 to %n step %c16 {
          %a = vector.load %X[%s, %j] : memref<?x?xf32, strided<[?, 1]>>, vector<16xf32>
        }
      }
    }
    scf.reduce
  }
  func.return
}

// Read once, or along a column: nothing is asked for.
// CHECK-LABEL: @once
// CHECK-NOT:   memref.prefetch
func.func @once(%n: index, %X: memref<?x?xf32, strided<[?, 1]>>) attributes {xetile.alias_groups = array<i64: -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.parallel (%p) = (%c0) to (%n) step (%c1) {
    scf.for %j = %c0 to %n step %c16 {
      %a = vector.load %X[%p, %j] : memref<?x?xf32, strided<[?, 1]>>, vector<16xf32>
    }
    scf.for %j = %c0 to %n step %c1 {
      %a = vector.load %X[%j, %p] : memref<?x?xf32, strided<[?, 1]>>, vector<16xf32>
    }
    scf.for %j = %c0 to %n step %c1 {
      %a = vector.load %X[%j, %p] : memref<?x?xf32, strided<[?, 1]>>, vector<16xf32>
    }
    scf.reduce
  }
  func.return
}

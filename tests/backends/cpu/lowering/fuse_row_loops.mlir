// RUN: xetl-opt %s -p fuse-row-loops | filecheck %s

// Each row of the buffer is written and then read in its own trip; the second loop may
// end earlier. Between them is what stores that pass the caches ask about an address.
// CHECK-LABEL: @fuses
// CHECK:       %[[END:.*]] = arith.minsi
// CHECK:       scf.for %[[I:.*]] = {{.*}} to
// CHECK:         memref.store {{.*}}[%[[I]]]
// CHECK:         %[[MORE:.*]] = arith.cmpi slt, %[[I]], %[[END]]
// CHECK:         scf.if %[[MORE]]
// CHECK:           memref.load {{.*}}[%[[I]]]
// CHECK-NOT:   scf.for
func.func @fuses(%n: index, %x: f32, %Y: memref<4xf32>) attributes {xetile.alias_groups = array<i64: -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%n) step (%c1) {
    %buffer = memref.alloca() : memref<16xf32>
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %c4 step %c1 {
      memref.store %x, %buffer[%i] : memref<16xf32>
    }
    %end = arith.minsi %n, %c4 : index
    %address = memref.extract_aligned_pointer_as_index %Y : memref<4xf32> -> index
    %rest = arith.remsi %address, %c4 : index
    scf.for %j = %c0 to %end step %c1 {
      %v = memref.load %buffer[%j] : memref<16xf32>
      memref.store %v, %Y[%rest] : memref<4xf32>
    }
    scf.reduce
  }
  func.return
}

// The second loop reads another row than its own: all rows must be there first.
// CHECK-LABEL: @another_row
// CHECK:       scf.for
// CHECK:       scf.for
func.func @another_row(%n: index, %x: f32, %Y: memref<4xf32>) attributes {xetile.alias_groups = array<i64: -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%n) step (%c1) {
    %buffer = memref.alloca() : memref<16xf32>
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %c4 step %c1 {
      memref.store %x, %buffer[%i] : memref<16xf32>
    }
    scf.for %j = %c0 to %c4 step %c1 {
      %v = memref.load %buffer[%c0] : memref<16xf32>
      memref.store %v, %Y[%p] : memref<4xf32>
    }
    scf.reduce
  }
  func.return
}

// One writes the array that the other reads; other extents; something in between.
// CHECK-LABEL: @keeps
// CHECK-COUNT-4: scf.for
func.func @keeps(%n: index, %x: f32, %Y: memref<4xf32>) attributes {xetile.alias_groups = array<i64: -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%n) step (%c1) {
    %buffer = memref.alloca() : memref<16xf32>
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    scf.for %i = %c0 to %c4 step %c1 {
      memref.store %x, %Y[%i] : memref<4xf32>
    }
    scf.for %j = %c0 to %c4 step %c1 {
      %v = memref.load %Y[%p] : memref<4xf32>
      memref.store %v, %buffer[%j] : memref<16xf32>
    }
    scf.for %k = %c0 to %c5 step %c1 {
      memref.store %x, %buffer[%k] : memref<16xf32>
    }
    memref.store %x, %Y[%c0] : memref<4xf32>
    scf.for %l = %c0 to %c5 step %c1 {
      memref.store %x, %buffer[%l] : memref<16xf32>
    }
    scf.reduce
  }
  func.return
}

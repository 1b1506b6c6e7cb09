// RUN: xetl-opt %s -p widen-programs | filecheck %s

// Programs beside one another become one, which goes on along each row.
// CHECK-LABEL: @beside
// CHECK:       "cpu.thread_count"()
// CHECK:       scf.parallel (%[[I:.*]], %[[J:.*]]) = {{.*}} to (%m, %{{.*}})
// CHECK:         scf.for %[[ROW:.*]] =
// CHECK:           scf.for %[[PROGRAM:.*]] =
// CHECK:             arith.muli %[[PROGRAM]]
// CHECK:             scf.for
// CHECK:               memref.store
// CHECK:           } {xetl.programs}
func.func @beside(%m: index, %n: index, %x: f32, %Y: memref<?x?xf32, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%m, %n) step (%c1, %c1) {
    %column = arith.muli %j, %c8 : index
    scf.for %row = %c0 to %i step %c1 {
      scf.for %k = %c0 to %c8 step %c1 {
        %l = arith.addi %column, %k : index
        memref.store %x, %Y[%row, %l] : memref<?x?xf32, strided<[?, 1]>>
      }
    }
    scf.reduce
  } {xetl.order = array<i64: 1, 0>}
  func.return
}

// The fastest number says how many rows there are.
// CHECK-LABEL: @rows_by_number
// CHECK-NOT:   cpu.thread_count
func.func @rows_by_number(%m: index, %n: index, %x: f32, %Y: memref<?x?xf32, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%m, %n) step (%c1, %c1) {
    scf.for %row = %c0 to %i step %c1 {
      scf.for %k = %c0 to %j step %c1 {
        memref.store %x, %Y[%row, %k] : memref<?x?xf32, strided<[?, 1]>>
      }
    }
    scf.reduce
  }
  func.return
}

// Memory of a program is written before the rows, and read in them.
// CHECK-LABEL: @keeps_memory
// CHECK-NOT:   cpu.thread_count
func.func @keeps_memory(%m: index, %n: index, %x: f32, %Y: memref<?x?xf32, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%m, %n) step (%c1, %c1) {
    %kept = memref.alloca() : memref<8xf32>
    memref.store %x, %kept[%c0] : memref<8xf32>
    scf.for %row = %c0 to %m step %c1 {
      scf.for %k = %c0 to %m step %c1 {
        %v = memref.load %kept[%c0] : memref<8xf32>
        memref.store %v, %Y[%row, %j] : memref<?x?xf32, strided<[?, 1]>>
      }
    }
    scf.reduce
  }
  func.return
}

// Programs of one element become a loop over elements.
// CHECK-LABEL: @of_elements
// CHECK:       scf.parallel (%[[N:.*]]) =
// CHECK:         scf.for %[[I:.*]] =
// CHECK:           memref.store %x, %Y[%[[I]]]
// CHECK:         } {xetl.programs}
func.func @of_elements(%n: index, %x: f32, %Y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    memref.store %x, %Y[%i] : memref<?xf32>
    scf.reduce
  } {xetl.order = array<i64: 0>}
  func.return
}

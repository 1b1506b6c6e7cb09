// RUN: xetl-opt %s -p split-row-loops | filecheck %s

// Rows up to the matrix's end, then those behind it: one test for each part, and what
// follows from it stands in front of the rows.
// CHECK-LABEL: @splits
// CHECK:       %[[LEFT:.*]] = arith.subi %n, %first
// CHECK:       scf.while (%[[FROM:.*]] = %c0)
// CHECK:         %[[MORE:.*]] = arith.cmpi slt, %[[FROM]], %rows
// CHECK:         scf.condition(%[[MORE]])
// CHECK:       ^bb0(%[[ROW:.*]]: index):
// CHECK:         %[[AHEAD:.*]] = arith.cmpi sgt, %[[LEFT]], %[[ROW]]
// CHECK:         %[[THERE:.*]] = arith.select %[[AHEAD]], %[[LEFT]], %rows
// CHECK:         %[[END:.*]] = arith.minsi %rows, %[[THERE]]
// CHECK:         %[[AT:.*]] = arith.addi %[[ROW]], %first
// CHECK:         %[[IS:.*]] = arith.cmpi ult, %[[AT]], %n
// CHECK:         %[[LIMIT:.*]] = arith.select %[[IS]], %cols, %c0
// CHECK:         scf.for %[[I:.*]] = %[[ROW]] to %[[END]]
// CHECK-NOT:       arith.cmpi
// CHECK:           memref.store %[[LIMIT]], %Y[%[[I]]]
// CHECK:         scf.yield %[[END]]
func.func @splits(%x: index, %n: index, %rows: index, %cols: index, %Y: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%p) = (%c0) to (%x) step (%c1) {
    %first = arith.muli %p, %c64 : index
    scf.for %i = %c0 to %rows step %c1 {
      %at = arith.addi %i, %first : index
      %is = arith.cmpi ult, %at, %n : index
      %limit = arith.select %is, %cols, %c0 : index
      memref.store %limit, %Y[%i] : memref<?xindex>
    }
    scf.reduce
  }
  func.return
}

// A tile may start before its matrix: answers change there as well.
// CHECK-LABEL: @before
// CHECK:       arith.subi %n, %first
// CHECK:       arith.subi {{.*}}, %first
// CHECK:       scf.while
func.func @before(%first: index, %n: index, %rows: index, %Y: memref<?xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %rows step %c1 {
    %at = arith.addi %i, %first : index
    %is = arith.cmpi ult, %at, %n : index
    memref.store %is, %Y[%i] : memref<?xi1>
  }
  func.return
}

// CHECK-LABEL: @three_rows_before
// CHECK:       scf.while
// CHECK:         %[[FIRST:.*]] = arith.constant 3
// CHECK:         arith.cmpi sgt, %[[FIRST]]
func.func @three_rows_before(%n: index, %rows: index, %Y: memref<?xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %back = arith.constant -3 : index
  scf.for %i = %c0 to %rows step %c1 {
    %at = arith.addi %i, %back : index
    %is = arith.cmpi ult, %at, %n : index
    memref.store %is, %Y[%i] : memref<?xi1>
  }
  func.return
}

// The first rows may be before the matrix.
// CHECK-LABEL: @begins_before
// CHECK:       scf.while ({{.*}} = %first)
// CHECK:         arith.cmpi sgt, %n
// CHECK:         arith.cmpi sgt
func.func @begins_before(%n: index, %rows: index, %Y: memref<?xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %first = arith.constant -3 : index
  scf.for %i = %first to %rows step %c1 {
    %is = arith.cmpi ult, %i, %n : index
    memref.store %is, %Y[%i] : memref<?xi1>
  }
  func.return
}

// Tests of the two rows of a step: one trip has both ends.
// CHECK-LABEL: @steps
// CHECK:       scf.while
// CHECK:       scf.for
// CHECK-NOT:     arith.cmpi
// CHECK:         memref.store
func.func @steps(%n: index, %rows: index, %Y: memref<?xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %rows step %c2 {
    %is = arith.cmpi slt, %i, %n : index
    %next = arith.addi %i, %c1 : index
    %also = arith.cmpi slt, %next, %n : index
    %both = arith.andi %is, %also : i1
    memref.store %both, %Y[%i] : memref<?xi1>
  }
  func.return
}

// The rows that are compared are those of another loop, or further apart than a step.
// CHECK-LABEL: @stays
// CHECK-NOT:   scf.while
func.func @stays(%n: index, %rows: index, %Y: memref<?xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %rows step %c1 {
    %m = arith.muli %i, %n : index
    %is = arith.cmpi slt, %m, %n : index
    memref.store %is, %Y[%i] : memref<?xi1>
    %next = arith.addi %i, %c1 : index
    %one = arith.cmpi slt, %next, %n : index
    %other = arith.cmpi slt, %i, %n : index
    %both = arith.andi %one, %other : i1
    memref.store %both, %Y[%i] : memref<?xi1>
  }
  func.return
}

// RUN: xetl-opt %s -p forward-stored-elements | filecheck %s

// The element in front of the one that is stored.
// CHECK-LABEL: @recurrence
// CHECK:       %[[RUNS:.*]] = arith.cmpi slt, %c1, %n
// CHECK-NEXT:  %[[FIRST:.*]] = scf.if %[[RUNS]] -> (f32) {
// CHECK-NEXT:    %[[AT:.*]] = arith.subi %c1, %c1
// CHECK-NEXT:    %[[LOADED:.*]] = memref.load %A[%[[AT]]]
// CHECK:       %{{.*}} = scf.for %[[J:.*]] = %c1 to %n step %c1 iter_args(%[[A:.*]] = %[[FIRST]]) -> (f32) {
// CHECK-NOT:     memref.load
// CHECK:         %[[SUM:.*]] = arith.addf %[[A]], %[[A]]
// CHECK-NEXT:    memref.store %[[SUM]], %A[%[[J]]]
// CHECK-NEXT:    scf.yield %[[SUM]]
func.func @recurrence(%A: memref<?xf32>, %n: index) attributes {xetile.alias_groups = array<i64: -1>} {
  %c1 = arith.constant 1 : index
  scf.for %j = %c1 to %n step %c1 {
    %at = arith.subi %j, %c1 : index
    %a = memref.load %A[%at] : memref<?xf32>
    %sum = arith.addf %a, %a : f32
    memref.store %sum, %A[%j] : memref<?xf32>
  }
  func.return
}

// A sum in memory.
// CHECK-LABEL: @sum
// CHECK:       scf.for %[[J:.*]] = %c0 to %n step %c1 iter_args(%[[SUM:.*]] = %{{.*}}) -> (f32) {
// CHECK-NEXT:    %[[X:.*]] = memref.load %X[%[[J]]]
// CHECK-NEXT:    %[[NEXT:.*]] = arith.addf %[[SUM]], %[[X]]
func.func @sum(%A: memref<?xf32>, %X: memref<?xf32>, %at: index, %n: index) attributes {xetile.alias_groups = array<i64: -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %j = %c0 to %n step %c1 {
    %a = memref.load %A[%at] : memref<?xf32>
    %x = memref.load %X[%j] : memref<?xf32>
    %sum = arith.addf %a, %x : f32
    memref.store %sum, %A[%at] : memref<?xf32>
  }
  func.return
}

// Another distance; a store that is not always made; another store that may be there; an
// array that may be the other one.
// CHECK-LABEL: @left_alone
// CHECK-NOT:   iter_args
// CHECK:       func.return
func.func @left_alone(%A: memref<?xf32>, %B: memref<?xf32>, %n: index, %c: i1) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %j = %c2 to %n step %c1 {
    %at = arith.subi %j, %c2 : index
    %a = memref.load %A[%at] : memref<?xf32>
    memref.store %a, %A[%j] : memref<?xf32>
  }
  scf.for %j = %c1 to %n step %c1 {
    %at = arith.subi %j, %c1 : index
    %a = memref.load %A[%at] : memref<?xf32>
    scf.if %c {
      memref.store %a, %A[%j] : memref<?xf32>
    }
  }
  scf.for %j = %c1 to %n step %c1 {
    %at = arith.subi %j, %c1 : index
    %a = memref.load %A[%at] : memref<?xf32>
    memref.store %a, %A[%j] : memref<?xf32>
    memref.store %a, %B[%c1] : memref<?xf32>
  }
  func.return
}

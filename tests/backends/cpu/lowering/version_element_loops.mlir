// RUN: xetl-opt %s -p version-element-loops | filecheck %s

// One test in front of both loops: the least row is %n - %n + 1 - 1.
// CHECK-LABEL: @nest
// CHECK:       %[[MOST:.*]] = arith.subi %n, %{{.*}}
// CHECK:       arith.cmpi slt, %[[MOST]], %size
// CHECK:       scf.if %{{.*}} {
// CHECK:         scf.for %[[I:.*]] = %c0 to %n step %c1 {
// CHECK-NEXT:      scf.for %[[J:.*]] = %[[I]] to %n step %c1 {
// CHECK-NEXT:        %[[A:.*]] = memref.load %A[%[[J]]]
// CHECK-NEXT:        memref.store %[[A]], %B[%[[J]]]
// CHECK:       } else {
// CHECK:         scf.if
func.func @nest(%A: memref<?xf32>, %B: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %0, %1, %size, %2 = memref.extract_strided_metadata %A : memref<?xf32> -> memref<f32>, index, index, index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %i to %n step %c1 {
      %inside = arith.cmpi ult, %j, %size {xetile.bounds = "A"} : index
      %a = scf.if %inside -> (f32) {
        %loaded = memref.load %A[%j] : memref<?xf32>
        scf.yield %loaded : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %a, %B[%j] : memref<?xf32>
    }
  }
  func.return
}

// The bounds of the loop inside are elements: its test is in front of itself.
// CHECK-LABEL: @rows_of_a_sparse_matrix
// CHECK:       scf.for %[[I:.*]] = %c0 to %n
// CHECK:         %[[END:.*]] = arith.index_cast
// CHECK:         scf.if %{{.*}} {
// CHECK:           scf.for %[[E:.*]] = %c0 to %[[END]]
// CHECK-NEXT:        %[[A:.*]] = memref.load %A[%[[E]]]
// CHECK-NEXT:        memref.store %[[A]], %B[%[[E]]]
// CHECK:         } else {
func.func @rows_of_a_sparse_matrix(%A: memref<?xf32>, %B: memref<?xf32>, %P: memref<?xi32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0, %1, %size, %2 = memref.extract_strided_metadata %B : memref<?xf32> -> memref<f32>, index, index, index
  scf.for %i = %c0 to %n step %c1 {
    %number = memref.load %P[%i] : memref<?xi32>
    %end = arith.index_cast %number : i32 to index
    scf.for %e = %c0 to %end step %c1 {
      %a = memref.load %A[%e] : memref<?xf32>
      %inside = arith.cmpi ult, %e, %size {xetile.bounds = "B"} : index
      scf.if %inside {
        memref.store %a, %B[%e] : memref<?xf32>
      }
    }
  }
  func.return
}

// A neighbour on a ring: the remainder is chosen.
// CHECK-LABEL: @ring
// CHECK:       scf.if %{{.*}} {
// CHECK-NOT:     arith.floordivsi
// CHECK:         arith.select
// CHECK:         memref.load
// CHECK:       } else {
// CHECK:         arith.floordivsi
func.func @ring(%A: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %next = arith.addi %i, %c1 : index
    %times = arith.floordivsi %next, %n : index
    %whole = arith.muli %times, %n : index
    %place = arith.subi %next, %whole : index
    %a = memref.load %A[%place] : memref<?xf32>
    memref.store %a, %A[%i] : memref<?xf32>
  }
  func.return
}

// A row that is tested in front of the loop.
// CHECK-LABEL: @settled
// CHECK:       %[[ROW:.*]] = arith.cmpi ult, %row, %{{.*}}
// CHECK:       scf.if %[[ROW]] {
// CHECK:         scf.for %[[I:.*]] = %c0 to %n step %c1 {
// CHECK-NEXT:      memref.store %x, %A[%[[I]]]
// CHECK:       } else {
func.func @settled(%A: memref<?xf32>, %row: index, %x: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0, %1, %size, %2 = memref.extract_strided_metadata %A : memref<?xf32> -> memref<f32>, index, index, index
  %inside = arith.cmpi ult, %row, %size {xetile.bounds = "A"} : index
  scf.for %i = %c0 to %n step %c1 {
    scf.if %inside {
      memref.store %x, %A[%i] : memref<?xf32>
    }
  }
  func.return
}

// An index that is an element, one that has the counter twice, and vectors.
// CHECK-LABEL: @left_alone
// CHECK-NOT:   scf.if
// CHECK:       func.return
func.func @left_alone(%A: memref<?xf32>, %P: memref<?xi32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0, %1, %size, %2 = memref.extract_strided_metadata %A : memref<?xf32> -> memref<f32>, index, index, index
  scf.for %i = %c0 to %n step %c1 {
    %number = memref.load %P[%i] : memref<?xi32>
    %at = arith.index_cast %number : i32 to index
    %known = arith.cmpi ult, %at, %size {xetile.bounds = "A"} : index
    %doubled = arith.addi %i, %i : index
    %test = arith.cmpi ult, %doubled, %size {xetile.bounds = "A"} : index
    %both = arith.andi %known, %test : i1
    %one = arith.extui %both : i1 to i32
    memref.store %one, %P[%i] : memref<?xi32>
  }
  scf.for %i = %c0 to %n step %c1 {
    %test = arith.cmpi ult, %i, %size {xetile.bounds = "A"} : index
    %v = vector.broadcast %test : i1 to vector<4xi1>
    %w = vector.extract %v[0] : i1 from vector<4xi1>
    %one = arith.extui %w : i1 to i32
    memref.store %one, %P[%i] : memref<?xi32>
  }
  func.return
}

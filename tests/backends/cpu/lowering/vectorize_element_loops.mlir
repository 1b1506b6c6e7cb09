// RUN: xetl-opt %s -p "vectorize-element-loops{target=avx2}" | filecheck %s

// Vectors where all tests hold, and the loop as it was elsewhere.
// CHECK-LABEL: @shifted
// CHECK:       scf.for %[[FIRST:.*]] = %c0 to %n step
// CHECK:         %[[LAST:.*]] = arith.addi %[[FIRST]], %{{.*}}
// CHECK:         %[[IS:.*]] = arith.cmpi sle, %[[LAST]], %{{.*}}
// CHECK:         scf.if %{{.*}} {
// CHECK:           %[[AT:.*]] = arith.subi %[[FIRST]], %c1
// CHECK:           %[[A:.*]] = vector.load %A[%[[AT]]] : memref<?xf32>, vector<8xf32>
// CHECK:           %[[SUM:.*]] = arith.addf %[[A]], %[[A]] {xetl.rounded}
// CHECK:           vector.store %[[SUM]], %B[%[[FIRST]]]
// CHECK:         } else {
// CHECK:           scf.for %[[J:.*]] = %[[FIRST]] to %{{.*}} step %c1
// CHECK:             memref.load %A
func.func @shifted(%A: memref<?xf32>, %B: memref<?xf32>, %n: index) attributes {xetile.alias_groups = array<i64: -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %size = memref.dim %A, %c0 : memref<?xf32>
  scf.for %j = %c0 to %n step %c1 {
    %at = arith.subi %j, %c1 : index
    %inside = arith.cmpi ult, %at, %size {xetile.bounds = "A"} : index
    %a = scf.if %inside -> (f32) {
      %loaded = memref.load %A[%at] : memref<?xf32>
      scf.yield %loaded : f32
    } else {
      scf.yield %zero : f32
    }
    %sum = arith.addf %a, %a : f32
    memref.store %sum, %B[%j] : memref<?xf32>
  }
  func.return
}

// Each element is a sum with the one before.
// CHECK-LABEL: @recurrence
// CHECK-NOT:   vector.load
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

// The two arrays may be one.
// CHECK-LABEL: @unknown
// CHECK-NOT:   vector.load
func.func @unknown(%A: memref<?xf32>, %B: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %j = %c0 to %n step %c1 {
    %a = memref.load %A[%j] : memref<?xf32>
    memref.store %a, %B[%j] : memref<?xf32>
  }
  func.return
}

// A loop inside carries a vector; what it reads of one column is a number.
// CHECK-LABEL: @sums
// CHECK:       scf.for %[[FIRST:.*]] = %c0 to %n step
// CHECK:         scf.for %[[K:.*]] = %c0 to %n step %c1 iter_args(%{{.*}} = %{{.*}}) -> (vector<8xf32>)
// CHECK:           memref.load %A[%[[K]], %c0]
// CHECK:           vector.load %A[%[[K]], %[[FIRST]]]
// CHECK:         vector.store
func.func @sums(%A: memref<?x?xf32>, %B: memref<?xf32>, %n: index) attributes {xetile.alias_groups = array<i64: -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %j = %c0 to %n step %c1 {
    %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) {
      %first = memref.load %A[%k, %c0] : memref<?x?xf32>
      %a = memref.load %A[%k, %j] : memref<?x?xf32>
      %product = arith.mulf %first, %a : f32
      %next = arith.addf %s, %product : f32
      scf.yield %next : f32
    }
    memref.store %sum, %B[%j] : memref<?xf32>
  }
  func.return
}

// A view that the body makes is read; one whose place a loop inside moves is no store.
// CHECK-LABEL: @views
// CHECK:       %[[V:.*]] = memref.reinterpret_cast %A
// CHECK-NEXT:  vector.load %[[V]]
// CHECK:       scf.for
// CHECK-NOT:   vector.store
func.func @views(%A: memref<?xf32>, %B: memref<?xf32>, %n: index) attributes {xetile.alias_groups = array<i64: -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  scf.for %j = %c0 to %n step %c1 {
    %view = memref.reinterpret_cast %A to offset: [%n], sizes: [%n], strides: [1] : memref<?xf32> to memref<?xf32, strided<[1], offset: ?>>
    %a = memref.load %view[%j] : memref<?xf32, strided<[1], offset: ?>>
    memref.store %a, %B[%j] : memref<?xf32>
  }
  scf.for %j = %c0 to %n step %c1 {
    scf.for %k = %c0 to %n step %c1 {
      %view = memref.reinterpret_cast %B to offset: [%k], sizes: [%n], strides: [1] : memref<?xf32> to memref<?xf32, strided<[1], offset: ?>>
      %b = arith.index_cast %k : index to i32
      %f = arith.sitofp %b : i32 to f32
      memref.store %f, %view[%j] : memref<?xf32, strided<[1], offset: ?>>
    }
  }
  func.return
}

// Integers are folded lane by lane, and combined behind the loop.
// CHECK-LABEL: @count
// CHECK:       %[[ZERO:.*]] = arith.constant dense<0> : vector<8xi32>
// CHECK:       %[[LAST:.*]], %[[PARTS:.*]] = scf.for {{.*}} iter_args(%[[N:.*]] = %zero, %[[P:.*]] = %[[ZERO]]) -> (i32, vector<8xi32>)
// CHECK:         scf.if %{{.*}} -> (i32, vector<8xi32>) {
// CHECK:           %[[ADDED:.*]] = arith.addi %[[P]], %{{.*}} : vector<8xi32>
// CHECK:           scf.yield %[[N]], %[[ADDED]]
// CHECK:         } else {
// CHECK:           %[[M:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[N]]) -> (i32)
// CHECK:           scf.yield %[[M]], %[[P]]
// CHECK:       %[[SUM:.*]] = vector.reduction <add>, %[[PARTS]]
// CHECK:       arith.addi %[[LAST]], %[[SUM]]
func.func @count(%A: memref<?xi32>, %n: index) -> i32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %count = scf.for %j = %c0 to %n step %c1 iter_args(%s = %zero) -> (i32) {
    %a = memref.load %A[%j] : memref<?xi32>
    %next = arith.addi %s, %a : i32
    scf.yield %next : i32
  }
  func.return %count : i32
}

// Every third element: the last load ends with the last of them.
// CHECK-LABEL: @every_third
// CHECK:       arith.divsi
// CHECK:       vector.load %A[%[[AT:.*]]]
// CHECK:       vector.load
// CHECK:       vector.load
// CHECK:       vector.shuffle
// CHECK:       vector.shuffle
// CHECK:       vector.store
func.func @every_third(%A: memref<?xf32>, %B: memref<?xf32>, %n: index) attributes {xetile.alias_groups = array<i64: -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %size = memref.dim %A, %c0 : memref<?xf32>
  scf.for %j = %c0 to %n step %c1 {
    %at = arith.muli %j, %c3 : index
    %inside = arith.cmpi ult, %at, %size {xetile.bounds = "A"} : index
    %a = scf.if %inside -> (f32) {
      %loaded = memref.load %A[%at] : memref<?xf32>
      scf.yield %loaded : f32
    } else {
      scf.yield %zero : f32
    }
    memref.store %a, %B[%j] : memref<?xf32>
  }
  func.return
}

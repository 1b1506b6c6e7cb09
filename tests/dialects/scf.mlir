// RUN: xetl-opt %s | filecheck %s
// RUN: xetl-opt %s | xetl-opt - | filecheck %s
// RUN: xetl-opt %s --generic | xetl-opt - | filecheck %s

// CHECK-LABEL: @loops
func.func @loops(%a: index, %b: index, %c: index, %f: f32, %i: i32) {
  // CHECK: scf.for %{{.*}} = %a to %b step %c {
  scf.for %k = %a to %b step %c {
  }
  // CHECK: scf.for %{{.*}} = %i to %i step %i : i32 {
  scf.for %k = %i to %i step %i : i32 {
    scf.yield
  }
  // CHECK: scf.for %{{.*}} = %a to %b step %c iter_args(%x = %f, %y = %a) -> (f32, index) {
  // CHECK:   scf.yield %x, %y : f32, index
  // CHECK: } {note = 1 : i64}
  %0:2 = scf.for %k = %a to %b step %c iter_args(%x = %f, %y = %a) -> (f32, index) {
    scf.yield %x, %y : f32, index
  } {note = 1}
  // CHECK: scf.parallel (%{{.*}}, %{{.*}}) = (%a, %a) to (%b, %b) step (%c, %c) {
  // CHECK:   scf.reduce
  scf.parallel (%p, %q) = (%a, %a) to (%b, %b) step (%c, %c) {
    scf.reduce
  }
  // CHECK: scf.parallel (%{{.*}}) = (%a) to (%b) step (%c) init (%f) -> (f32) {
  // CHECK:   scf.reduce(%f : f32) {
  // CHECK:     scf.reduce.return %{{.*}} : f32
  %1 = scf.parallel (%p) = (%a) to (%b) step (%c) init (%f) -> f32 {
    scf.reduce(%f : f32) {
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      scf.reduce.return %s : f32
    }
  }
  return
}

// CHECK-LABEL: @branches
func.func @branches(%c: i1, %a: index) {
  // CHECK: scf.if %c {
  // CHECK-NOT: else
  scf.if %c {
    gpu.barrier
  }
  // CHECK: scf.if %c -> (index, i1) {
  // CHECK: } else {
  %0:2 = scf.if %c -> (index, i1) {
    scf.yield %a, %c : index, i1
  } else {
    scf.yield %a, %c : index, i1
  }
  // CHECK: scf.while (%x = %a) : (index) -> (index, i1) {
  // CHECK:   scf.condition(%c) %x, %c : index, i1
  // CHECK: } do {
  // CHECK: ^{{.*}}(%y: index, %z: i1):
  // CHECK:   scf.yield %y : index
  %1:2 = scf.while (%x = %a) : (index) -> (index, i1) {
    scf.condition(%c) %x, %c : index, i1
  } do {
  ^bb0(%y: index, %z: i1):
    scf.yield %y : index
  }
  return
}

// CHECK-LABEL: @forall
func.func @forall(%n: index, %m: memref<8xf32>) {
  // CHECK: scf.forall (%{{.*}}, %{{.*}}) in (32, %n) {
  // CHECK-NEXT: %[[X:.*]] = memref.load
  // CHECK-NEXT: memref.store %[[X]]
  // CHECK-NEXT: }
  scf.forall (%i, %j) in (32, %n) {
    %x = memref.load %m[%i] : memref<8xf32>
    memref.store %x, %m[%j] : memref<8xf32>
  }
  // CHECK: scf.forall (%{{.*}}) = (1) to (%n) step (2) {
  scf.forall (%i) = (1) to (%n) step (2) {
  } {note = 1}
  // CHECK: scf.forall (%{{.*}}) in (8) {
  scf.forall (%i) = (0) to (8) step (1) {
    scf.forall.in_parallel {
    }
  }
  return
}

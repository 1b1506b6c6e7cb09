// RUN: xetl-opt %s -p convert-forall-to-parallel | filecheck %s

// Constants become values; values stay.
// CHECK-LABEL: @entry
// CHECK-DAG:   %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG:   %[[END:.*]] = arith.constant 32 : index
// CHECK-DAG:   %[[ONE:.*]] = arith.constant 1 : index
// CHECK:       scf.parallel (%i, %j) = (%[[ZERO]], %{{.*}}) to (%[[END]], %n) step (%[[ONE]], %{{.*}}) {
// CHECK-NEXT:    %x = memref.load %m[%i, %j]
// CHECK-NEXT:    memref.store %x, %m[%j, %i]
// CHECK-NEXT:    scf.reduce
func.func @entry(%m: memref<32x32xf32>, %n: index) {
  scf.forall (%i, %j) in (32, %n) {
    %x = memref.load %m[%i, %j] : memref<32x32xf32>
    memref.store %x, %m[%j, %i] : memref<32x32xf32>
  }
  func.return
}

// Nested ones, and bounds that do not begin at 0.
// CHECK-LABEL: @nested
// CHECK:       scf.parallel (%i) = (%n) to (%{{.*}}) step (%{{.*}}) {
// CHECK:         scf.parallel (%j) = (%i) to (%n) step (%i) {
// CHECK-NOT:   forall
func.func @nested(%m: memref<32x32xf32>, %n: index) {
  scf.forall (%i) = (%n) to (7) step (2) {
    scf.forall (%j) = (%i) to (%n) step (%i) {
    }
  }
  func.return
}

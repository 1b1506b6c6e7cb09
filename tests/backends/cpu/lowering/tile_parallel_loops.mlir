// RUN: xetl-opt %s -p 'tile-parallel-loops{sizes=4,8}' | filecheck %s
// Seed 003, "2D parallelism".

!a = memref<32x32x32xbf16, strided<[1024, 32, 1], offset: ?>>
!b = memref<32x16x32x2xbf16, strided<[1024, 64, 2, 1], offset: ?>>
!c = memref<32x32xbf16, strided<[1024, 1], offset: ?>>

// CHECK-LABEL: @entry
// CHECK-DAG:   %[[S4:.*]] = arith.constant 4 : index
// CHECK-DAG:   %[[S8:.*]] = arith.constant 8 : index
// CHECK:       scf.parallel (%[[P:.*]], %[[Q:.*]]) = (%c0, %c0) to (%c32, %c32) step (%[[S4]], %[[S8]]) {
// CHECK:         scf.for %[[U:.*]] = %{{.*}} to %{{.*}} step %c1 {
// CHECK:           %i = arith.addi %[[U]], %[[P]] : index
// CHECK:           scf.for %[[V:.*]] = %{{.*}} to %{{.*}} step %c1 {
// CHECK:             %j = arith.addi %[[V]], %[[Q]] : index
// CHECK:             affine.apply {{.*}}(%i)
// CHECK:             affine.apply {{.*}}(%j)
// CHECK:             xsmm.brgemm(
// CHECK:       scf.reduce
func.func @entry(%A: memref<32x32x32x32xbf16>, %B: memref<32x32x16x32x2xbf16>, %C: memref<1024x1024xbf16>) {
  %c32_i64 = arith.constant 32 : i64
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%c32, %c32) step (%c1, %c1) {
    %0 = affine.apply affine_map<(d0) -> (d0 * 32)>(%i)
    %1 = affine.apply affine_map<(d0) -> (d0 * 32)>(%j)
    %a = memref.subview %A[%i, 0, 0, 0] [1, 32, 32, 32] [1, 1, 1, 1] : memref<32x32x32x32xbf16> to !a
    %b = memref.subview %B[%j, 0, 0, 0, 0] [1, 32, 16, 32, 2] [1, 1, 1, 1, 1] : memref<32x32x16x32x2xbf16> to !b
    %c = memref.subview %C[%0, %1] [32, 32] [1, 1] : memref<1024x1024xbf16> to !c
    %k = xsmm.brgemm.dispatch [32, 32, 32, 32, 32, 1024, 1024, 1024] flags = (vnni_b) data_type = bf16
    xsmm.brgemm(data_type = bf16, %k, %a, %b, %c, %c32_i64) : (i64, !a, !b, !c, i64) -> ()
    scf.reduce
  }
  func.return
}

// Sizes that do not divide: the inner loops end at the bounds.
// CHECK-LABEL: @ragged
// CHECK:       scf.parallel (%[[P:.*]], %[[Q:.*]]) = (%c0, %c0) to (%n, %c10) step
// CHECK:         %[[REST:.*]] = arith.subi %n, %[[P]] : index
// CHECK:         %[[END:.*]] = arith.minsi %{{.*}}, %[[REST]] : index
// CHECK:         scf.for %[[U:.*]] = %{{.*}} to %[[END]] step %c1 {
// CHECK:           %i = arith.addi %[[U]], %[[P]] : index
// CHECK:           %[[END:.*]] = arith.minsi
// CHECK:           scf.for %[[V:.*]] = %{{.*}} to %[[END]] step %c1 {
// CHECK:             %j = arith.addi %[[V]], %[[Q]] : index
// CHECK:             memref.store %f, %M[%i, %j]
func.func @ragged(%M: memref<?x?xf32>, %n: index, %f: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %c10) step (%c1, %c1) {
    memref.store %f, %M[%i, %j] : memref<?x?xf32>
    scf.reduce
  }
  func.return
}

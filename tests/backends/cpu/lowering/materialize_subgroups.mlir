// RUN: xetl-opt %s -p materialize-subgroups | filecheck %s

// Without a barrier the subgroups run one after the other.
// CHECK-LABEL: @plain
// CHECK:       scf.parallel
// CHECK:         scf.for %[[ME:.*]] = {{.*}} to
// CHECK-NOT:       gpu.subgroup_id
// CHECK:           arith.addi %[[ME]]
func.func @plain(%n: index) attributes {xetile.subgroups = array<i64: 2, 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%x) = (%c0) to (%n) step (%c1) {
    %me = gpu.subgroup_id : index
    %y = arith.addi %me, %x : index
    scf.reduce
  }
  func.return
}

// With one each is a fiber; what they share stands outside.
// CHECK-LABEL: @meets
// CHECK:       memref.alloc() : memref<4x16xf32, 3 : i64>
// CHECK:       "cpu.fibers"
// CHECK:         "cpu.barrier"
// CHECK-NOT:   gpu.barrier
func.func @meets(%n: index) attributes {xetile.subgroups = array<i64: 2, 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%x) = (%c0) to (%n) step (%c1) {
    %s = memref.alloc() : memref<4x16xf32, 3 : i64>
    %me = gpu.subgroup_id : index
    gpu.barrier
    scf.reduce
  }
  func.return
}

// A workgroup-level kernel stays as it is.
// CHECK-LABEL: @workgroup
// CHECK-NOT:   cpu.fibers
// CHECK:       gpu.barrier
func.func @workgroup(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%x) = (%c0) to (%n) step (%c1) {
    gpu.barrier
    scf.reduce
  }
  func.return
}

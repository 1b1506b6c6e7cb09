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

// Named barriers are counted in memory of the program; a subgroup that waits lets the
// others go on until enough have arrived, or nobody moves.
// CHECK-LABEL: @named
// CHECK:       memref.alloca() : memref<33xindex>
// CHECK:       cpu.fibers
// CHECK-NOT:   xegpu
// CHECK:         scf.while
// CHECK:           cpu.barrier
// CHECK:         xetile.assert {{.*}} "the subgroups wait for one another"
func.func @named(%n: index) attributes {xetile.subgroups = array<i64: 2, 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %id = arith.constant 3 : i8
    %count = arith.constant 4 : i8
    %b = xegpu.init_nbarrier %id, %count : i8, i8 -> !xegpu.nbarrier
    xegpu.nbarrier_arrive %b : !xegpu.nbarrier
    xegpu.nbarrier_wait %b : !xegpu.nbarrier
    scf.reduce
  }
  return
}

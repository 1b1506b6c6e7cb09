// RUN: xetl-opt %s -p gather-barriers --split-input-file --verify-stage lanes | filecheck %s

// Both sides are cut; what a part found, the next one gets from the branch. A side with
// fewer barriers has nothing to do in the end, but to give its value.
// CHECK-LABEL: simt.func @both_sides
// CHECK:       %[[A0:[a-z0-9]+]], %[[A1:[a-z0-9]+]] = scf.if %c -> (i64, i64) {
// CHECK-NEXT:    %[[X:.*]] = arith.addi %p, %p : i64
// CHECK-NEXT:    %[[Z:.*]] = arith.constant 0 : i64
// CHECK-NEXT:    scf.yield %[[X]], %[[Z]] : i64, i64
// CHECK-NEXT:  } else {
// CHECK-NEXT:    %[[Y:.*]] = arith.muli %p, %p : i64
// CHECK-NEXT:    %[[Z2:.*]] = arith.constant 0 : i64
// CHECK-NEXT:    scf.yield %[[Z2]], %[[Y]] : i64, i64
// CHECK-NEXT:  }
// CHECK-NEXT:  simt.barrier{{$}}
// CHECK-NEXT:  %[[B:.*]] = scf.if %c -> (i64) {
// CHECK:         %[[W:.*]] = arith.addi %[[A0]], %p : i64
// CHECK:       } else {
// CHECK-NEXT:    simt.store %[[A1]], %p, %on : i64
// CHECK:       }
// CHECK-NEXT:  simt.barrier{{$}}
// CHECK-NEXT:  %[[R:.*]] = scf.if %c -> (i64) {
// CHECK-NEXT:    scf.yield %[[B]] : i64
// CHECK-NEXT:  } else {
// CHECK-NEXT:    scf.yield %[[A1]] : i64
// CHECK-NEXT:  }
// CHECK-NEXT:  simt.store %[[R]]
// CHECK-NOT:   barrier
simt.func @both_sides(%c: i1, %on: i1, %p: i64, %log: i64) attributes {work_group = array<i64: 64, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64} {
  %r = scf.if %c -> (i64) {
    %x = arith.addi %p, %p : i64
    simt.named_barrier 1 of 2
    %w = arith.addi %x, %p : i64
    simt.named_barrier 3 of 2
    scf.yield %w : i64
  } else {
    %y = arith.muli %p, %p : i64
    simt.named_barrier 2 of 2
    simt.store %y, %p, %on : i64
    scf.yield %y : i64
  }
  simt.store %r, %p, %on : i64
  simt.return
}

// -----

// Of a branch in a branch the barrier comes out of both.
// CHECK-LABEL: simt.func @nested
// CHECK:       scf.if %c {
// CHECK-NEXT:    scf.if %d {
// CHECK-NEXT:      simt.store
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK-NEXT:  simt.barrier{{$}}
// CHECK-NEXT:  scf.if %c {
// CHECK-NEXT:    scf.if %d {
// CHECK-NEXT:      simt.store
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK-NEXT:  simt.return
simt.func @nested(%c: i1, %d: i1, %on: i1, %p: i64, %log: i64) attributes {work_group = array<i64: 64, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64} {
  scf.if %c {
    scf.if %d {
      simt.store %p, %p, %on : i64
      simt.barrier_arrive
      simt.barrier_wait
      simt.store %p, %p, %on : i64
    }
  }
  simt.return
}

// -----

// Outside of branches a barrier stays where it is.
// CHECK-LABEL: simt.func @outside
// CHECK:       scf.for
// CHECK-NEXT:    simt.barrier{{$}}
// CHECK-NOT:   named
simt.func @outside(%n: index, %log: i64) attributes {work_group = array<i64: 64, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    simt.named_barrier 1 of 2
  }
  simt.return
}

// -----

// Whole barriers are in no branch that subgroups take differently.
// CHECK-LABEL: simt.func @whole
// CHECK:       scf.if
// CHECK-NEXT:    simt.barrier{{$}}
simt.func @whole(%c: i1, %log: i64) attributes {work_group = array<i64: 64, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64} {
  scf.if %c {
    simt.barrier
  }
  simt.return
}

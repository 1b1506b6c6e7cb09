// RUN: xetl-opt %s -p split-barriers --split-input-file --verify-stage lanes | filecheck %s

// Products on both sides: a subgroup arrives before the first and waits behind the last.
// CHECK-LABEL: simt.func @splits
// CHECK:         simt.load
// CHECK-NEXT:    simt.barrier_arrive
// CHECK-COUNT-5: simt.dpas
// CHECK:         scf.for
// CHECK-COUNT-3: simt.dpas
// CHECK:         simt.barrier_wait
// CHECK-NEXT:    simt.store
// CHECK-NOT:     simt.barrier
simt.func @splits(%p: i64, %x: vector<8xi16>, %y: vector<8xi32>, %z: vector<8xf32>, %log: i64) attributes {work_group = array<i64: 64, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 64 : i64} {
  %on = arith.constant true
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %at = simt.local_base 0
  %fill = arith.constant 0.0 : f32
  %v = simt.load %at, %on, %fill {space = "local"} : f32
  %0 = simt.dpas %x, %y, %z {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %1 = simt.dpas %x, %y, %0 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %2 = simt.dpas %x, %y, %1 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %3 = simt.dpas %x, %y, %2 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %4 = simt.dpas %x, %y, %3 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  simt.barrier
  %5 = scf.for %i = %c0 to %c1 step %c1 iter_args(%s = %4) -> (vector<8xf32>) {
    %6 = simt.dpas %x, %y, %s {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
    %7 = simt.dpas %x, %y, %6 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
    %8 = simt.dpas %x, %y, %7 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
    scf.yield %8 : vector<8xf32>
  }
  %e = vector.extract %5[0] : f32 from vector<8xf32>
  simt.block_prefetch %p, %p, %p, %p, %p, %p {bits = 16, rows = 32, columns = 16}
  simt.store %e, %at, %on {space = "local"} : f32
  simt.return
}

// -----

// Two products are not worth two more fences.
// CHECK-LABEL: simt.func @too_few
// CHECK:       simt.dpas
// CHECK-NEXT:  simt.dpas
// CHECK-NEXT:  simt.barrier{{$}}
// CHECK-NOT:   simt.barrier_
simt.func @too_few(%x: vector<8xi16>, %y: vector<8xi32>, %z: vector<8xf32>, %log: i64) attributes {work_group = array<i64: 64, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 64 : i64} {
  %0 = simt.dpas %x, %y, %z {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %1 = simt.dpas %x, %y, %0 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  simt.barrier
  simt.return
}

// -----

// Nothing moves over an access: of memory that is only read, of what an atomic gives,
// of a loop that loads, of a record.
// CHECK-LABEL: simt.func @accesses
// CHECK:       simt.barrier{{$}}
// CHECK-NEXT:  simt.load
// CHECK:       simt.barrier{{$}}
// CHECK-NEXT:  simt.atomic
// CHECK:       simt.barrier{{$}}
// CHECK-NEXT:  scf.for
// CHECK:       simt.barrier{{$}}
// CHECK-NEXT:  simt.print
// CHECK-NOT:   simt.barrier_
simt.func @accesses(%p: i64, %x: vector<8xf32>, %y: vector<8xf32>, %log: i64) attributes {work_group = array<i64: 64, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 64 : i64} {
  %on = arith.constant true
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %fill = arith.constant 0.0 : f32
  simt.barrier
  %v = simt.load %p, %on, %fill : f32
  simt.barrier
  %w = simt.atomic "add" %v, %p, %on : f32
  simt.barrier
  %u = scf.for %i = %c0 to %c1 step %c1 iter_args(%s = %w) -> (f32) {
    %t = simt.load %p, %on, %s : f32
    scf.yield %t : f32
  }
  simt.barrier
  simt.print "{}" (%u : f32) {shapes = [array<i64>]}
  simt.return
}

// -----

// Halves that the user wrote stay apart; what stands between them is his business.
// CHECK-LABEL: simt.func @written
// CHECK:       simt.barrier_arrive
// CHECK:       simt.load
// CHECK:       simt.barrier_wait
simt.func @written(%p: i64, %log: i64) attributes {work_group = array<i64: 64, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64} {
  %on = arith.constant true
  %fill = arith.constant 0.0 : f32
  simt.barrier_arrive
  %v = simt.load %p, %on, %fill : f32
  simt.store %v, %p, %on : f32
  simt.barrier_wait
  simt.return
}

// -----

// A subgroup that arrives twice would be counted twice: whole barriers.
// CHECK-LABEL: simt.func @overlap
// CHECK-NOT:   simt.barrier_
// CHECK-COUNT-2: simt.barrier{{$}}
// CHECK-NOT:   simt.barrier
simt.func @overlap(%log: i64) attributes {work_group = array<i64: 64, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64} {
  simt.barrier_arrive
  simt.barrier_arrive
  simt.barrier_wait
  simt.barrier_wait
  simt.return
}

// -----

// A loop between the halves that has halves of its own is the same mistake.
// CHECK-LABEL: simt.func @nested
// CHECK-NOT:   simt.barrier_
// CHECK:       scf.for
// CHECK-NEXT:    simt.barrier{{$}}
// CHECK-NOT:   simt.barrier_
simt.func @nested(%log: i64) attributes {work_group = array<i64: 64, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  simt.barrier_arrive
  scf.for %i = %c0 to %c1 step %c1 {
    simt.barrier_arrive
    simt.barrier_wait
  }
  simt.barrier_wait
  simt.return
}

// -----

// Intel's compiler may give the first named barrier the number of the halves.
// CHECK-LABEL: simt.func @beside_named
// CHECK-NEXT:  simt.named_barrier 1 of 2
// CHECK-NEXT:  simt.barrier{{$}}
// CHECK-NEXT:  simt.return
simt.func @beside_named(%log: i64) attributes {work_group = array<i64: 64, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64} {
  simt.named_barrier 1 of 2
  simt.barrier_arrive
  simt.barrier_wait
  simt.return
}

// -----

// Who has failed is found by all at the same barrier.
// CHECK-LABEL: simt.func @asserts
// CHECK:       simt.assert
// CHECK-NEXT:  simt.barrier{{$}}
// CHECK-NEXT:  simt.return
simt.func @asserts(%c: i1, %log: i64) attributes {work_group = array<i64: 64, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64} {
  simt.barrier_arrive
  simt.assert %c, "fails" {shapes = []}
  simt.barrier_wait
  simt.return
}

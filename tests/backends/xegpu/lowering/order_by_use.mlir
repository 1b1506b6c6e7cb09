// RUN: xetl-opt %s -p order-by-use --split-input-file --verify-stage lanes | filecheck %s

// One part goes to its store before the next begins; what has an effect keeps its order.
// CHECK-LABEL: simt.func @parts
// CHECK:       %[[L0:.*]] = simt.load
// CHECK:       %[[L1:.*]] = simt.load
// CHECK-NEXT:  %[[A0:.*]] = arith.addf %[[L0]]
// CHECK-NEXT:  %[[B0:.*]] = arith.mulf %[[A0]]
// CHECK-NEXT:  simt.store %[[B0]]
// CHECK-NEXT:  %[[A1:.*]] = arith.addf %[[L1]]
// CHECK-NEXT:  %[[B1:.*]] = arith.mulf %[[A1]]
// CHECK-NEXT:  simt.store %[[B1]]
simt.func @parts(%p: i64, %q: i64, %log: i64) attributes {work_group = array<i64: 64, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 64 : i64} {
  %on = arith.constant true
  %fill = arith.constant 0.0 : f32
  %x0 = simt.load %p, %on, %fill {space = "global"} : f32
  %x1 = simt.load %q, %on, %fill {space = "global"} : f32
  %a0 = arith.addf %x0, %x0 : f32
  %a1 = arith.addf %x1, %x1 : f32
  %b0 = arith.mulf %a0, %a0 : f32
  %b1 = arith.mulf %a1, %a1 : f32
  simt.store %b0, %p, %on {space = "global"} : f32
  simt.store %b1, %q, %on {space = "global"} : f32
  simt.return
}

// -----

// A loop takes what its body reads; a block with products stays as it is.
// CHECK-LABEL: simt.func @products
// CHECK:       simt.load
// CHECK:       %[[Y:.*]] = arith.addf
// CHECK-NEXT:  scf.for
// CHECK-NEXT:  %[[E:.*]] = arith.addf %[[Y]]
// CHECK-NEXT:  simt.dpas
// CHECK-NEXT:  simt.store %[[E]]
simt.func @products(%p: i64, %u: vector<8xi16>, %v: vector<8xi32>, %w: vector<8xf32>, %log: i64) attributes {work_group = array<i64: 64, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 64 : i64} {
  %on = arith.constant true
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %fill = arith.constant 0.0 : f32
  %y = arith.addf %fill, %fill : f32
  %x = simt.load %p, %on, %fill {space = "global"} : f32
  %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%s = %w) -> (vector<8xf32>) {
    %e = arith.addf %y, %y : f32
    %d = simt.dpas %u, %v, %s {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
    simt.store %e, %p, %on {space = "global"} : f32
    scf.yield %d : vector<8xf32>
  }
  %z = vector.extract %r[0] : f32 from vector<8xf32>
  simt.store %x, %p, %on {space = "global"} : f32
  simt.store %z, %p, %on {space = "global"} : f32
  simt.return
}

// -----

// What lanes store of 16 bits one after the other is computed before: each element branches.
// CHECK-LABEL: simt.func @by_lanes
// CHECK:       %[[A0:.*]] = arith.addi
// CHECK-NEXT:  %[[A1:.*]] = arith.addi
// CHECK-NEXT:  simt.block_store %[[A0]]
// CHECK-NEXT:  simt.block_store %[[A1]]
simt.func @by_lanes(%p: i64, %x0: vector<8xi16>, %x1: vector<8xi16>, %log: i64) attributes {work_group = array<i64: 64, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64} {
  %a0 = arith.addi %x0, %x0 : vector<8xi16>
  simt.block_store %a0, %p, %p, %p, %p, %p, %p {bits = 16 : i64, rows = 8 : i64, columns = 16 : i64, by_lanes} : vector<8xi16>
  %a1 = arith.addi %x1, %x1 : vector<8xi16>
  simt.block_store %a1, %p, %p, %p, %p, %p, %p {bits = 16 : i64, rows = 8 : i64, columns = 16 : i64, by_lanes} : vector<8xi16>
  simt.return
}

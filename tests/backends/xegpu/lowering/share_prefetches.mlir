// RUN: xetl-opt %s -p share-prefetches --split-input-file --verify-stage lanes | filecheck %s
// Of 4 subgroups two ask for each block: the first two ask for the first one.

// CHECK-LABEL: simt.func @two(
// CHECK:         %[[OWN:.*]] = simt.subgroup_id
// CHECK:         %[[FIRST:.*]] = arith.cmpi ult, %[[OWN]], %{{.*}} : i32
// CHECK:         %[[BASE:.*]] = arith.select %[[FIRST]], %a, %b : i64
// CHECK:         scf.for %[[I:.*]] =
// CHECK:           %[[AT:.*]] = arith.index_cast %[[I]]
// CHECK-NOT:       simt.block_prefetch
// CHECK:           %[[X:.*]] = arith.select %[[FIRST]], %[[AT]], %[[PART:.*]] : i64
// CHECK:           %[[Y:.*]] = arith.select %[[FIRST]], %[[PART]], %[[AT]] : i64
// CHECK:           simt.block_prefetch %[[BASE]], %w, %h, %w, %[[X]], %[[Y]] {bits
// CHECK-NOT:       simt.block_prefetch
// CHECK:         simt.return
simt.func @two(%a: i64, %b: i64, %w: i64, %h: i64, %log: i64) attributes {work_group = array<i64: 64, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %sg = simt.subgroup_id
  %own = arith.index_cast %sg : i32 to index
  %turn = arith.remui %own, %c2 : index
  %row = arith.muli %turn, %c16 : index
  %part = arith.index_cast %row : index to i64
  scf.for %i = %c0 to %c64 step %c16 {
    %at = arith.index_cast %i : index to i64
    simt.block_prefetch %a, %w, %h, %w, %at, %part {bits = 16 : i64, rows = 16 : i64, columns = 32 : i64}
    simt.block_prefetch %b, %w, %h, %w, %part, %at {bits = 16 : i64, rows = 16 : i64, columns = 32 : i64}
    scf.yield
  }
  simt.return
}

// -----
// Not where each has a share of its own, nor of one matrix, nor of two shapes.

// CHECK-LABEL: simt.func @others(
// CHECK-NOT:     arith.select
// CHECK-COUNT-6: simt.block_prefetch
simt.func @others(%a: i64, %b: i64, %w: i64, %h: i64, %log: i64) attributes {work_group = array<i64: 64, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64} {
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0 : i64
  %sg = simt.subgroup_id
  %own = arith.index_cast %sg : i32 to index
  %turn = arith.remui %own, %c4 : index
  %part = arith.index_cast %turn : index to i64
  simt.block_prefetch %a, %w, %h, %w, %zero, %part {bits = 16 : i64, rows = 16 : i64, columns = 32 : i64}
  simt.block_prefetch %b, %w, %h, %w, %zero, %part {bits = 16 : i64, rows = 16 : i64, columns = 32 : i64}
  simt.block_prefetch %a, %w, %h, %w, %zero, %zero {bits = 16 : i64, rows = 8 : i64, columns = 32 : i64}
  simt.block_prefetch %a, %w, %h, %w, %zero, %zero {bits = 16 : i64, rows = 8 : i64, columns = 32 : i64}
  simt.block_prefetch %a, %w, %h, %w, %zero, %zero {bits = 16 : i64, rows = 32 : i64, columns = 32 : i64}
  simt.block_prefetch %b, %w, %h, %w, %zero, %zero {bits = 16 : i64, rows = 4 : i64, columns = 32 : i64}
  simt.return
}

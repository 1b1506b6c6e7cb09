// RUN: xetl-opt %s -p fit-registers{device=pvc} --split-input-file --verify-stage lanes | filecheck %s

// Nine messages bring 32 registers each, of 256 that there are: each goes to its products.
// CHECK-LABEL: simt.func @too_many
// CHECK:       simt.block_load
// CHECK-NEXT:  simt.dpas
// CHECK-NEXT:  simt.dpas
// CHECK:       simt.block_load
// CHECK-NEXT:  simt.dpas
// CHECK-NEXT:  simt.dpas
simt.func @too_many(%p: i64, %w: i64, %h: i64, %x: i64, %y: i64, %q: i64, %a: vector<8xi16>, %c: vector<8xf32>, %log: i64) attributes {work_group = array<i64: 16, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64} {
  %b0:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b1:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b2:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b3:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b4:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b5:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b6:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b7:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b8:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %s0 = simt.dpas %a, %b0#0, %c {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s1 = simt.dpas %a, %b0#1, %s0 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s2 = simt.dpas %a, %b1#0, %s1 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s3 = simt.dpas %a, %b1#1, %s2 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s4 = simt.dpas %a, %b2#0, %s3 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s5 = simt.dpas %a, %b2#1, %s4 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s6 = simt.dpas %a, %b3#0, %s5 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s7 = simt.dpas %a, %b3#1, %s6 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s8 = simt.dpas %a, %b4#0, %s7 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s9 = simt.dpas %a, %b4#1, %s8 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s10 = simt.dpas %a, %b5#0, %s9 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s11 = simt.dpas %a, %b5#1, %s10 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s12 = simt.dpas %a, %b6#0, %s11 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s13 = simt.dpas %a, %b6#1, %s12 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s14 = simt.dpas %a, %b7#0, %s13 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s15 = simt.dpas %a, %b7#1, %s14 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s16 = simt.dpas %a, %b8#0, %s15 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s17 = simt.dpas %a, %b8#1, %s16 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %t = arith.bitcast %s17 : vector<8xf32> to vector<8xi32>
  simt.block_store %t, %q, %w, %h, %w, %x, %y {bits = 32 : i64, rows = 8 : i64, columns = 16 : i64} : vector<8xi32>
  simt.return
}

// -----

// Three fit: they stay as early as they are.
// CHECK-LABEL: simt.func @enough
// CHECK-COUNT-3: simt.block_load
// CHECK-COUNT-3: simt.dpas
simt.func @enough(%p: i64, %w: i64, %h: i64, %x: i64, %y: i64, %q: i64, %a: vector<8xi16>, %c: vector<8xf32>, %log: i64) attributes {work_group = array<i64: 16, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64} {
  %b0:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b1:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b2:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %s0 = simt.dpas %a, %b0#0, %c {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s1 = simt.dpas %a, %b1#0, %s0 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s2 = simt.dpas %a, %b2#0, %s1 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %t = arith.bitcast %s2 : vector<8xf32> to vector<8xi32>
  simt.block_store %t, %q, %w, %h, %w, %x, %y {bits = 32 : i64, rows = 8 : i64, columns = 16 : i64} : vector<8xi32>
  simt.return
}

// -----

// No load goes over what writes memory: all nine are in use at the store.
// CHECK-LABEL:   simt.func @written
// CHECK-COUNT-9: simt.block_load
// CHECK:         simt.store
// CHECK-NOT:     simt.block_load
// CHECK:         simt.return
simt.func @written(%p: i64, %w: i64, %h: i64, %x: i64, %y: i64, %q: i64, %a: vector<8xi16>, %c: vector<8xf32>, %log: i64) attributes {work_group = array<i64: 16, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64} {
  %on = arith.constant true
  %z = arith.constant 0.0 : f32
  %b0:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b1:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b2:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b3:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b4:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b5:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b6:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b7:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b8:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  simt.store %z, %q, %on {space = "global"} : f32
  %s0 = simt.dpas %a, %b0#0, %c {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s1 = simt.dpas %a, %b0#1, %s0 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s2 = simt.dpas %a, %b0#2, %s1 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s3 = simt.dpas %a, %b0#3, %s2 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s4 = simt.dpas %a, %b1#0, %s3 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s5 = simt.dpas %a, %b1#1, %s4 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s6 = simt.dpas %a, %b1#2, %s5 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s7 = simt.dpas %a, %b1#3, %s6 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s8 = simt.dpas %a, %b2#0, %s7 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s9 = simt.dpas %a, %b2#1, %s8 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s10 = simt.dpas %a, %b2#2, %s9 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s11 = simt.dpas %a, %b2#3, %s10 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s12 = simt.dpas %a, %b3#0, %s11 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s13 = simt.dpas %a, %b3#1, %s12 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s14 = simt.dpas %a, %b3#2, %s13 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s15 = simt.dpas %a, %b3#3, %s14 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s16 = simt.dpas %a, %b4#0, %s15 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s17 = simt.dpas %a, %b4#1, %s16 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s18 = simt.dpas %a, %b4#2, %s17 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s19 = simt.dpas %a, %b4#3, %s18 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s20 = simt.dpas %a, %b5#0, %s19 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s21 = simt.dpas %a, %b5#1, %s20 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s22 = simt.dpas %a, %b5#2, %s21 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s23 = simt.dpas %a, %b5#3, %s22 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s24 = simt.dpas %a, %b6#0, %s23 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s25 = simt.dpas %a, %b6#1, %s24 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s26 = simt.dpas %a, %b6#2, %s25 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s27 = simt.dpas %a, %b6#3, %s26 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s28 = simt.dpas %a, %b7#0, %s27 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s29 = simt.dpas %a, %b7#1, %s28 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s30 = simt.dpas %a, %b7#2, %s29 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s31 = simt.dpas %a, %b7#3, %s30 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s32 = simt.dpas %a, %b8#0, %s31 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s33 = simt.dpas %a, %b8#1, %s32 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s34 = simt.dpas %a, %b8#2, %s33 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s35 = simt.dpas %a, %b8#3, %s34 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %t = arith.bitcast %s35 : vector<8xf32> to vector<8xi32>
  simt.block_store %t, %q, %w, %h, %w, %x, %y {bits = 32 : i64, rows = 8 : i64, columns = 16 : i64} : vector<8xi32>
  simt.return
}

// -----

// The sums want a part of each message, then another: only half a message at a time fits.
// CHECK-LABEL:   simt.func @halves
// CHECK:         simt.block_load {{.*}} rows = 16 : i64
// CHECK-NOT:     rows = 32
// CHECK:         simt.return
simt.func @halves(%p: i64, %w: i64, %h: i64, %x: i64, %y: i64, %q: i64, %a: vector<8xi16>, %c: vector<8xf32>, %log: i64) attributes {work_group = array<i64: 16, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64} {
  %b0:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b1:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b2:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b3:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b4:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b5:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b6:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b7:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %b8:4 = simt.block_load %p, %w, %h, %w, %x, %y {bits = 16 : i64, rows = 32 : i64, columns = 16 : i64, count = 2 : i64, mode = "transform"} : vector<8xi32>, vector<8xi32>, vector<8xi32>, vector<8xi32>
  %s0 = simt.dpas %a, %b0#0, %c {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s1 = simt.dpas %a, %b1#0, %s0 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s2 = simt.dpas %a, %b2#0, %s1 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s3 = simt.dpas %a, %b3#0, %s2 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s4 = simt.dpas %a, %b4#0, %s3 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s5 = simt.dpas %a, %b5#0, %s4 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s6 = simt.dpas %a, %b6#0, %s5 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s7 = simt.dpas %a, %b7#0, %s6 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s8 = simt.dpas %a, %b8#0, %s7 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s9 = simt.dpas %a, %b0#1, %s8 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s10 = simt.dpas %a, %b1#1, %s9 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s11 = simt.dpas %a, %b2#1, %s10 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s12 = simt.dpas %a, %b3#1, %s11 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s13 = simt.dpas %a, %b4#1, %s12 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s14 = simt.dpas %a, %b5#1, %s13 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s15 = simt.dpas %a, %b6#1, %s14 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s16 = simt.dpas %a, %b7#1, %s15 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %s17 = simt.dpas %a, %b8#1, %s16 {a_type = "bf16", b_type = "bf16"} : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %t = arith.bitcast %s17 : vector<8xf32> to vector<8xi32>
  simt.block_store %t, %q, %w, %h, %w, %x, %y {bits = 32 : i64, rows = 8 : i64, columns = 16 : i64} : vector<8xi32>
  simt.return
}

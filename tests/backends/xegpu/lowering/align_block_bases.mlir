// RUN: xetl-opt %s -p align-block-bases --split-input-file --verify-stage lanes | filecheck %s
// The base goes down to a multiple of 64 bytes, width and columns on by what that is.
// Blocks beside one another stay at a constant distance, which their messages need.

// CHECK-LABEL: simt.func @moved(
// CHECK-SAME:    xegpu.any_base = array<i64: 0, 4>
// CHECK:         %[[BASE:.*]] = arith.andi %base, %{{.*}} : i64
// CHECK:         %[[GAP:.*]] = arith.andi %base, %{{.*}} : i64
// CHECK:         %[[WIDTH:.*]] = arith.addi %k, %[[GAP]] : i64
// CHECK:         %[[COLUMNS:.*]] = arith.shrui %[[GAP]], %{{.*}} : i64
// CHECK:         %[[X:.*]] = arith.addi %{{.*}}, %[[COLUMNS]] : i64
// CHECK:         %[[NEXT:.*]] = arith.addi %[[X]], %{{.*}} : i64
// CHECK:         simt.block_load %[[BASE]], %[[WIDTH]], %m, %pitch, %[[X]], %{{.*}} {
// CHECK:         simt.block_store %{{.*}}, %[[BASE]], %[[WIDTH]], %m, %pitch, %[[NEXT]], %{{.*}} {
builtin.module attributes {xegpu.arguments = [["array", array<i64: 0, 1>, array<i64: 0>, array<i64: 0, 1>]]} {
  simt.func @moved(%base: i64, %m: i64, %k: i64, %pitch: i64, %log: i64) attributes {work_group = array<i64: 16, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64, xegpu.block_arguments = array<i64: 0>} {
    %zero = arith.constant 0 : i64
    %c16 = arith.constant 16 : index
    %id = simt.group_id x
    %program = arith.index_cast %id : i64 to index
    %x = arith.index_cast %program : index to i64
    %more = arith.addi %program, %c16 : index
    %beside = arith.index_cast %more : index to i64
    %v = simt.block_load %base, %k, %m, %pitch, %x, %zero {bits = 16 : i64, rows = 8 : i64, columns = 16 : i64} : vector<8xi16>
    simt.block_store %v, %base, %k, %m, %pitch, %beside, %zero {bits = 16 : i64, rows = 8 : i64, columns = 16 : i64} : vector<8xi16>
    simt.return
  }
}

// -----
// A block may begin to the left: there are zeros, and would not be behind the change.

// CHECK-LABEL: simt.func @left(
// CHECK-SAME:    xegpu.any_base = array<i64>
// CHECK-NOT:     arith.andi
// CHECK:         simt.block_load %base, %k, %m, %pitch, %x, %{{.*}} {
builtin.module attributes {xegpu.arguments = [["array", array<i64: 0, 1>, array<i64: 0>, array<i64: 0, 1>], ["i64", array<i64>, array<i64>, array<i64>]]} {
  simt.func @left(%base: i64, %m: i64, %k: i64, %pitch: i64, %x: i64, %log: i64) attributes {work_group = array<i64: 16, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64, xegpu.block_arguments = array<i64: 0>} {
    %zero = arith.constant 0 : i64
    %v = simt.block_load %base, %k, %m, %pitch, %x, %zero {bits = 16 : i64, rows = 8 : i64, columns = 16 : i64} : vector<8xi16>
    simt.return
  }
}

// RUN: xetl-opt %s -p clamp-block-offsets --split-input-file --verify-stage lanes | filecheck %s
// Numbers of the caller: each is limited once, where it is.

// CHECK-LABEL: simt.func @given(
// CHECK:         %[[LEAST:.*]] = arith.constant -33554432 : i64
// CHECK:         %[[MOST:.*]] = arith.constant 33554432 : i64
// CHECK:         %[[LOW:.*]] = arith.maxsi %x, %[[LEAST]] : i64
// CHECK:         %[[X:.*]] = arith.minsi %[[LOW]], %[[MOST]] : i64
// CHECK-NOT:     arith.maxsi
// CHECK:         simt.block_load %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[X]], %[[X]] {
// CHECK:         simt.block_prefetch %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[X]] {
builtin.module {
  simt.func @given(%base: i64, %m: i64, %k: i64, %pitch: i64, %x: i64, %log: i64) attributes {work_group = array<i64: 16, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64} {
    %zero = arith.constant 0 : i64
    %v = simt.block_load %base, %k, %m, %pitch, %x, %x {bits = 16 : i64, rows = 8 : i64, columns = 16 : i64} : vector<8xi16>
    simt.block_prefetch %base, %k, %m, %pitch, %zero, %x {bits = 16 : i64, rows = 8 : i64, columns = 16 : i64}
    simt.return
  }
}

// -----
// What follows from the size of a matrix fits, also what a loop adds up; so does what
// follows from the number of a program.

// CHECK-LABEL: simt.func @known(
// CHECK-NOT:     arith.maxsi
// CHECK:         simt.return
builtin.module attributes {xegpu.arguments = [["array", array<i64: 0, 1>, array<i64: 0>, array<i64: 0, 1>]]} {
  simt.func @known(%base: i64, %m: i64, %k: i64, %pitch: i64, %log: i64) attributes {work_group = array<i64: 16, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64, xegpu.block_arguments = array<i64: 0>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %n = arith.index_cast %k : i64 to index
    %id = simt.group_id x
    %program = arith.index_cast %id : i64 to index
    %row = arith.muli %program, %c32 : index
    %y = arith.index_cast %row : index to i64
    %r = scf.for %i = %c0 to %n step %c32 iter_args(%at = %c0) -> (index) {
      %counter = arith.index_cast %i : index to i64
      %x = arith.index_cast %at : index to i64
      %half = arith.shrsi %at, %c1 : index
      %words = arith.index_cast %half : index to i64
      simt.block_prefetch %base, %k, %m, %pitch, %words, %y {bits = 32 : i64, rows = 8 : i64, columns = 16 : i64}
      %v = simt.block_load %base, %k, %m, %pitch, %x, %y {bits = 16 : i64, rows = 8 : i64, columns = 16 : i64} : vector<8xi16>
      simt.block_store %v, %base, %k, %m, %pitch, %counter, %y {bits = 16 : i64, rows = 8 : i64, columns = 16 : i64} : vector<8xi16>
      %next = arith.addi %at, %c32 : index
      scf.yield %next : index
    }
    simt.return
  }
}

// -----
// Rows of 1,024 programs may not fit: 2^21 of them are allowed. Lanes take 64 bits.

// CHECK-LABEL: simt.func @far(
// CHECK:         %[[Y:.*]] = arith.minsi
// CHECK:         simt.block_load %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[Y]] {
// CHECK:         simt.block_load %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %x {{{.*}}by_lanes
builtin.module attributes {xegpu.arguments = [["array", array<i64: 0, 1>, array<i64: 0>, array<i64: 0, 1>], ["i64", array<i64>, array<i64>, array<i64>]]} {
  simt.func @far(%base: i64, %m: i64, %k: i64, %pitch: i64, %x: i64, %log: i64) attributes {work_group = array<i64: 16, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64, xegpu.block_arguments = array<i64: 0>} {
    %zero = arith.constant 0 : i64
    %c1024 = arith.constant 1024 : index
    %id = simt.group_id x
    %program = arith.index_cast %id : i64 to index
    %row = arith.muli %program, %c1024 : index
    %y = arith.index_cast %row : index to i64
    %v = simt.block_load %base, %k, %m, %pitch, %zero, %y {bits = 16 : i64, rows = 8 : i64, columns = 16 : i64} : vector<8xi16>
    %w = simt.block_load %base, %k, %m, %pitch, %zero, %x {bits = 16 : i64, rows = 8 : i64, columns = 16 : i64, by_lanes} : vector<8xi16>
    simt.return
  }
}

// -----
// Blocks at constant distances share what is limited: the distance is added behind it.

// CHECK-LABEL: simt.func @apart(
// CHECK:         %[[LOW:.*]] = arith.maxsi %x,
// CHECK:         %[[X:.*]] = arith.minsi %[[LOW]],
// CHECK-NOT:     arith.maxsi
// CHECK:         %[[NEXT:.*]] = arith.addi %[[X]], %{{.*}} : i64
// CHECK:         simt.block_load %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[X]], %{{.*}} {
// CHECK:         simt.block_load %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[NEXT]], %{{.*}} {
builtin.module {
  simt.func @apart(%base: i64, %m: i64, %k: i64, %pitch: i64, %x: i64, %log: i64) attributes {work_group = array<i64: 16, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64} {
    %zero = arith.constant 0 : i64
    %c16 = arith.constant 16 : index
    %column = arith.index_cast %x : i64 to index
    %first = arith.index_cast %column : index to i64
    %beside = arith.addi %column, %c16 : index
    %second = arith.index_cast %beside : index to i64
    %v = simt.block_load %base, %k, %m, %pitch, %first, %zero {bits = 16 : i64, rows = 8 : i64, columns = 16 : i64} : vector<8xi16>
    %w = simt.block_load %base, %k, %m, %pitch, %second, %zero {bits = 16 : i64, rows = 8 : i64, columns = 16 : i64} : vector<8xi16>
    simt.return
  }
}

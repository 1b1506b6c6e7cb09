// RUN: xetl-opt %s -p rotate-loops --split-input-file --verify-stage lanes | filecheck %s
// Blocks are moved of the array: it is not empty, so the loop over its columns runs.

// CHECK-LABEL: simt.func @columns(
// CHECK:         %[[SIZE:.*]] = arith.index_cast %k : i64 to index
// CHECK-NOT:     scf.for
// CHECK:         %[[END:.*]] = arith.index_cast %[[SIZE]] : index to i32
// CHECK:         %{{.*}}, %[[SUM:.*]] = scf.while (%[[I:.*]] = %{{.*}}, %[[X:.*]] = %{{.*}}) : (i32, f32) -> (i32, f32) {
// CHECK:           arith.index_cast %[[I]] : i32 to index
// CHECK:           %[[Y:.*]] = arith.addf %[[X]], %[[X]]
// CHECK:           %[[NEXT:.*]] = arith.addi %[[I]], %{{.*}} : i32
// CHECK:           %[[MORE:.*]] = arith.cmpi slt, %[[NEXT]], %[[END]] : i32
// CHECK:           scf.condition(%[[MORE]]) %[[NEXT]], %[[Y]]
// CHECK:           scf.yield
// CHECK:         simt.store %[[SUM]]
builtin.module attributes {xegpu.arguments = [["array", array<i64: 0, 1>, array<i64: 0>, array<i64: 0, 1>]]} {
  simt.func @columns(%base: i64, %m: i64, %k: i64, %pitch: i64, %log: i64) attributes {work_group = array<i64: 16, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64, xegpu.block_arguments = array<i64: 0>} {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %one = arith.constant 1.0 : f32
    %true = arith.constant true
    %n = arith.index_cast %k : i64 to index
    %r = scf.for %i = %c0 to %n step %c32 iter_args(%x = %one) -> (f32) {
      %y = arith.addf %x, %x : f32
      scf.yield %y : f32
    }
    simt.store %r, %base, %true : f32
    simt.return
  }
}

// -----
// The end is computed of it: as many steps as there are 32s, the last one counted whole.

// CHECK-LABEL: simt.func @steps(
// CHECK-NOT:     scf.for
// CHECK:         scf.while
builtin.module attributes {xegpu.arguments = [["i64", array<i64>, array<i64>, array<i64>], ["array", array<i64: 0, 1>, array<i64: 0>, array<i64: 0, 1>]]} {
  simt.func @steps(%number: i64, %base: i64, %m: i64, %k: i64, %pitch: i64, %log: i64) attributes {work_group = array<i64: 16, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64, xegpu.block_arguments = array<i64: 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c31 = arith.constant 31 : index
    %c32 = arith.constant 32 : index
    %n = arith.index_cast %k : i64 to index
    %more = arith.addi %n, %c31 : index
    %steps = arith.floordivsi %more, %c32 : index
    scf.for %i = %c0 to %steps step %c1 {
      simt.barrier
    }
    simt.return
  }
}

// -----
// The number behind the last does not fit 32 bits.

// CHECK-LABEL: simt.func @far(
// CHECK:         scf.while ({{.*}}) : (index) -> index {
builtin.module attributes {xegpu.arguments = [["array", array<i64: 0, 1>, array<i64: 0>, array<i64: 0, 1>]]} {
  simt.func @far(%base: i64, %m: i64, %k: i64, %pitch: i64, %log: i64) attributes {work_group = array<i64: 16, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64, xegpu.block_arguments = array<i64: 0>} {
    %c0 = arith.constant 0 : index
    %far = arith.constant 2147483647 : index
    %n = arith.index_cast %k : i64 to index
    scf.for %i = %c0 to %n step %far {
      simt.barrier
    }
    simt.return
  }
}

// -----
// Whole steps only: there may be none.

// CHECK-LABEL: simt.func @whole_steps(
// CHECK:         scf.for
builtin.module attributes {xegpu.arguments = [["array", array<i64: 0, 1>, array<i64: 0>, array<i64: 0, 1>]]} {
  simt.func @whole_steps(%base: i64, %m: i64, %k: i64, %pitch: i64, %log: i64) attributes {work_group = array<i64: 16, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64, xegpu.block_arguments = array<i64: 0>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %n = arith.index_cast %k : i64 to index
    %steps = arith.floordivsi %n, %c32 : index
    scf.for %i = %c0 to %steps step %c1 {
      simt.barrier
    }
    simt.return
  }
}

// -----
// Lanes move the elements of this array: any array is launched with it, empty ones too.

// CHECK-LABEL: simt.func @by_lanes(
// CHECK:         scf.for
builtin.module attributes {xegpu.arguments = [["array", array<i64: 0, 1>, array<i64: 0>, array<i64: 0, 1>]]} {
  simt.func @by_lanes(%base: i64, %m: i64, %k: i64, %pitch: i64, %log: i64) attributes {work_group = array<i64: 16, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64, xegpu.block_arguments = array<i64>} {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %n = arith.index_cast %k : i64 to index
    scf.for %i = %c0 to %n step %c32 {
      simt.barrier
    }
    simt.return
  }
}

// -----
// A number that the user passes may be 0; of constants the compiler knows itself.

// CHECK-LABEL: simt.func @numbers(
// CHECK-COUNT-2: scf.for
builtin.module attributes {xegpu.arguments = [["i64", array<i64>, array<i64>, array<i64>]]} {
  simt.func @numbers(%k: i64, %log: i64) attributes {work_group = array<i64: 16, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64, xegpu.block_arguments = array<i64>} {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %n = arith.index_cast %k : i64 to index
    scf.for %i = %c0 to %n step %c32 {
      simt.barrier
    }
    scf.for %i = %c0 to %c64 step %c32 {
      simt.barrier
    }
    simt.return
  }
}

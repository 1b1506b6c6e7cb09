// RUN: xetl-opt %s -p distribute-to-lanes{device=opencl} --split-input-file --verify-diagnostics | filecheck %s

// Messages that are emulated ask nothing of caches.
// CHECK-LABEL: simt.func @hints
// CHECK:       simt.block_load
// CHECK-NOT:   hint
// CHECK:       simt.return
gpu.module @m {
  gpu.func @hints(%a: memref<64x64xf32>) kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
    %c0 = arith.constant 0 : index
    %d = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %d[%c0, %c0] <{l1_hint = #xegpu.cache_hint<cached>}> : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    xegpu.store_nd %v, %d[%c0, %c0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}

// -----

// Barriers in branches are gathered afterwards; those in loops that subgroups run
// differently cannot be.
// CHECK-LABEL: simt.func @apart
// CHECK:       simt.named_barrier 1 of 2
gpu.module @m {
  gpu.func @apart() kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %id = arith.constant 1 : i8
    %n = arith.constant 2 : i8
    %c2 = arith.constant 2 : index
    %s = gpu.subgroup_id : index
    %is_first = arith.cmpi ult, %s, %c2 : index
    %b = xegpu.init_nbarrier %id, %n : i8, i8 -> !xegpu.nbarrier
    scf.if %is_first {
      xegpu.nbarrier_arrive %b : !xegpu.nbarrier
      xegpu.nbarrier_wait %b : !xegpu.nbarrier
    }
    gpu.return
  }
}

// -----

// CHECK: subgroups come to this named barrier in loops of their own
// CHECK: let all subgroups run the loop, or use a GPU (target pvc or bmg)
gpu.module @m {
  gpu.func @own_loop() kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %id = arith.constant 1 : i8
    %n = arith.constant 2 : i8
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %s = gpu.subgroup_id : index
    %is_first = arith.cmpi ult, %s, %c2 : index
    %b = xegpu.init_nbarrier %id, %n : i8, i8 -> !xegpu.nbarrier
    scf.if %is_first {
      scf.for %i = %c0 to %c2 step %c1 {
        xegpu.nbarrier_arrive %b : !xegpu.nbarrier
        xegpu.nbarrier_wait %b : !xegpu.nbarrier
      }
    }
    gpu.return
  }
}

// -----

// A branch in a loop that all run is fine.
// CHECK-LABEL: simt.func @in_turns
// CHECK:       scf.for
// CHECK:         scf.if
// CHECK-NEXT:      simt.named_barrier 1 of 2
gpu.module @m {
  gpu.func @in_turns(%turns: index) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %id = arith.constant 1 : i8
    %n = arith.constant 2 : i8
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %s = gpu.subgroup_id : index
    %is_first = arith.cmpi ult, %s, %c2 : index
    %b = xegpu.init_nbarrier %id, %n : i8, i8 -> !xegpu.nbarrier
    scf.for %i = %c0 to %turns step %c1 {
      scf.if %is_first {
        xegpu.nbarrier_arrive %b : !xegpu.nbarrier
        xegpu.nbarrier_wait %b : !xegpu.nbarrier
      }
    }
    gpu.return
  }
}

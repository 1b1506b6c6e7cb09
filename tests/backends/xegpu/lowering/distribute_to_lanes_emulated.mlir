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

// Processors run the subgroups of a workgroup one after the other: some cannot wait.
// CHECK: only 2 of 4 subgroups meet at this named barrier
// CHECK: let all subgroups meet, use `gpu.barrier`, or a GPU (target pvc or bmg)
gpu.module @m {
  gpu.func @met_by_some() kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %id = arith.constant 1 : i8
    %n = arith.constant 2 : i8
    %b = xegpu.init_nbarrier %id, %n : i8, i8 -> !xegpu.nbarrier
    xegpu.nbarrier_arrive %b : !xegpu.nbarrier
    xegpu.nbarrier_wait %b : !xegpu.nbarrier
    gpu.return
  }
}

// -----

// Nor can they meet in different branches; in one that all take they can.
// CHECK: subgroups come to this named barrier in different branches
gpu.module @m {
  gpu.func @apart() kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %id = arith.constant 1 : i8
    %n = arith.constant 4 : i8
    %c2 = arith.constant 2 : index
    %s = gpu.subgroup_id : index
    %is_first = arith.cmpi ult, %s, %c2 : index
    %b = xegpu.init_nbarrier %id, %n : i8, i8 -> !xegpu.nbarrier
    scf.if %is_first {
      xegpu.nbarrier_arrive %b : !xegpu.nbarrier
      xegpu.nbarrier_wait %b : !xegpu.nbarrier
    } else {
      xegpu.nbarrier_arrive %b : !xegpu.nbarrier
      xegpu.nbarrier_wait %b : !xegpu.nbarrier
    }
    gpu.return
  }
}

// -----

// CHECK-LABEL: simt.func @together
// CHECK:       scf.if
// CHECK-NEXT:    simt.barrier_arrive
// CHECK-NEXT:    simt.barrier_wait
gpu.module @m {
  gpu.func @together(%x: index) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %id = arith.constant 1 : i8
    %n = arith.constant 4 : i8
    %c2 = arith.constant 2 : index
    %is_small = arith.cmpi ult, %x, %c2 : index
    %b = xegpu.init_nbarrier %id, %n : i8, i8 -> !xegpu.nbarrier
    scf.if %is_small {
      xegpu.nbarrier_arrive %b : !xegpu.nbarrier
      xegpu.nbarrier_wait %b : !xegpu.nbarrier
    }
    gpu.return
  }
}

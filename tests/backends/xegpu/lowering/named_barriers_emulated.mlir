// RUN: xetl-opt %s -p distribute-to-lanes{device=opencl} --verify-diagnostics | filecheck %s

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

// RUN: xetl-opt %s | filecheck %s
// RUN: xetl-opt %s | xetl-opt - | filecheck %s
// RUN: xetl-opt %s --generic | xetl-opt - | filecheck %s

// CHECK: builtin.module attributes {gpu.container_module} {
module attributes {gpu.container_module} {
  // CHECK: gpu.module @kernels {
  gpu.module @kernels {
    // CHECK: gpu.func @k(%m: memref<4x?xf32>, %i: index) kernel attributes {known_block_size = array<i32: 1, 2, 3>, VectorComputeFunctionINTEL, xetile.level = "workgroup"} {
    gpu.func @k(%m: memref<4x?xf32>, %i: index) kernel attributes {VectorComputeFunctionINTEL, known_block_size = array<i32: 1, 2, 3>, xetile.level = "workgroup"} {
      // CHECK: gpu.block_id x
      %0 = gpu.block_id x
      // CHECK: gpu.thread_id y upper_bound 8
      %1 = gpu.thread_id y upper_bound 8
      // CHECK: gpu.block_dim z
      %2 = gpu.block_dim z
      %3 = gpu.grid_dim x
      // CHECK: gpu.subgroup_id : index
      %4 = gpu.subgroup_id : index
      %5 = gpu.num_subgroups : index
      // CHECK: gpu.barrier
      gpu.barrier
      // CHECK: gpu.return
      gpu.return
    }
    // CHECK: gpu.func @slm() workgroup(%w: memref<8xf32, 3 : i64>) private(%p: memref<4xf32, 5 : i64>) kernel {
    gpu.func @slm() workgroup(%w : memref<8xf32, 3>) private(%p : memref<4xf32, 5>) kernel {
      return
    }
    // CHECK: gpu.func @f(%x: f32) -> f32 {
    // CHECK: gpu.return %x : f32
    gpu.func @f(%x: f32) -> f32 {
      gpu.return %x : f32
    }
  }
}

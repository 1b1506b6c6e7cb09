// RUN: xetl-opt %s -p materialize-grid | filecheck %s

gpu.module @kernels {
  // The programs become a loop; their numbers its counters, grid sizes arguments.
  // CHECK-LABEL: func.func @numbers
  // CHECK-SAME:  %grid_x: index, %grid_y: index, %grid_z: index
  // CHECK-SAME:  xetl.stored = array<i64>
  // CHECK:       scf.parallel (%program_x, %program_y, %program_z) = (%{{.*}}, %{{.*}}, %{{.*}}) to (%grid_x, %grid_y, %grid_z)
  // CHECK-NOT:   gpu.
  // CHECK:       arith.addi %program_y, %grid_z
  // CHECK:       scf.reduce
  gpu.func @numbers(%n: index) kernel attributes {xetile.level = "workgroup"} {
    %y = gpu.block_id y
    %z = gpu.grid_dim z
    %sum = arith.addi %y, %z : index
    gpu.return
  }

  // What is stored to is noted: the second argument, through a view of it.
  // CHECK-LABEL: func.func @stores
  // CHECK-SAME:  xetl.stored = array<i64: 1>
  gpu.func @stores(%X: memref<?x?xf32, strided<[?, 1]>>, %Y: memref<?x?xf32, strided<[?, 1]>>, %n: index) kernel {
    %v = memref.reinterpret_cast %Y to offset: [0], sizes: [%n, %n], strides: [%n, 1] : memref<?x?xf32, strided<[?, 1]>> to memref<?x?xf32, strided<[?, 1]>>
    %s = xetile.init_tile %X[0, 0], [%n, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<4x4xf32>
    %t = xetile.init_tile %v[0, 0], [%n, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<4x4xf32>
    %value = xetile.load_tile %s : !xetile.tile<4x4xf32> -> vector<4x4xf32>
    xetile.store_tile %value, %t : vector<4x4xf32>, !xetile.tile<4x4xf32>
    gpu.return
  }
}

// A function that is no kernel is left alone.
// CHECK-LABEL: func.func @helper
// CHECK-NOT:   scf.parallel
// CHECK:       func.return
func.func @helper() {
  func.return
}

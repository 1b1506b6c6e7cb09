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

  // Independent trips of a text are programs; a loop over a block of them joins the
  // loop over blocks.
  // CHECK-LABEL: func.func @trips
  // CHECK:       %c32 =
  // CHECK-NEXT:  %[[N:.*]] = arith.constant 32 : index
  // CHECK-NEXT:  %[[M:.*]] = arith.constant 32 : index
  // CHECK-NEXT:  arith.muli
  // CHECK-NEXT:  %[[G:.*]] = arith.muli
  // CHECK:       scf.parallel {{.*}} to (%[[N]], %[[M]], %[[G]])
  // CHECK-NOT:   scf.for
  // CHECK:       %[[R:.*]] = arith.muli %program_x,
  // CHECK:       %[[C:.*]] = arith.muli %program_y,
  // CHECK:       xetile.init_tile %C[%[[R]], %[[C]]]
  gpu.func @trips(%C: memref<256x256xf32>) kernel attributes {xetile.text} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    scf.for %i = %c0 to %c32 step %c4 {
      scf.for %j = %c0 to %c32 step %c8 {
        scf.for %k = %c0 to %c4 step %c1 {
          %x = arith.addi %k, %i : index
          %row = arith.muli %x, %c8 : index
          scf.for %l = %c0 to %c8 step %c1 {
            %y = arith.addi %j, %l : index
            %col = arith.muli %y, %c8 : index
            %t = xetile.init_tile %C[%row, %col] : memref<256x256xf32> -> !xetile.tile<8x8xf32>
            %v = xetile.load_tile %t : !xetile.tile<8x8xf32> -> vector<8x8xf32>
            %w = arith.addf %v, %v : vector<8x8xf32>
            xetile.store_tile %w, %t : vector<8x8xf32>, !xetile.tile<8x8xf32>
          }
        } {xetile.parallel}
      } {xetile.parallel}
    } {xetile.parallel}
    gpu.return
  }

  // Trips that read what others write stay in order; so do those of tiles that overlap.
  // CHECK-LABEL: func.func @in_order
  // CHECK:       scf.parallel {{.*}} to (%grid_x, %grid_y, %grid_z)
  // CHECK:       scf.for
  gpu.func @in_order(%C: memref<256x256xf32>) kernel attributes {xetile.text} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c31 = arith.constant 31 : index
    scf.for %i = %c0 to %c31 step %c1 {
      %row = arith.muli %i, %c8 : index
      %next = arith.addi %row, %c8 : index
      %s = xetile.init_tile %C[%row, 0] : memref<256x256xf32> -> !xetile.tile<8x8xf32>
      %t = xetile.init_tile %C[%next, 0] : memref<256x256xf32> -> !xetile.tile<8x8xf32>
      %v = xetile.load_tile %s : !xetile.tile<8x8xf32> -> vector<8x8xf32>
      xetile.store_tile %v, %t : vector<8x8xf32>, !xetile.tile<8x8xf32>
    }
    gpu.return
  }

  // The number of a subgroup stays in the program.
  // CHECK-LABEL: func.func @numbered
  // CHECK:       scf.parallel {{.*}} to (%{{.*}}, %{{.*}}, %{{.*}})
  // CHECK:       gpu.subgroup_id
  // CHECK-NOT:   scf.for
  // CHECK:       xetile.store_tile
  gpu.func @numbered(%C: memref<256x256xf32>) kernel attributes {xetile.text} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %s = gpu.subgroup_id : index
    %col = arith.muli %s, %c8 : index
    %v = arith.constant dense<1.0> : vector<8x8xf32>
    scf.for %i = %c0 to %c32 step %c1 {
      %row = arith.muli %i, %c8 : index
      %t = xetile.init_tile %C[%row, %col] : memref<256x256xf32> -> !xetile.tile<8x8xf32>
      xetile.store_tile %v, %t : vector<8x8xf32>, !xetile.tile<8x8xf32>
    }
    gpu.return
  }

  // CHECK-LABEL: func.func @overlapping
  // CHECK:       scf.for
  gpu.func @overlapping(%C: memref<256x256xf32>) kernel attributes {xetile.text} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c31 = arith.constant 31 : index
    scf.for %i = %c0 to %c31 step %c1 {
      %row = arith.muli %i, %c4 : index
      %t = xetile.init_tile %C[%row, 0] : memref<256x256xf32> -> !xetile.tile<8x8xf32>
      %v = xetile.load_tile %t : !xetile.tile<8x8xf32> -> vector<8x8xf32>
      %w = arith.addf %v, %v : vector<8x8xf32>
      xetile.store_tile %w, %t : vector<8x8xf32>, !xetile.tile<8x8xf32>
    }
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

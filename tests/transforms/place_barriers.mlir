// RUN: xetl-opt %s -p place-barriers | filecheck %s

#rows = #xetile.wg_map<sg_layout = [4, 1], sg_data = [4, 16]>
#columns = #xetile.wg_map<sg_layout = [1, 4], sg_data = [16, 4]>
!rows = !xetile.tile<16x16xf32, #xetile.tile_attr<wg_map = #rows>>
!columns = !xetile.tile<16x16xf32, #xetile.tile_attr<wg_map = #columns>>
!slm_rows = !xetile.tile<16x16xf32, #xetile.tile_attr<wg_map = #rows, memory_space = 3>>
!slm_columns = !xetile.tile<16x16xf32, #xetile.tile_attr<wg_map = #columns, memory_space = 3>>

// What one subgroup stores, another one loads.
// CHECK-LABEL: @read_after_write
// CHECK:       xetile.store_tile
// CHECK-NEXT:  gpu.barrier
// CHECK-NEXT:  xetile.load_tile
// CHECK-NOT:   gpu.barrier
gpu.module @a { gpu.func @read_after_write(%x: memref<16x16xf32>, %v: vector<16x16xf32>) kernel attributes {xetile.level = "workgroup"} {
  %r = xetile.init_tile %x[0, 0] : memref<16x16xf32> -> !rows
  %c = xetile.init_tile %x[0, 0] : memref<16x16xf32> -> !columns
  xetile.store_tile %v, %r : vector<16x16xf32>, !rows
  %w = xetile.load_tile %c : !columns -> vector<16x16xf32>
  gpu.return
} }

// The same owners, and other arrays: nobody waits.
// CHECK-LABEL: @own_elements
// CHECK-NOT:   gpu.barrier
// CHECK:       gpu.return
gpu.module @b { gpu.func @own_elements(%x: memref<16x16xf32>, %y: memref<16x16xf32>) kernel attributes {xetile.level = "workgroup", xetile.alias_groups = array<i64: -1, -1>} {
  %r = xetile.init_tile %x[0, 0] : memref<16x16xf32> -> !rows
  %s = xetile.init_tile %x[0, 0] : memref<16x16xf32> -> !rows
  %c = xetile.init_tile %y[0, 0] : memref<16x16xf32> -> !columns
  %v = xetile.load_tile %r : !rows -> vector<16x16xf32>
  xetile.store_tile %v, %s : vector<16x16xf32>, !rows
  xetile.store_tile %v, %c : vector<16x16xf32>, !columns
  %w = xetile.load_tile %r : !rows -> vector<16x16xf32>
  gpu.return
} }

// Two arguments are one array.
// CHECK-LABEL: @one_array_twice
// CHECK:       xetile.load_tile
// CHECK-NEXT:  gpu.barrier
// CHECK-NEXT:  xetile.store_tile
gpu.module @c { gpu.func @one_array_twice(%x: memref<16x16xf32>, %y: memref<16x16xf32>) kernel attributes {xetile.level = "workgroup", xetile.alias_groups = array<i64: 0, 0>} {
  %r = xetile.init_tile %x[0, 0] : memref<16x16xf32> -> !rows
  %c = xetile.init_tile %y[0, 0] : memref<16x16xf32> -> !columns
  %v = xetile.load_tile %r : !rows -> vector<16x16xf32>
  xetile.store_tile %v, %c : vector<16x16xf32>, !columns
  gpu.return
} }

// A user's barrier counts.
// CHECK-LABEL: @already_there
// CHECK:       gpu.barrier
// CHECK-NOT:   gpu.barrier
// CHECK:       gpu.return
gpu.module @d { gpu.func @already_there(%x: memref<16x16xf32>, %v: vector<16x16xf32>) kernel attributes {xetile.level = "workgroup"} {
  %r = xetile.init_tile %x[0, 0] : memref<16x16xf32> -> !rows
  %c = xetile.init_tile %x[0, 0] : memref<16x16xf32> -> !columns
  xetile.store_tile %v, %r : vector<16x16xf32>, !rows
  gpu.barrier
  %w = xetile.load_tile %c : !columns -> vector<16x16xf32>
  gpu.return
} }

// Around a loop: shared memory is written, read by others, and written again.
// CHECK-LABEL: @staged
// CHECK-NOT:   gpu.barrier
// CHECK:       scf.for
// CHECK:       xetile.load_tile
// CHECK-NEXT:  gpu.barrier
// CHECK-NEXT:  xetile.store_tile
// CHECK-NEXT:  gpu.barrier
// CHECK-NEXT:  xetile.load_tile
// CHECK-NOT:   gpu.barrier
gpu.module @e { gpu.func @staged(%x: memref<16x64xf32>, %n: index, %k: index, %zero: index) kernel attributes {xetile.level = "workgroup"} {
  %slm = memref.alloc() : memref<16x16xf32, 3>
  %r = xetile.init_tile %slm[0, 0] : memref<16x16xf32, 3> -> !slm_rows
  %c = xetile.init_tile %slm[0, 0] : memref<16x16xf32, 3> -> !slm_columns
  scf.for %i = %zero to %n step %k {
    %t = xetile.init_tile %x[0, %i] : memref<16x64xf32> -> !rows
    %v = xetile.load_tile %t : !rows -> vector<16x16xf32>
    xetile.store_tile %v, %r : vector<16x16xf32>, !slm_rows
    %w = xetile.load_tile %c : !slm_columns -> vector<16x16xf32>
  }
  gpu.return
} }

// What was done ahead of a loop is waited for ahead of it.
// CHECK-LABEL: @ahead_of_a_loop
// CHECK:       xetile.store_tile
// CHECK-NEXT:  gpu.barrier
// CHECK-NEXT:  scf.for
// CHECK-NOT:   gpu.barrier
gpu.module @f { gpu.func @ahead_of_a_loop(%x: memref<16x16xf32>, %v: vector<16x16xf32>, %n: index, %k: index) kernel attributes {xetile.level = "workgroup"} {
  %r = xetile.init_tile %x[0, 0] : memref<16x16xf32> -> !rows
  %c = xetile.init_tile %x[0, 0] : memref<16x16xf32> -> !columns
  xetile.store_tile %v, %r : vector<16x16xf32>, !rows
  scf.for %i = %k to %n step %k {
    %w = xetile.load_tile %c : !columns -> vector<16x16xf32>
  }
  gpu.return
} }

// Each turn has columns of its own, in place; the tile moves with the loop or is made in it.
// CHECK-LABEL: @moving
// CHECK-NOT:   gpu.barrier
// CHECK:       gpu.return
gpu.module @g { gpu.func @moving(%x: memref<16x64xf32>, %y: memref<16x64xf32>, %zero: index, %n: index) kernel attributes {xetile.level = "workgroup", xetile.alias_groups = array<i64: -1, -1>} {
  %k = arith.constant 16 : index
  %first = xetile.init_tile %x[0, 0] : memref<16x64xf32> -> !columns
  scf.for %i = %zero to %n step %k iter_args(%t = %first) -> (!columns) {
    %v = xetile.load_tile %t : !columns -> vector<16x16xf32>
    xetile.store_tile %v, %t : vector<16x16xf32>, !columns
    %u = xetile.init_tile %y[0, %i] : memref<16x64xf32> -> !columns
    %w = xetile.load_tile %u : !columns -> vector<16x16xf32>
    xetile.store_tile %w, %u : vector<16x16xf32>, !columns
    %next = xetile.update_tile_offset %t, [0, 16] : !columns
    scf.yield %next : !columns
  }
  gpu.return
} }

// Half a step: what one turn stores, the next one loads, in other subgroups.
// CHECK-LABEL: @overlapping_turns
// CHECK:       scf.for
// CHECK:       gpu.barrier
// CHECK-NEXT:  xetile.load_tile
// CHECK-NEXT:  xetile.store_tile
gpu.module @h { gpu.func @overlapping_turns(%x: memref<16x64xf32>, %zero: index, %n: index) kernel attributes {xetile.level = "workgroup"} {
  %k = arith.constant 8 : index
  scf.for %i = %zero to %n step %k {
    %u = xetile.init_tile %x[0, %i] : memref<16x64xf32> -> !columns
    %w = xetile.load_tile %u : !columns -> vector<16x16xf32>
    xetile.store_tile %w, %u : vector<16x16xf32>, !columns
  }
  gpu.return
} }

// Four buffers in turn, three ahead: one barrier a turn is enough, and it is there.
// CHECK-LABEL: @ring
// CHECK:       scf.for
// CHECK-NEXT:  xetile.init_tile
// CHECK-NEXT:  xetile.load_tile
// CHECK-NEXT:  gpu.barrier {of_the_user}
// CHECK-NOT:   gpu.barrier
// CHECK:       gpu.return
!slm4 = memref<16x64xf32, 3>
gpu.module @r { gpu.func @ring(%v: vector<16x16xf32>, %zero: index, %n: index, %k: index) kernel attributes {xetile.level = "workgroup"} {
  %c16 = arith.constant 16 : index
  %c48 = arith.constant 48 : index
  %c64 = arith.constant 64 : index
  %slm = memref.alloc() : !slm4
  %end = scf.for %i = %zero to %n step %k iter_args(%s = %zero) -> (index) {
    %c = xetile.init_tile %slm[0, %s] : !slm4 -> !slm_columns
    %w = xetile.load_tile %c : !slm_columns -> vector<16x16xf32>
    gpu.barrier {of_the_user}
    %on = arith.addi %s, %c48 : index
    %free = arith.remui %on, %c64 : index
    %r = xetile.init_tile %slm[0, %free] : !slm4 -> !slm_rows
    xetile.store_tile %v, %r : vector<16x16xf32>, !slm_rows
    %more = arith.addi %s, %c16 : index
    %next = arith.remui %more, %c64 : index
    scf.yield %next : index
  }
  gpu.return
} }

// One ahead of four: the next turn reads what this one stores.
// CHECK-LABEL: @one_ahead
// CHECK:       scf.for
// CHECK:       gpu.barrier
// CHECK-NEXT:  xetile.load_tile
// CHECK-NEXT:  gpu.barrier {of_the_user}
gpu.module @s { gpu.func @one_ahead(%v: vector<16x16xf32>, %zero: index, %n: index, %k: index) kernel attributes {xetile.level = "workgroup"} {
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %slm = memref.alloc() : !slm4
  %end = scf.for %i = %zero to %n step %k iter_args(%s = %zero) -> (index) {
    %c = xetile.init_tile %slm[0, %s] : !slm4 -> !slm_columns
    %w = xetile.load_tile %c : !slm_columns -> vector<16x16xf32>
    gpu.barrier {of_the_user}
    %on = arith.addi %s, %c16 : index
    %next = arith.remui %on, %c64 : index
    %r = xetile.init_tile %slm[0, %next] : !slm4 -> !slm_rows
    xetile.store_tile %v, %r : vector<16x16xf32>, !slm_rows
    scf.yield %next : index
  }
  gpu.return
} }

// Of what is shared only the first owner stores, but all load.
// CHECK-LABEL: @shared
// CHECK:       xetile.load_tile
// CHECK-NEXT:  gpu.barrier
// CHECK-NEXT:  xetile.store_tile
// CHECK-NEXT:  xetile.store_tile
#all = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 16]>
!all = !xetile.tile<16x16xf32, #xetile.tile_attr<wg_map = #all>>
gpu.module @i { gpu.func @shared(%x: memref<16x16xf32>) kernel attributes {xetile.level = "workgroup"} {
  %r = xetile.init_tile %x[0, 0] : memref<16x16xf32> -> !all
  %v = xetile.load_tile %r : !all -> vector<16x16xf32>
  xetile.store_tile %v, %r : vector<16x16xf32>, !all
  xetile.store_tile %v, %r : vector<16x16xf32>, !all
  gpu.return
} }

// In one branch a barrier, in the other none: after both the store may still run.
// CHECK-LABEL: @branches
// CHECK:       scf.if
// CHECK-NEXT:  gpu.barrier
// CHECK:       }
// CHECK-NEXT:  gpu.barrier
// CHECK-NEXT:  xetile.load_tile
gpu.module @j { gpu.func @branches(%x: memref<16x16xf32>, %v: vector<16x16xf32>, %b: i1) kernel attributes {xetile.level = "workgroup"} {
  %r = xetile.init_tile %x[0, 0] : memref<16x16xf32> -> !rows
  %c = xetile.init_tile %x[0, 0] : memref<16x16xf32> -> !columns
  xetile.store_tile %v, %r : vector<16x16xf32>, !rows
  scf.if %b {
    gpu.barrier
  }
  %w = xetile.load_tile %c : !columns -> vector<16x16xf32>
  gpu.return
} }

// An element is stored by one subgroup, and loaded by all.
// CHECK-LABEL: @elements
// CHECK:       memref.store
// CHECK-NEXT:  gpu.barrier
// CHECK-NEXT:  memref.load
gpu.module @k { gpu.func @elements(%x: memref<16xf32>, %i: index, %f: f32) kernel attributes {xetile.level = "workgroup"} {
  %m = arith.constant dense<0.0> : vector<16x16xf32>
  %c = xetile.tile_conv_layout %m {map = #rows} : vector<16x16xf32>
  memref.store %f, %x[%i] : memref<16xf32>
  %v = memref.load %x[%i] : memref<16xf32>
  gpu.return
} }

// Sums by atomics come in any order; looking at them does not.
// CHECK-LABEL: @atomics
// CHECK:       xetile.atomic_rmw_tile
// CHECK-NEXT:  xetile.atomic_rmw_tile
// CHECK-NEXT:  gpu.barrier
// CHECK-NEXT:  xetile.load_tile
gpu.module @l { gpu.func @atomics(%x: memref<16x16xf32>, %v: vector<16x16xf32>) kernel attributes {xetile.level = "workgroup"} {
  %r = xetile.init_tile %x[0, 0] : memref<16x16xf32> -> !rows
  %c = xetile.init_tile %x[0, 0] : memref<16x16xf32> -> !columns
  %p = xetile.atomic_rmw_tile <add> %v, %r : vector<16x16xf32>, !rows -> vector<16x16xf32>
  %q = xetile.atomic_rmw_tile <add> %v, %c : vector<16x16xf32>, !columns -> vector<16x16xf32>
  %w = xetile.load_tile %r : !rows -> vector<16x16xf32>
  gpu.return
} }

// Kernels at subgroup level say themselves where they wait.
// CHECK-LABEL: @subgroup_level
// CHECK-NOT:   gpu.barrier
// CHECK:       gpu.return
gpu.module @n { gpu.func @subgroup_level(%x: memref<16x16xf32>, %v: vector<16x16xf32>) kernel attributes {xetile.level = "subgroup", xetile.subgroups = array<i64: 4, 1>} {
  %t = xetile.init_tile %x[0, 0] : memref<16x16xf32> -> !xetile.tile<16x16xf32>
  xetile.store_tile %v, %t : vector<16x16xf32>, !xetile.tile<16x16xf32>
  %w = xetile.load_tile %t : !xetile.tile<16x16xf32> -> vector<16x16xf32>
  gpu.return
} }

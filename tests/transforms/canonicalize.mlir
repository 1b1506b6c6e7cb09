// RUN: xetl-opt %s -p canonicalize | filecheck %s

// Chains of constants become one; what is neutral goes.
// CHECK-LABEL: @arithmetic
// CHECK-NEXT: %[[TEN:.*]] = arith.constant 10 : index
// CHECK-NEXT: %[[SUM:.*]] = arith.addi %x, %[[TEN]] : index
// CHECK-NEXT: return %[[SUM]], %x : index, index
func.func @arithmetic(%x: index) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %a = arith.addi %c2, %c3 : index
  %b = arith.muli %a, %c2 : index
  %c = arith.addi %x, %b : index
  %d = arith.muli %x, %c1 : index
  %e = arith.addi %c0, %d : index
  return %c, %e : index, index
}

// Rounding goes the way of the name; dividing by zero stays in the program.
// CHECK-LABEL: @divisions
// CHECK-DAG: arith.constant -3 : index
// CHECK-DAG: arith.constant -4 : index
// CHECK: arith.divsi
func.func @divisions() -> (index, index, index, index) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %m7 = arith.constant -7 : index
  %a = arith.divsi %m7, %c2 : index
  %b = arith.floordivsi %m7, %c2 : index
  %c = arith.ceildivsi %m7, %c2 : index
  %d = arith.divsi %c2, %c0 : index
  return %a, %b, %c, %d : index, index, index, index
}

// The taken branch replaces the conditional, a loop without trips its initial values.
// CHECK-LABEL: @control_flow
// CHECK-NOT: scf
// CHECK: %[[S:.*]] = arith.addi %x, %x : index
// CHECK-NEXT: return %[[S]] : index
func.func @control_flow(%x: index) -> index {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %t = arith.cmpi slt, %c2, %c3 : index
  %i = scf.if %t -> (index) {
    %q = arith.addi %x, %x : index
    scf.yield %q : index
  } else {
    scf.yield %x : index
  }
  %r = scf.for %k = %c3 to %c2 step %c2 iter_args(%z = %i) -> (index) {
    scf.yield %k : index
  }
  return %r : index
}

// Sizes and strides that the type states are constants.
// CHECK-LABEL: @metadata
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK: return %{{.*}}, %[[ONE]] : index, index
func.func @metadata(%m: memref<?x?xf32, strided<[?, 1]>>) -> (index, index) {
  %b, %o, %s:2, %st:2 = memref.extract_strided_metadata %m : memref<?x?xf32, strided<[?, 1]>> -> memref<f32>, index, index, index, index, index
  return %s#0, %st#1 : index, index
}

// There and back again: through a type as wide nothing is lost, through i32 it is.
// CHECK-LABEL: @casts
// CHECK-NEXT: %[[N:.*]] = arith.index_cast %x : index to i32
// CHECK-NEXT: %[[W:.*]] = arith.index_cast %[[N]] : i32 to index
// CHECK-NEXT: return %x, %[[W]], %v : index, index, vector<8xf32>
func.func @casts(%x: index, %v: vector<8xf32>) -> (index, index, vector<8xf32>) {
  %a = arith.index_cast %x : index to i64
  %b = arith.index_cast %a : i64 to index
  %c = arith.index_cast %x : index to i32
  %d = arith.index_cast %c : i32 to index
  %e = vector.shape_cast %v : vector<8xf32> to vector<1x8xf32>
  %f = vector.shape_cast %e : vector<1x8xf32> to vector<8xf32>
  return %b, %d, %f : index, index, vector<8xf32>
}

// A load nobody uses may go; stores, prefetches, atomics and barriers never.
// CHECK-LABEL: @effects
// CHECK-NOT: load_tile
// CHECK: xetile.store_tile
// CHECK: xetile.prefetch_tile
// CHECK: xetile.atomic_rmw_tile
// CHECK: gpu.barrier
// CHECK: scf.for
// CHECK:   xetile.store_tile
func.func @effects(%t: !xetile.tile<8x8xf32>, %v: vector<8x8xf32>, %i: index) {
  %l = xetile.load_tile %t : !xetile.tile<8x8xf32> -> vector<8x8xf32>
  xetile.store_tile %v, %t : vector<8x8xf32>, !xetile.tile<8x8xf32>
  xetile.prefetch_tile %t : !xetile.tile<8x8xf32>
  %a = xetile.atomic_rmw_tile <add> %v, %t : vector<8x8xf32>, !xetile.tile<8x8xf32> -> vector<8x8xf32>
  gpu.barrier
  scf.for %k = %i to %i step %i {
    xetile.store_tile %v, %t : vector<8x8xf32>, !xetile.tile<8x8xf32>
  }
  %c9 = arith.constant 9 : index
  scf.for %k = %i to %c9 step %i {
    xetile.store_tile %v, %t : vector<8x8xf32>, !xetile.tile<8x8xf32>
  }
  // A loop that only computes goes with what it computes.
  %u = scf.for %k = %i to %c9 step %i iter_args(%x = %v) -> (vector<8x8xf32>) {
    %w = arith.addf %x, %x : vector<8x8xf32>
    scf.yield %w : vector<8x8xf32>
  }
  return
}

// What carries a map is kept: its map is part of the program.
// CHECK-LABEL: @maps
// CHECK: arith.addi %{{.*}}, %{{.*}} {map = #xetile.wg_map
func.func @maps() -> vector<8x8xi32> {
  %a = arith.constant dense<1> : vector<8x8xi32>
  %b = arith.addi %a, %a {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [4, 4]>} : vector<8x8xi32>
  return %b : vector<8x8xi32>
}

// The end of a parallel loop stays, though it only computes.
// CHECK-LABEL: @parallel_sum
// CHECK: scf.reduce(%i : index)
func.func @parallel_sum(%n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%c0) -> index {
    scf.reduce(%i : index) {
    ^bb0(%a: index, %b: index):
      %t = arith.addi %a, %b : index
      scf.reduce.return %t : index
    }
  }
  return %s : index
}

// All have met: nothing happens before they meet again.
// CHECK-LABEL: @two_barriers
// CHECK-NEXT:  gpu.barrier
// CHECK-NEXT:  arith.addi
// CHECK-NEXT:  memref.load
// CHECK-NEXT:  gpu.barrier
// CHECK-NEXT:  return
func.func @two_barriers(%m: memref<8xf32>, %i: index, %j: index) -> f32 {
  gpu.barrier
  %k = arith.addi %i, %j : index
  gpu.barrier
  %v = memref.load %m[%k] : memref<8xf32>
  gpu.barrier
  return %v : f32
}

// f64 has more than twice the bits of f32: rounded to 53 bits and to 24, or at once, is the same.
// CHECK-LABEL: @rounded_at_once
// CHECK-NEXT:  %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-NEXT:  %[[SUM:.*]] = arith.addf %x, %[[HALF]] : f32
// CHECK-NEXT:  %[[PRODUCT:.*]] = arith.mulf %[[SUM]], %y : f32
// CHECK-NEXT:  return %[[PRODUCT]] : f32
func.func @rounded_at_once(%x: f32, %y: f32) -> f32 {
  %half = arith.constant 5.0e-01 : f64
  %a = arith.extf %x : f32 to f64
  %s = arith.addf %a, %half : f64
  %r = arith.truncf %s : f64 to f32
  %b = arith.extf %r : f32 to f64
  %c = arith.extf %y : f32 to f64
  %q = arith.mulf %b, %c : f64
  %t = arith.truncf %q : f64 to f32
  return %t : f32
}

// A tenth has more bits than f32; sums of three are rounded in between; f16 is another matter.
// CHECK-LABEL: @rounded_later
// CHECK:       arith.mulf %{{.*}} : f64
// CHECK-COUNT-2: arith.addf %{{.*}} : f64
// CHECK:       arith.addf %{{.*}} : f32
// CHECK-NEXT:  arith.truncf %{{.*}} : f32 to f16
func.func @rounded_later(%x: f32, %h: f16) -> (f32, f32, f16) {
  %tenth = arith.constant 1.0e-01 : f64
  %a = arith.extf %x : f32 to f64
  %p = arith.mulf %a, %tenth : f64
  %r = arith.truncf %p : f64 to f32
  %s = arith.addf %a, %a : f64
  %u = arith.addf %s, %a : f64
  %t = arith.truncf %u : f64 to f32
  %b = arith.extf %h : f16 to f32
  %v = arith.addf %b, %b : f32
  %w = arith.truncf %v : f32 to f16
  return %r, %t, %w : f32, f32, f16
}

// The least of an f32 and another is found in f32; of two others it is not.
// CHECK-LABEL: @least
// CHECK-NEXT:  %[[S:.*]] = arith.addf %x, %y : f32
// CHECK-NEXT:  %[[M:.*]] = arith.minnumf %x, %[[S]] : f32
// CHECK-NEXT:  %[[W:.*]] = arith.truncf %w : f64 to f32
// CHECK-NEXT:  %[[L:.*]] = arith.maximumf %[[W]], %x : f32
// CHECK-NEXT:  %[[N:.*]] = arith.minimumf %w, %v : f64
// CHECK-NEXT:  %[[T:.*]] = arith.truncf %[[N]] : f64 to f32
// CHECK-NEXT:  return %[[M]], %[[L]], %[[T]] : f32, f32, f32
func.func @least(%x: f32, %y: f32, %w: f64, %v: f64) -> (f32, f32, f32) {
  %a = arith.extf %x : f32 to f64
  %b = arith.extf %y : f32 to f64
  %s = arith.addf %a, %b : f64
  %m = arith.minnumf %a, %s : f64
  %r = arith.truncf %m : f64 to f32
  %l = arith.maximumf %w, %a : f64
  %q = arith.truncf %l : f64 to f32
  %n = arith.minimumf %w, %v : f64
  %t = arith.truncf %n : f64 to f32
  return %r, %q, %t : f32, f32, f32
}

// What is chosen has been narrow, and is again; a tenth is no f16.
// CHECK-LABEL: @chosen
// CHECK-NEXT:  %[[A:.*]] = arith.extf %x : f16 to f32
// CHECK-NEXT:  %[[ZERO:.*]] = arith.constant 0.000000e+00 : f16
// CHECK-NEXT:  %[[R:.*]] = arith.select %c, %x, %[[ZERO]] : f16
// CHECK-NEXT:  %[[TENTH:.*]] = arith.constant 1.000000e-01 : f32
// CHECK-NEXT:  %[[S:.*]] = arith.select %c, %[[A]], %[[TENTH]] : f32
// CHECK-NEXT:  %[[T:.*]] = arith.truncf %[[S]] : f32 to f16
// CHECK-NEXT:  return %[[R]], %[[T]] : f16, f16
func.func @chosen(%c: i1, %x: f16) -> (f16, f16) {
  %zero = arith.constant 0.0 : f32
  %a = arith.extf %x : f16 to f32
  %s = arith.select %c, %a, %zero : f32
  %r = arith.truncf %s : f32 to f16
  %tenth = arith.constant 1.0e-01 : f32
  %b = arith.select %c, %a, %tenth : f32
  %t = arith.truncf %b : f32 to f16
  return %r, %t : f16, f16
}

// A loop says that its counter is in the bounds, and so does a condition around.
// CHECK-LABEL: @known_bounds
// CHECK-NOT:   ult
// CHECK:       return
func.func @known_bounds(%n: index, %m: index, %x: index, %M: memref<?xi1>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    %a = arith.cmpi ult, %i, %n : index
    memref.store %a, %M[%zero] : memref<?xi1>
    %low = arith.cmpi sge, %x, %zero : index
    %high = arith.cmpi slt, %x, %n : index
    %both = arith.andi %low, %high : i1
    scf.if %both {
      %b = arith.cmpi ult, %x, %n : index
      memref.store %b, %M[%one] : memref<?xi1>
    }
  }
  return
}

// Arithmetic says what numbers of a counter are: a quotient, a remainder, a place.
// CHECK-LABEL:   @known_ranges
// CHECK-NOT:     ult
// CHECK:         return
func.func @known_ranges(%M: memref<?xi1>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %end = arith.constant 12 : index
  scf.for %i = %zero to %end step %one {
    %row = arith.floordivsi %i, %three : index
    %first = arith.muli %row, %three : index
    %column = arith.subi %i, %first : index
    %four = arith.constant 4 : index
    %scaled = arith.muli %column, %four : index
    %place = arith.addi %scaled, %row : index
    %a = arith.cmpi ult, %place, %end : index
    memref.store %a, %M[%zero] : memref<?xi1>
  }
  return
}

// They may reach the end; a narrow type may not hold them.
// CHECK-LABEL:   @unknown_ranges
// CHECK-COUNT-2: arith.cmpi ult
// CHECK:         return
func.func @unknown_ranges(%M: memref<?xi1>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant 200 : index
  scf.for %i = %zero to %end step %one {
    %next = arith.addi %i, %one : index
    %a = arith.cmpi ult, %next, %end : index
    memref.store %a, %M[%zero] : memref<?xi1>
    %narrow = arith.index_cast %i : index to i8
    %wide = arith.index_cast %narrow : i8 to index
    %b = arith.cmpi ult, %wide, %end : index
    memref.store %b, %M[%zero] : memref<?xi1>
  }
  return
}

// Places near a counter, in bounds that are as near to the end; the bounds of a loop may
// be other counters, and a place may count down.
// CHECK-LABEL: @known_neighbours
// CHECK-NOT:   ult
// CHECK:       return
func.func @known_neighbours(%n: index, %M: memref<?xi1>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %end = arith.subi %n, %one : index
  scf.for %i = %one to %end step %one {
    %before = arith.subi %i, %one : index
    %a = arith.cmpi ult, %before, %n : index
    memref.store %a, %M[%zero] : memref<?xi1>
    %behind = arith.addi %i, %one : index
    %b = arith.cmpi ult, %behind, %n : index
    memref.store %b, %M[%zero] : memref<?xi1>
    scf.for %j = %behind to %n step %two {
      %c = arith.cmpi ult, %j, %n : index
      memref.store %c, %M[%zero] : memref<?xi1>
      %apart = arith.subi %j, %i : index
      %d = arith.cmpi ult, %apart, %n : index
      memref.store %d, %M[%zero] : memref<?xi1>
    }
    %down = arith.subi %end, %i : index
    %e = arith.cmpi ult, %down, %n : index
    memref.store %e, %M[%zero] : memref<?xi1>
  }
  return
}

// One place further on, or before; of another end; of a counter times a counter.
// CHECK-LABEL:   @unknown_neighbours
// CHECK-COUNT-6: arith.cmpi ult
// CHECK:         return
func.func @unknown_neighbours(%n: index, %m: index, %M: memref<?xi1>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %end = arith.subi %n, %one : index
  scf.for %i = %one to %end step %one {
    %before = arith.subi %i, %two : index
    %a = arith.cmpi ult, %before, %n : index
    memref.store %a, %M[%zero] : memref<?xi1>
    %behind = arith.addi %i, %two : index
    %b = arith.cmpi ult, %behind, %n : index
    memref.store %b, %M[%zero] : memref<?xi1>
    %c = arith.cmpi ult, %i, %m : index
    memref.store %c, %M[%zero] : memref<?xi1>
    %down = arith.subi %one, %i : index
    %d = arith.cmpi ult, %down, %n : index
    memref.store %d, %M[%zero] : memref<?xi1>
    scf.for %j = %m to %i step %one {
      %e = arith.cmpi ult, %j, %n : index
      memref.store %e, %M[%zero] : memref<?xi1>
      %product = arith.muli %j, %i : index
      %f = arith.cmpi ult, %product, %n : index
      memref.store %f, %M[%zero] : memref<?xi1>
    }
  }
  return
}

// Neither is known where the counter may be negative, or may reach another end; nor
// where a condition says half of it, or the opposite.
// CHECK-LABEL:   @unknown_bounds
// CHECK-COUNT-5: arith.cmpi ult
// CHECK:         return
func.func @unknown_bounds(%n: index, %m: index, %x: index, %M: memref<?xi1>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %below = arith.constant -1 : index
  %most = arith.maxsi %m, %n : index
  scf.for %i = %below to %n step %one {
    %a = arith.cmpi ult, %i, %n : index
    memref.store %a, %M[%zero] : memref<?xi1>
  }
  scf.for %i = %zero to %most step %one {
    %a = arith.cmpi ult, %i, %n : index
    memref.store %a, %M[%zero] : memref<?xi1>
    %low = arith.cmpi sge, %x, %zero : index
    %high = arith.cmpi slt, %x, %n : index
    scf.if %low {
      %b = arith.cmpi ult, %x, %n : index
      memref.store %b, %M[%one] : memref<?xi1>
    }
    %both = arith.andi %low, %high : i1
    scf.if %both {
      %c = arith.cmpi ult, %i, %n : index
      memref.store %c, %M[%one] : memref<?xi1>
    } else {
      %d = arith.cmpi ult, %x, %n : index
      memref.store %d, %M[%one] : memref<?xi1>
    }
  }
  return
}

// RUN: xetl-opt %s | filecheck %s
// RUN: xetl-opt %s | xetl-opt - | filecheck %s
// RUN: xetl-opt %s --generic | xetl-opt - | filecheck %s
// Operations that texts seldom have.

// CHECK-LABEL: @numbers
func.func @numbers(%x: vector<8xf32>, %i: vector<8xi32>, %n: index) {
  // CHECK: math.isnan %x : vector<8xf32>
  %0 = math.isnan %x : vector<8xf32>
  // CHECK: math.isinf %x : vector<8xf32>
  %1 = math.isinf %x : vector<8xf32>
  // CHECK: math.isfinite %x : vector<8xf32>
  %2 = math.isfinite %x : vector<8xf32>
  // CHECK: math.clampf %x to [%x, %x] : vector<8xf32>
  %3 = math.clampf %x to [%x, %x] : vector<8xf32>
  // CHECK: math.fpowi %x, %i : vector<8xf32>, vector<8xi32>
  %4 = math.fpowi %x, %i : vector<8xf32>, vector<8xi32>
  // CHECK: math.sincos %x : vector<8xf32>
  %5, %6 = math.sincos %x : vector<8xf32>
  // CHECK: math.acosh %x : vector<8xf32>
  %7 = math.acosh %x : vector<8xf32>
  // CHECK: arith.addui_extended %i, %i : vector<8xi32>, vector<8xi1>
  %8, %9 = arith.addui_extended %i, %i : vector<8xi32>, vector<8xi1>
  // CHECK: arith.mulsi_extended %i, %i : vector<8xi32>
  %10, %11 = arith.mulsi_extended %i, %i : vector<8xi32>
  // CHECK: arith.mului_extended %i, %i : vector<8xi32>
  %12, %13 = arith.mului_extended %i, %i : vector<8xi32>
  // CHECK: affine.apply affine_map<(d0)[s0] -> (({{.*}}d0 * 4{{.*}}s0))>(%n)[%n]
  %14 = affine.apply affine_map<(d0)[s0] -> (d0 * 4 + s0)>(%n)[%n]
  // CHECK: affine.min affine_map<(d0) -> (d0, 8)>(%n)
  %15 = affine.min affine_map<(d0) -> (d0, 8)>(%n)
  // CHECK: affine.max affine_map<(d0) -> (d0, 8)>(%n)
  %16 = affine.max affine_map<(d0) -> (d0, 8)>(%n)
  // CHECK: ub.poison : vector<8xf32>
  %17 = ub.poison : vector<8xf32>
  return
}

// CHECK-LABEL: @vectors
func.func @vectors(%v: vector<8xf32>, %x: f32, %w: vector<8x8xf32>) {
  // CHECK: vector.interleave %v, %v : vector<8xf32> -> vector<16xf32>
  %0 = vector.interleave %v, %v : vector<8xf32> -> vector<16xf32>
  // CHECK: vector.deinterleave %{{.*}} : vector<16xf32> -> vector<8xf32>
  %1, %2 = vector.deinterleave %0 : vector<16xf32> -> vector<8xf32>
  // CHECK: vector.outerproduct %v, %v, %w {kind = #vector.kind<add>} : vector<8xf32>, vector<8xf32>
  %3 = vector.outerproduct %v, %v, %w {kind = #vector.kind<add>} : vector<8xf32>, vector<8xf32>
  // CHECK: vector.outerproduct %v, %x, %v {kind = #vector.kind<add>} : vector<8xf32>, f32
  %4 = vector.outerproduct %v, %x, %v {kind = #vector.kind<add>} : vector<8xf32>, f32
  // CHECK: vector.to_elements %v : vector<8xf32>
  %5:8 = vector.to_elements %v : vector<8xf32>
  return
}

// CHECK-LABEL: @memory
func.func @memory(%m: memref<4x8x16xf32>, %d: memref<?x16xf32>, %n: index) {
  // CHECK: memref.collapse_shape %m {{\[\[}}0, 1], [2]] : memref<4x8x16xf32> into memref<32x16xf32>
  %0 = memref.collapse_shape %m [[0, 1], [2]] : memref<4x8x16xf32> into memref<32x16xf32>
  // CHECK: memref.expand_shape %d {{\[\[}}0, 1], [2]] output_shape [%n, 4, 16] : memref<?x16xf32> into memref<?x4x16xf32>
  %1 = memref.expand_shape %d [[0, 1], [2]] output_shape [%n, 4, 16] : memref<?x16xf32> into memref<?x4x16xf32>
  // CHECK: memref.assume_alignment %m, 64 : memref<4x8x16xf32>
  %2 = memref.assume_alignment %m, 64 : memref<4x8x16xf32>
  return
}

// CHECK-LABEL: @control
func.func @control(%i: index, %x: f32) -> f32 {
  // CHECK: scf.index_switch %i -> f32
  // CHECK: case -1 {
  // CHECK: default {
  %0 = scf.index_switch %i -> f32
  case -1 {
    scf.yield %x : f32
  }
  default {
    %2 = arith.addf %x, %x : f32
    scf.yield %2 : f32
  }
  scf.index_switch %i
  case 4 {
    scf.yield
  }
  default {
    scf.yield
  }
  // CHECK: scf.execute_region -> (f32)
  %1 = scf.execute_region -> f32 {
    scf.yield %0 : f32
  }
  return %1 : f32
}

// RUN: xetl-opt %s --split-input-file --verify-diagnostics | filecheck %s
// What stock operations refuse, in the order of the cases.

// CHECK: `rhs` has type i64, expected i32
func.func @f(%a: i32, %b: i64) {
  "arith.addi"(%a, %b) : (i32, i64) -> i32
  return
}
// -----
// CHECK: expected float elements, found i32
func.func @f(%a: i32) {
  %c = arith.addf %a, %a : i32
  return
}
// -----
// CHECK: the result must be wider than the source, found f32 to f16
func.func @f(%a: f32) {
  %c = arith.extf %a : f32 to f16
  return
}
// -----
// CHECK: a cast keeps the shape
func.func @f(%a: vector<4xi32>) {
  %c = arith.sitofp %a : vector<4xi32> to vector<8xf32>
  return
}
// -----
// CHECK: unknown predicate less
func.func @f(%a: i32) {
  %c = arith.cmpi less, %a, %a : i32
  return
}
// -----
// CHECK: the condition must be i1 or i1 of shape (4,), found vector<8xi1>
func.func @f(%a: vector<4xi32>, %m: vector<8xi1>) {
  %c = arith.select %m, %a, %a : vector<8xi1>, vector<4xi32>
  return
}
// -----
// CHECK: expected 2 indices, found 1
func.func @f(%m: memref<?x?xf32>, %i: index) {
  %c = memref.load %m[%i] : memref<?x?xf32>
  return
}
// -----
// CHECK: cannot be broadcast to
func.func @f(%a: vector<4xf32>) {
  %c = vector.broadcast %a : vector<4xf32> to vector<4x8xf32>
  return
}
// -----
// CHECK: a shape_cast keeps elements and their number
func.func @f(%a: vector<4xf32>) {
  %c = vector.shape_cast %a : vector<4xf32> to vector<2x4xf32>
  return
}
// -----
// CHECK: does not lie in
func.func @f(%a: vector<4xf32>) {
  %c = vector.extract %a[4] : f32 from vector<4xf32>
  return
}
// -----
// CHECK: expected a permutation of 2 dimensions, found [0, 0]
func.func @f(%a: vector<4x8xf32>) {
  %c = vector.transpose %a, [0, 0] : vector<4x8xf32> to vector<4x4xf32>
  return
}
// -----
// CHECK: iterator d2 has extent 8 and 4
func.func @f(%a: vector<4x8xf32>, %b: vector<4x8xf32>) {
  %c = vector.contract {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %a, %a, %b : vector<4x8xf32>, vector<4x8xf32> into vector<4x8xf32>
  return
}
// -----
// CHECK: the body yields
func.func @f(%a: index, %m: i1) {
  %r = scf.for %i = %a to %a step %a iter_args(%x = %a) -> (index) { scf.yield %m : i1 }
  return
}
// -----
// CHECK: an if with results needs an else region
func.func @f(%a: index, %m: i1) {
  %r = scf.if %m -> (index) { scf.yield %a : index }
  return
}
// -----
// CHECK: a dimension is x, y or z, found w
func.func @f() {
  %r = gpu.block_id w
  return
}
// -----
// CHECK: is used before it is defined
func.func @f(%a: index) {
  %r = arith.addi %s, %a : index
  %s = arith.addi %a, %a : index
  return
}
// -----
// CHECK: loops over tensors are not supported; bufferize first
func.func @f(%a: tensor<8xf32>) {
  %b = scf.forall (%i) in (8) shared_outs(%c = %a) -> (tensor<8xf32>) {
  }
  return
}
// -----
// CHECK: one index for each of the bounds is needed
func.func @f() {
  scf.forall (%i) = (0) to (8) step (1, 1) {
  }
  return
}
// -----
// CHECK: only dimensions of size 1 are dropped, found memref<4xf32>
func.func @f(%a: memref<4x4xf32>) {
  %b = memref.subview %a[0, 0] [4, 2] [1, 1] : memref<4x4xf32> to memref<4xf32>
  return
}

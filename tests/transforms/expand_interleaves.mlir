// RUN: xetl-opt %s -p expand-interleaves | filecheck %s

// Both sides stand side by side, and columns 0, 5, 1, 6, ... are gathered.
// CHECK-LABEL: @interleave
// CHECK-SAME:  %[[A:.*]]: vector<3x5xf32>, %[[B:.*]]: vector<3x5xf32>
// CHECK:       memref.alloc() : memref<3x10xf32, 3 : i64>
// CHECK:       xetile.init_tile {{.*}}[0, 0]
// CHECK-NEXT:  xetile.store_tile %[[A]]
// CHECK-NEXT:  xetile.init_tile {{.*}}[0, 5]
// CHECK-NEXT:  xetile.store_tile %[[B]]
// CHECK-NEXT:  gpu.barrier
// CHECK:       xetile.load_gather
// CHECK-NEXT:  gpu.barrier
// CHECK-NOT:   vector.interleave
func.func @interleave(%a: vector<3x5xf32>, %b: vector<3x5xf32>) -> vector<3x10xf32> {
  %r = vector.interleave %a, %b : vector<3x5xf32> -> vector<3x10xf32>
  func.return %r : vector<3x10xf32>
}

// Parts of one value share its memory; masks are bytes there.
// CHECK-LABEL: @parts
// CHECK:       memref.alloc() : memref<2x8xi8, 3 : i64>
// CHECK:       xetile.store_tile
// CHECK-NEXT:  gpu.barrier
// CHECK-NOT:   xetile.store_tile
// CHECK:       xetile.load_gather
// CHECK-NOT:   gpu.barrier
// CHECK:       xetile.load_gather
// CHECK-NEXT:  gpu.barrier
// CHECK:       arith.trunci
// CHECK:       arith.trunci
func.func @parts(%v: vector<2x8xi1>) -> (vector<2x4xi1>, vector<2x4xi1>) {
  %a = vector.extract_strided_slice %v {offsets = [0, 0], sizes = [2, 4], strides = [1, 2]} : vector<2x8xi1> to vector<2x4xi1>
  %b = vector.extract_strided_slice %v {offsets = [0, 1], sizes = [2, 4], strides = [1, 2]} : vector<2x8xi1> to vector<2x4xi1>
  func.return %a, %b : vector<2x4xi1>, vector<2x4xi1>
}

// Neighbours are left alone.
// CHECK-LABEL: @neighbours
// CHECK-NOT:   memref.alloc
func.func @neighbours(%v: vector<2x8xf32>) -> vector<2x4xf32> {
  %a = vector.extract_strided_slice %v {offsets = [0, 4], sizes = [2, 4], strides = [1, 1]} : vector<2x8xf32> to vector<2x4xf32>
  func.return %a : vector<2x4xf32>
}

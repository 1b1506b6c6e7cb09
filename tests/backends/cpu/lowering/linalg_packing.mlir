// RUN: xetl-opt %s -p pack-operands | filecheck %s
// RUN: xetl-opt %s -p 'pack-operands{blocks=16,32,64}' | filecheck %s --check-prefix=BLOCKS
// Seed 003, "Kernel preprocessing": the listing it begins with comes out.

// CHECK-LABEL: @entry
// CHECK-NEXT:  %[[A:.*]] = memref.alloc() {alignment = 64 : i64} : memref<32x32x32x32xbf16>
// CHECK-NEXT:  scf.forall (%[[I:.*]], %[[J:.*]]) in (32, 32) {
// CHECK-NEXT:    %[[ROW:.*]] = affine.apply affine_map<(d0) -> ((d0 * 32))>(%[[I]])
// CHECK-NEXT:    %[[COL:.*]] = affine.apply affine_map<(d0) -> ((d0 * 32))>(%[[J]])
// CHECK-NEXT:    %[[FROM:.*]] = memref.subview %a[%[[ROW]], %[[COL]]] [32, 32] [1, 1] : memref<1024x1024xbf16> to memref<32x32xbf16, strided<[1024, 1], offset: ?>>
// CHECK-NEXT:    %[[TO:.*]] = memref.subview %[[A]][%[[I]], %[[J]], 0, 0] [1, 1, 32, 32] [1, 1, 1, 1] : memref<32x32x32x32xbf16> to memref<32x32xbf16, strided<[32, 1], offset: ?>>
// CHECK-NEXT:    linalg.copy ins(%[[FROM]] : memref<32x32xbf16, strided<[1024, 1], offset: ?>>) outs(%[[TO]] : memref<32x32xbf16, strided<[32, 1], offset: ?>>)
// CHECK-NEXT:  }
// CHECK-NEXT:  %[[B:.*]] = memref.alloc() {alignment = 64 : i64} : memref<32x32x16x32x2xbf16>
// CHECK-NEXT:  scf.forall (%[[I:.*]], %[[J:.*]]) in (32, 32) {
// CHECK-NEXT:    %[[ROW:.*]] = affine.apply affine_map<(d0) -> ((d0 * 32))>(%[[J]])
// CHECK-NEXT:    %[[COL:.*]] = affine.apply affine_map<(d0) -> ((d0 * 32))>(%[[I]])
// CHECK-NEXT:    %[[FROM:.*]] = memref.subview %b[%[[ROW]], %[[COL]]] [32, 32] [1, 1] : memref<1024x1024xbf16> to memref<32x32xbf16, strided<[1024, 1], offset: ?>>
// CHECK-NEXT:    %[[TO:.*]] = memref.subview %[[B]][%[[I]], %[[J]], 0, 0, 0] [1, 1, 16, 32, 2] [1, 1, 1, 1, 1] : memref<32x32x16x32x2xbf16> to memref<16x32x2xbf16, strided<[64, 2, 1], offset: ?>>
// CHECK-NEXT:    %[[PAIRS:.*]] = memref.expand_shape %[[FROM]] {{\[\[}}0, 1], [2]] output_shape [16, 2, 32] : memref<32x32xbf16, strided<[1024, 1], offset: ?>> into memref<16x2x32xbf16, strided<[2048, 1024, 1], offset: ?>>
// CHECK-NEXT:    linalg.transpose ins(%[[PAIRS]]:{{.*}}) outs(%[[TO]]:{{.*}}) permutation = [0, 2, 1]
// CHECK-NEXT:  }
// CHECK-NEXT:  scf.forall (%[[I:.*]], %[[J:.*]]) in (32, 32) {
// CHECK:         %[[X:.*]] = memref.subview %[[A]][%[[I]], 0, 0, 0] [1, 32, 32, 32] [1, 1, 1, 1] : memref<32x32x32x32xbf16> to memref<32x32x32xbf16, strided<[1024, 32, 1], offset: ?>>
// CHECK-NEXT:    %[[Y:.*]] = memref.subview %[[B]][%[[J]], 0, 0, 0, 0] [1, 32, 16, 32, 2] [1, 1, 1, 1, 1] : memref<32x32x16x32x2xbf16> to memref<32x16x32x2xbf16, strided<[1024, 64, 2, 1], offset: ?>>
// CHECK-NEXT:    %[[Z:.*]] = memref.subview %c[
// CHECK-NEXT:    linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, (d3 floordiv 2), d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d1, d2)>], iterator_types = ["reduction", "parallel", "parallel", "reduction", "reduction"]} ins(%[[X]], %[[Y]] : {{.*}}) outs(%[[Z]] :
// CHECK:           arith.mulf
// CHECK:           arith.addf
// CHECK:       memref.dealloc %[[A]]
// CHECK-NEXT:  memref.dealloc %[[B]]
// BLOCKS-LABEL: @entry
// BLOCKS:       memref.alloc() {alignment = 64 : i64} : memref<64x16x16x64xbf16>
// BLOCKS-NEXT:  scf.forall ({{.*}}) in (64, 16)
// BLOCKS:       memref.alloc() {alignment = 64 : i64} : memref<32x16x32x32x2xbf16>
// BLOCKS-NEXT:  scf.forall ({{.*}}) in (32, 16)
// BLOCKS:       scf.forall ({{.*}}) in (64, 32)
func.func @entry(%a: memref<1024x1024xbf16>, %b: memref<1024x1024xbf16>, %c: memref<1024x1024xbf16>) {
  linalg.matmul ins(%a, %b : memref<1024x1024xbf16>, memref<1024x1024xbf16>) outs(%c : memref<1024x1024xbf16>)
  func.return
}

// Blocks of f32 are copied as they lie.
// CHECK-LABEL: @floats
// CHECK:       memref.alloc() {alignment = 64 : i64} : memref<2x3x32x32xf32>
// CHECK:       memref.alloc() {alignment = 64 : i64} : memref<4x3x32x32xf32>
// CHECK-NOT:   transpose
// CHECK:       iterator_types = ["reduction", "parallel", "parallel", "reduction"]
func.func @floats(%a: memref<64x96xf32>, %b: memref<96x128xf32>, %c: memref<64x128xf32>) {
  linalg.matmul ins(%a, %b : memref<64x96xf32>, memref<96x128xf32>) outs(%c : memref<64x128xf32>)
  func.return
}

// Ragged, of unknown extent, of other elements, transposed: left alone.
// CHECK-LABEL: @others
// CHECK-NOT:   alloc
// CHECK:       linalg.matmul
// CHECK-NEXT:  linalg.matmul
// CHECK-NEXT:  linalg.matmul
// CHECK-NEXT:  linalg.matmul
// CHECK-NEXT:  func.return
func.func @others(%a: memref<64x33xf32>, %b: memref<33x64xf32>, %c: memref<64x64xf32>, %d: memref<?x64xf32>, %e: memref<64x64xf64>) {
  linalg.matmul ins(%a, %b : memref<64x33xf32>, memref<33x64xf32>) outs(%c : memref<64x64xf32>)
  linalg.matmul ins(%d, %c : memref<?x64xf32>, memref<64x64xf32>) outs(%d : memref<?x64xf32>)
  linalg.matmul ins(%e, %e : memref<64x64xf64>, memref<64x64xf64>) outs(%e : memref<64x64xf64>)
  linalg.matmul {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>]} ins(%c, %c : memref<64x64xf32>, memref<64x64xf32>) outs(%c : memref<64x64xf32>)
  func.return
}

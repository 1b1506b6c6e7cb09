// RUN: xetl-opt %s -p raise-to-brgemm,convert-forall-to-parallel | filecheck %s
// Seed 003, "Lowering to XSMM dialect": its two listings, before and after.

#map = affine_map<(d0) -> (d0 * 32)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>
#map2 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d3 floordiv 2, d2, d4)>
#map3 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2)>
#flat_a = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#flat_b = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
#flat_c = affine_map<(d0, d1, d2, d3) -> (d1, d2)>
!a = memref<32x32x32xbf16, strided<[1024, 32, 1], offset: ?>>
!b = memref<32x16x32x2xbf16, strided<[1024, 64, 2, 1], offset: ?>>
!c = memref<32x32xbf16, strided<[1024, 1], offset: ?>>

// CHECK-LABEL: @entry
// CHECK:       scf.parallel (%arg3, %arg4) = (
// CHECK-NEXT:    affine.apply
// CHECK-NEXT:    affine.apply
// CHECK-NEXT:    %subview = memref.subview
// CHECK-NEXT:    %subview_1 = memref.subview
// CHECK-NEXT:    %subview_2 = memref.subview
// CHECK-NEXT:    %[[BATCH:.*]] = arith.constant 32 : i64
// CHECK-NEXT:    %[[KERNEL:.*]] = xsmm.brgemm.dispatch [32, 32, 32, 32, 32, 1024, 1024, 1024] flags = (vnni_b) data_type = bf16
// CHECK-NEXT:    xsmm.brgemm(data_type = bf16, %[[KERNEL]], %subview, %subview_1, %subview_2, %[[BATCH]]) : (i64, memref<32x32x32xbf16, strided<[1024, 32, 1], offset: ?>>, memref<32x16x32x2xbf16, strided<[1024, 64, 2, 1], offset: ?>>, memref<32x32xbf16, strided<[1024, 1], offset: ?>>, i64) -> ()
// CHECK-NEXT:    scf.reduce
func.func @entry(%arg0: memref<32x32x32x32xbf16>, %arg1: memref<32x32x16x32x2xbf16>, %arg2: memref<1024x1024xbf16>) {
  scf.forall (%arg3, %arg4) in (32, 32) {
    %0 = affine.apply #map(%arg3)
    %1 = affine.apply #map(%arg4)
    %subview = memref.subview %arg0[%arg3, 0, 0, 0] [1, 32, 32, 32] [1, 1, 1, 1] : memref<32x32x32x32xbf16> to !a
    %subview_1 = memref.subview %arg1[%arg4, 0, 0, 0, 0] [1, 32, 16, 32, 2] [1, 1, 1, 1, 1] : memref<32x32x16x32x2xbf16> to !b
    %subview_2 = memref.subview %arg2[%0, %1] [32, 32] [1, 1] : memref<1024x1024xbf16> to !c
    linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["reduction", "parallel", "parallel", "reduction", "reduction"]} ins(%subview, %subview_1 : !a, !b) outs(%subview_2 : !c) {
    ^bb0(%in: bf16, %in_3: bf16, %out: bf16):
      %2 = arith.mulf %in, %in_3 : bf16
      %3 = arith.addf %out, %2 : bf16
      linalg.yield %3 : bf16
    }
  }
  func.return
}

// Blocks of f32 as they lie; the operands of sum and product may change places.
// CHECK-LABEL: @floats
// CHECK:       xsmm.brgemm.dispatch [8, 16, 4, 5, 20, 16, 40, 80] flags = (none) data_type = f32
func.func @floats(%a: memref<3x8x4xf32, strided<[40, 5, 1]>>, %b: memref<3x4x16xf32, strided<[80, 20, 1]>>, %c: memref<8x16xf32>) {
  linalg.generic {indexing_maps = [#flat_a, #flat_b, #flat_c], iterator_types = ["reduction", "parallel", "parallel", "reduction"]} ins(%a, %b : memref<3x8x4xf32, strided<[40, 5, 1]>>, memref<3x4x16xf32, strided<[80, 20, 1]>>) outs(%c : memref<8x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %y, %x : f32
    %1 = arith.addf %0, %z : f32
    linalg.yield %1 : f32
  }
  func.return
}

// Not a sum of products; columns instead of rows; B transposed; an unknown extent; a form
// that libxsmm has for other elements only: all left alone.
// CHECK-LABEL: @others
// CHECK-NOT:   xsmm
// CHECK:       func.return
func.func @others(%a: memref<3x8x8xf32>, %b: memref<3x8x8xf32>, %c: memref<8x8xf32>, %t: memref<8x8xf32, strided<[1, 8]>>, %d: memref<?x8x8xf32>, %h: memref<3x8x8xf16>, %g: memref<8x8xf16>) {
  linalg.generic {indexing_maps = [#flat_a, #flat_b, #flat_c], iterator_types = ["reduction", "parallel", "parallel", "reduction"]} ins(%a, %b : memref<3x8x8xf32>, memref<3x8x8xf32>) outs(%c : memref<8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.addf %y, %x : f32
    %1 = arith.addf %0, %z : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#flat_a, #flat_b, #flat_c], iterator_types = ["reduction", "parallel", "parallel", "reduction"]} ins(%a, %b : memref<3x8x8xf32>, memref<3x8x8xf32>) outs(%t : memref<8x8xf32, strided<[1, 8]>>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %y, %x : f32
    %1 = arith.addf %0, %z : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#flat_a, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, #flat_c], iterator_types = ["reduction", "parallel", "parallel", "reduction"]} ins(%a, %b : memref<3x8x8xf32>, memref<3x8x8xf32>) outs(%c : memref<8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %y, %x : f32
    %1 = arith.addf %0, %z : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#flat_a, #flat_b, #flat_c], iterator_types = ["reduction", "parallel", "parallel", "reduction"]} ins(%d, %b : memref<?x8x8xf32>, memref<3x8x8xf32>) outs(%c : memref<8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %y, %x : f32
    %1 = arith.addf %0, %z : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#flat_a, #flat_b, #flat_c], iterator_types = ["reduction", "parallel", "parallel", "reduction"]} ins(%h, %h : memref<3x8x8xf16>, memref<3x8x8xf16>) outs(%g : memref<8x8xf16>) {
  ^bb0(%x: f16, %y: f16, %z: f16):
    %0 = arith.mulf %y, %x : f16
    %1 = arith.addf %0, %z : f16
    linalg.yield %1 : f16
  }
  func.return
}

// RUN: xetl-opt %s -p hoist-dispatch | filecheck %s

!a = memref<32x32x32xbf16, strided<[1024, 32, 1], offset: ?>>
!b = memref<32x16x32x2xbf16, strided<[1024, 64, 2, 1], offset: ?>>
!c = memref<32x32xbf16, strided<[1024, 1], offset: ?>>

// CHECK-LABEL: @entry
// CHECK:       %k = xsmm.brgemm.dispatch [32, 32, 32, 32, 32, 1024, 1024, 1024] flags = (vnni_b) data_type = bf16
// CHECK:       scf.parallel
// CHECK-NOT:     dispatch
// CHECK:         xsmm.brgemm(data_type = bf16, %k,
func.func @entry(%A: memref<32x32x32x32xbf16>, %B: memref<32x32x16x32x2xbf16>, %C: memref<1024x1024xbf16>) {
  %c32_i64 = arith.constant 32 : i64
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%c32, %c32) step (%c1, %c1) {
    %0 = affine.apply affine_map<(d0) -> (d0 * 32)>(%i)
    %1 = affine.apply affine_map<(d0) -> (d0 * 32)>(%j)
    %a = memref.subview %A[%i, 0, 0, 0] [1, 32, 32, 32] [1, 1, 1, 1] : memref<32x32x32x32xbf16> to !a
    %b = memref.subview %B[%j, 0, 0, 0, 0] [1, 32, 16, 32, 2] [1, 1, 1, 1, 1] : memref<32x32x16x32x2xbf16> to !b
    %c = memref.subview %C[%0, %1] [32, 32] [1, 1] : memref<1024x1024xbf16> to !c
    %k = xsmm.brgemm.dispatch [32, 32, 32, 32, 32, 1024, 1024, 1024] flags = (vnni_b) data_type = bf16
    xsmm.brgemm(data_type = bf16, %k, %a, %b, %c, %c32_i64) : (i64, !a, !b, !c, i64) -> ()
    scf.reduce
  }
  func.return
}

// Equal ones are one; others are others.
// CHECK-LABEL: @twice
// CHECK:       %[[ONE:.*]] = xsmm.brgemm.dispatch [8, 8, 8, 8, 8, 8, 64, 64] flags = (none) data_type = f32
// CHECK-NEXT:  %[[TWO:.*]] = xsmm.brgemm.dispatch [8, 8, 8, 8, 8, 8, 64, 64] flags = (beta_0) data_type = f32
// CHECK-NOT:   dispatch
// CHECK:       xsmm.brgemm(data_type = f32, %[[ONE]], %a, %a, %c, %n)
// CHECK:       xsmm.brgemm(data_type = f32, %[[ONE]], %a, %a, %c, %n)
// CHECK:       xsmm.brgemm(data_type = f32, %[[TWO]], %a, %a, %c, %n)
func.func @twice(%a: memref<1x8x8xf32>, %c: memref<8x8xf32>, %n: i64) {
  %k = xsmm.brgemm.dispatch [8, 8, 8, 8, 8, 8, 64, 64] flags = (none) data_type = f32
  xsmm.brgemm(data_type = f32, %k, %a, %a, %c, %n) : (i64, memref<1x8x8xf32>, memref<1x8x8xf32>, memref<8x8xf32>, i64) -> ()
  %l = xsmm.brgemm.dispatch [8, 8, 8, 8, 8, 8, 64, 64] flags = (none) data_type = f32
  xsmm.brgemm(data_type = f32, %l, %a, %a, %c, %n) : (i64, memref<1x8x8xf32>, memref<1x8x8xf32>, memref<8x8xf32>, i64) -> ()
  %m = xsmm.brgemm.dispatch [8, 8, 8, 8, 8, 8, 64, 64] flags = (beta_0) data_type = f32
  xsmm.brgemm(data_type = f32, %m, %a, %a, %c, %n) : (i64, memref<1x8x8xf32>, memref<1x8x8xf32>, memref<8x8xf32>, i64) -> ()
  func.return
}

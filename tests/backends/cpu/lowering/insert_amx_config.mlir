// RUN: xetl-opt %s -p insert-amx-config | filecheck %s
// Seed 003, "Generating AMX configuration", before anything is hoisted.

!a = memref<32x32x32xbf16, strided<[1024, 32, 1], offset: ?>>
!b = memref<32x16x32x2xbf16, strided<[1024, 64, 2, 1], offset: ?>>
!c = memref<32x32xbf16, strided<[1024, 1], offset: ?>>

// CHECK-LABEL: @entry
// CHECK:       scf.parallel
// CHECK:         %k = xsmm.brgemm.dispatch [32, 32, 32, 32, 32, 1024, 1024, 1024] flags = (vnni_b, no_reset_tileconfig, no_setup_tileconfig) data_type = bf16
// CHECK-NEXT:    %[[STATE:.*]] = memref.alloca() : memref<64xi8>
// CHECK-NEXT:    %[[SET:.*]] = xsmm.IntelAMXtileConfig.dispatch [32, 32, 32, 32, 32, 1024, 1024, 1024] flags = (vnni_b, no_reset_tileconfig) data_type = bf16
// CHECK-NEXT:    "xsmm.IntelAMXtileConfig"(%[[SET]], %[[STATE]]) : (i64, memref<64xi8>) -> ()
// CHECK-NEXT:    xsmm.brgemm(data_type = bf16, %k, %a, %b, %c, %c32_i64)
// CHECK-NEXT:    %[[RESET:.*]] = xsmm.IntelAMXtileConfig.dispatch [32, 32, 32, 32, 32, 1024, 1024, 1024] flags = (vnni_b, no_setup_tileconfig) data_type = bf16
// CHECK-NEXT:    "xsmm.IntelAMXtileConfig"(%[[RESET]], %[[STATE]])
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

// f32 has no tiles; who says something of tiles already is left alone; `none` is no flag.
// CHECK-LABEL: @others
// CHECK-NOT:   IntelAMX
// CHECK:       flags = (beta_0) data_type = f32
// CHECK-NOT:   IntelAMX
// CHECK:       flags = (vnni_b, no_reset_tileconfig) data_type = bf16
// CHECK-NOT:   IntelAMX
// CHECK:       func.return
func.func @others(%a: memref<1x8x8xf32>, %b: memref<1x8x8xf32>, %c: memref<8x8xf32>, %x: memref<1x8x8xbf16>, %y: memref<1x4x8x2xbf16>, %z: memref<8x8xbf16>, %n: i64) {
  %k = xsmm.brgemm.dispatch [8, 8, 8, 8, 8, 8, 64, 64] flags = (beta_0) data_type = f32
  xsmm.brgemm(data_type = f32, %k, %a, %b, %c, %n) : (i64, memref<1x8x8xf32>, memref<1x8x8xf32>, memref<8x8xf32>, i64) -> ()
  %l = xsmm.brgemm.dispatch [8, 8, 8, 8, 8, 8, 64, 64] flags = (vnni_b, no_reset_tileconfig) data_type = bf16
  xsmm.brgemm(data_type = bf16, %l, %x, %y, %z, %n) : (i64, memref<1x8x8xbf16>, memref<1x4x8x2xbf16>, memref<8x8xbf16>, i64) -> ()
  func.return
}

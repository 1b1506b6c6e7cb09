// RUN: xetl-opt %s -p legalize-vectors,canonicalize | filecheck %s
// XeTile RFC (seed 001), appendix 1, the listings in memref and vector: C = A @ B where memory holds BT, B transposed.
// M = N = 128, K = 96; BF16, M_tile = N_tile = 64, K_tile = 32.
// Corrected:
//  * the products of the K loop are added up in f32 and stored once as bf16; the document drops each one;
//  * loops count to M, N and K, without the document's "- 1"; memrefs are arguments, not allocated at &A;
//  * "col-major" BT is viewed as K x N with strides [1, K]; the document says [K, 1], which is row-major;
//  * the second listing transposes the vector %vbt; the document transposes the memref %bt.

!A = memref<128x96xbf16>
!BT = memref<128x96xbf16>
!BView = memref<96x128xbf16, strided<[1, 96]>>
!C = memref<128x128xbf16>

gpu.module @appendix_1 {
// CHECK-LABEL: @vectors_in_order
// CHECK-NOT:   memref.subview
// CHECK:       init_tile %A[%i, %k] {{.*}} -> !xetile.tile<64x32xbf16>
// CHECK:       init_tile {{.*}}[%k, %j] {{.*}} -> !xetile.tile<32x64xbf16, #xetile.tile_attr<order = [0, 1]>>
// CHECK:       xetile.tile_mma
// CHECK:       init_tile %C[%i, %j]
// CHECK:       xetile.store_tile
// CHECK-LABEL: @vectors_transposed
// CHECK:       init_tile %BT[%j, %k] {{.*}} -> !xetile.tile<64x32xbf16>
// CHECK:       xetile.tile_transpose

// BT, indexed as if it were B: a view with the strides of columns (the second use of tiles).
gpu.func @vectors_in_order(%A: !A, %BT: !BT, %C: !C) kernel attributes {xetile.level = "subgroup"} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %M = arith.constant 128 : index
  %K = arith.constant 96 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<64x64xf32>
  %B = memref.reinterpret_cast %BT to offset: [0], sizes: [96, 128], strides: [1, 96] : !BT to !BView
  scf.for %i = %c0 to %M step %c64 {
    scf.for %j = %c0 to %M step %c64 {
      %sum = scf.for %k = %c0 to %K step %c32 iter_args(%acc = %zero) -> (vector<64x64xf32>) {
        %a = memref.subview %A[%i, %k] [64, 32] [1, 1] : !A to memref<64x32xbf16, strided<[96, 1], offset: ?>>
        %b = memref.subview %B[%k, %j] [32, 64] [1, 1] : !BView to memref<32x64xbf16, strided<[1, 96], offset: ?>>
        %va = vector.transfer_read %a[%c0, %c0], %pad : memref<64x32xbf16, strided<[96, 1], offset: ?>>, vector<64x32xbf16>
        %vb = vector.transfer_read %b[%c0, %c0], %pad : memref<32x64xbf16, strided<[1, 96], offset: ?>>, vector<32x64xbf16>
        %vc = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %va, %vb, %acc : vector<64x32xbf16>, vector<32x64xbf16> into vector<64x64xf32>
        scf.yield %vc : vector<64x64xf32>
      }
      %c = memref.subview %C[%i, %j] [64, 64] [1, 1] : !C to memref<64x64xbf16, strided<[128, 1], offset: ?>>
      %out = arith.truncf %sum : vector<64x64xf32> to vector<64x64xbf16>
      vector.transfer_write %out, %c[%c0, %c0] : vector<64x64xbf16>, memref<64x64xbf16, strided<[128, 1], offset: ?>>
    }
  }
  gpu.return
}

// BT as it is, and a transpose of the vector (the third use of tiles).
gpu.func @vectors_transposed(%A: !A, %BT: !BT, %C: !C) kernel attributes {xetile.level = "subgroup"} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %M = arith.constant 128 : index
  %K = arith.constant 96 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<64x64xf32>
  scf.for %i = %c0 to %M step %c64 {
    scf.for %j = %c0 to %M step %c64 {
      %sum = scf.for %k = %c0 to %K step %c32 iter_args(%acc = %zero) -> (vector<64x64xf32>) {
        %a = memref.subview %A[%i, %k] [64, 32] [1, 1] : !A to memref<64x32xbf16, strided<[96, 1], offset: ?>>
        %bt = memref.subview %BT[%j, %k] [64, 32] [1, 1] : !BT to memref<64x32xbf16, strided<[96, 1], offset: ?>>
        %va = vector.transfer_read %a[%c0, %c0], %pad : memref<64x32xbf16, strided<[96, 1], offset: ?>>, vector<64x32xbf16>
        %vbt = vector.transfer_read %bt[%c0, %c0], %pad : memref<64x32xbf16, strided<[96, 1], offset: ?>>, vector<64x32xbf16>
        %vb = vector.transpose %vbt, [1, 0] : vector<64x32xbf16> to vector<32x64xbf16>
        %vc = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %va, %vb, %acc : vector<64x32xbf16>, vector<32x64xbf16> into vector<64x64xf32>
        scf.yield %vc : vector<64x64xf32>
      }
      %c = memref.subview %C[%i, %j] [64, 64] [1, 1] : !C to memref<64x64xbf16, strided<[128, 1], offset: ?>>
      %out = arith.truncf %sum : vector<64x64xf32> to vector<64x64xbf16>
      vector.transfer_write %out, %c[%c0, %c0] : vector<64x64xbf16>, memref<64x64xbf16, strided<[128, 1], offset: ?>>
    }
  }
  gpu.return
}
}

// RUN: xetl-opt %s -p 'plan-gemm{target=amx},sink-products,place-values{target=amx},convert-xetile-to-loops{target=amx}' --verify-stage=loops | filecheck %s

!bf16 = memref<?x?xbf16, strided<[?, 1]>>
!f32 = memref<?x?xf32, strided<[?, 1]>>

// What stands between product and store is in the region, for one vector of sums.
// CHECK-LABEL: @bias
// CHECK:       "xsmm.block_gemm"
// CHECK-NEXT:  ^bb0(%[[SUMS:.*]]: vector<16xf32>, %{{.*}}: index, %{{.*}}: index):
// The row that the next strip adds is on its way.
// CHECK:         memref.prefetch %{{.*}}, read
// CHECK-NEXT:    %[[BIAS:.*]] = vector.maskedload
// CHECK:         %[[ADDED:.*]] = arith.addf %[[SUMS]], %[[BIAS]] : vector<16xf32>
// CHECK:         %[[MOST:.*]] = arith.maximumf %[[ADDED]], %[[ADDED]] : vector<16xf32>
// CHECK:         %[[SHORT:.*]] = arith.truncf %[[MOST]] : vector<16xf32> to vector<16xbf16>
// CHECK-NEXT:    scf.yield %[[SHORT]] : vector<16xbf16>
// CHECK-NOT:   vector.store
// CHECK:       func.return
func.func @bias(%A: !bf16, %B: !bf16, %D: !f32, %C: !bf16, %n: index, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%x) = (%c0) to (%grid) step (%c1) {
    %a = xetile.init_tile %A[0, 0], [%n, %n], [%n, 1] : !bf16 -> !xetile.tile<64x32xbf16>
    %b = xetile.init_tile %B[0, 0], [%n, %n], [%n, 1] : !bf16 -> !xetile.tile<32x64xbf16>
    %p = xsmm.brgemm.tile %a, %b times %c1 rows %n cols %n : !xetile.tile<64x32xbf16>, !xetile.tile<32x64xbf16> -> vector<64x64xf32>
    %d = xetile.init_tile %D[0, 0], [%n, %n], [%n, 1] : !f32 -> !xetile.tile<64x64xf32>
    %v = xetile.load_tile %d : !xetile.tile<64x64xf32> -> vector<64x64xf32>
    %e = arith.addf %p, %v : vector<64x64xf32>
    %f = arith.maximumf %e, %e : vector<64x64xf32>
    %g = arith.truncf %f : vector<64x64xf32> to vector<64x64xbf16>
    %c = xetile.init_tile %C[0, 0], [%n, %n], [%n, 1] : !bf16 -> !xetile.tile<64x64xbf16>
    xetile.store_tile %g, %c : vector<64x64xbf16>, !xetile.tile<64x64xbf16>
    scf.reduce
  }
  func.return
}

// A reduction reads the sums, too: they are in memory.
// CHECK-LABEL: @other_reader
// CHECK:       "xsmm.block_gemm"
// CHECK-NOT:   ^bb0
// CHECK:       vector.store %{{.*}} : memref<64xf32>
// CHECK:       func.return
func.func @other_reader(%A: !bf16, %B: !bf16, %D: !f32, %C: !f32, %n: index, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%x) = (%c0) to (%grid) step (%c1) {
    %a = xetile.init_tile %A[0, 0], [%n, %n], [%n, 1] : !bf16 -> !xetile.tile<64x32xbf16>
    %b = xetile.init_tile %B[0, 0], [%n, %n], [%n, 1] : !bf16 -> !xetile.tile<32x64xbf16>
    %p = xsmm.brgemm.tile %a, %b times %c1 rows %n cols %n : !xetile.tile<64x32xbf16>, !xetile.tile<32x64xbf16> -> vector<64x64xf32>
    %w = xetile.tile_reduce <add>, %p [1] : vector<64x64xf32> -> vector<64x1xf32>
    %d = xetile.init_tile %D[0, 0], [%n, %n], [%n, 1] : !f32 -> !xetile.tile<64x1xf32>
    xetile.store_tile %w, %d : vector<64x1xf32>, !xetile.tile<64x1xf32>
    %e = arith.mulf %p, %p : vector<64x64xf32>
    %c = xetile.init_tile %C[0, 0], [%n, %n], [%n, 1] : !f32 -> !xetile.tile<64x64xf32>
    xetile.store_tile %e, %c : vector<64x64xf32>, !xetile.tile<64x64xf32>
    scf.reduce
  }
  func.return
}

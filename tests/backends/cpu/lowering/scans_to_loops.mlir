// RUN: xetl-opt %s -p 'plan-gemm{target=avx512_bf16},place-values{target=avx512_bf16},convert-xetile-to-loops{target=avx512_bf16}' --verify-stage=loops | filecheck %s
// RUN: xetl-opt %s -p 'plan-gemm{target=avx2},place-values{target=avx2},convert-xetile-to-loops{target=avx2}' --verify-stage=loops | filecheck %s --check-prefix=AVX2

// A vector by itself in log2(lanes) steps, then with what all before it came to.
// CHECK-LABEL: @scanned_rows
// CHECK:       scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>)
// CHECK-COUNT-8: vector.shuffle {{.*}} vector<16xf32>
// CHECK-COUNT-2: vector.shuffle {{.*}}[15, 15,
// CHECK-NOT:   vector.shuffle
// CHECK:       vector.store
// CHECK-NOT:   vector.store
// CHECK:       scf.yield
// AVX2-LABEL:  @scanned_rows
// AVX2-COUNT-6: vector.shuffle {{.*}} vector<8xf32>
// AVX2-COUNT-2: vector.shuffle {{.*}}[7, 7,
// AVX2-NOT:    vector.shuffle
// AVX2:        vector.store
func.func @scanned_rows(%X: memref<1x1024xf32>, %Y: memref<1x1024xf32>, %Z: memref<1x1024xf32>, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %x = xetile.init_tile %X[0, 0] : memref<1x1024xf32> -> !xetile.tile<1x1024xf32>
    %y = xetile.init_tile %Y[0, 0] : memref<1x1024xf32> -> !xetile.tile<1x1024xf32>
    %z = xetile.init_tile %Z[0, 0] : memref<1x1024xf32> -> !xetile.tile<1x1024xf32>
    %g = xetile.load_tile %x : !xetile.tile<1x1024xf32> -> vector<1x1024xf32>
    %h = xetile.load_tile %y : !xetile.tile<1x1024xf32> -> vector<1x1024xf32>
    %r:2 = xetile.tile_associative_scan %g, %h {scan_dim = 1 : i64} : vector<1x1024xf32>, vector<1x1024xf32> {
    ^bb0(%g0: vector<1x1024xf32>, %h0: vector<1x1024xf32>, %g1: vector<1x1024xf32>, %h1: vector<1x1024xf32>):
      %both = arith.mulf %g0, %g1 : vector<1x1024xf32>
      %state = math.fma %h0, %g1, %h1 : vector<1x1024xf32>
      scf.yield %both, %state : vector<1x1024xf32>, vector<1x1024xf32>
    }
    xetile.store_tile %r#1, %z : vector<1x1024xf32>, !xetile.tile<1x1024xf32>
    scf.reduce
  }
  func.return
}

// Row by row: one running row, for the products are not read; no lane meets another one.
// CHECK-LABEL: @scanned_columns
// CHECK-NOT:   vector.shuffle
// CHECK:       memref.alloca() : memref<1x64xf32>
// CHECK-NEXT:  memref.alloca() : memref<9x64xf32>
// CHECK:       vector.store
// CHECK:       scf.for
// CHECK:         math.fma
// CHECK-NOT:   vector.shuffle
// CHECK:       func.return
func.func @scanned_columns(%X: memref<9x64xf32>, %Y: memref<9x64xf32>, %Z: memref<9x64xf32>, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %x = xetile.init_tile %X[0, 0] : memref<9x64xf32> -> !xetile.tile<9x64xf32>
    %y = xetile.init_tile %Y[0, 0] : memref<9x64xf32> -> !xetile.tile<9x64xf32>
    %z = xetile.init_tile %Z[0, 0] : memref<9x64xf32> -> !xetile.tile<9x64xf32>
    %g = xetile.load_tile %x : !xetile.tile<9x64xf32> -> vector<9x64xf32>
    %h = xetile.load_tile %y : !xetile.tile<9x64xf32> -> vector<9x64xf32>
    %r:2 = xetile.tile_associative_scan %g, %h {scan_dim = 0 : i64} : vector<9x64xf32>, vector<9x64xf32> {
    ^bb0(%g0: vector<9x64xf32>, %h0: vector<9x64xf32>, %g1: vector<9x64xf32>, %h1: vector<9x64xf32>):
      %both = arith.mulf %g0, %g1 : vector<9x64xf32>
      %state = math.fma %h0, %g1, %h1 : vector<9x64xf32>
      scf.yield %both, %state : vector<9x64xf32>, vector<9x64xf32>
    }
    xetile.store_tile %r#1, %z : vector<9x64xf32>, !xetile.tile<9x64xf32>
    scf.reduce
  }
  func.return
}

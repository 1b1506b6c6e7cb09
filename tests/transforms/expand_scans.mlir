// RUN: xetl-opt %s -p expand-scans | filecheck %s
// RUN: xetl-opt %s -p "expand-scans{elementwise=false}" | filecheck %s --check-prefix=OTHERS

// One loop over the steps; what stands before each element comes through memory.
// CHECK-LABEL: @pairs
// CHECK-SAME:  %[[G:.*]]: vector<5x3xf32>, %[[H:.*]]: vector<5x3xf32>
// CHECK-COUNT-2: memref.alloc() : memref<5x3xf32, 3 : i64>
// CHECK:       %[[THREE:.*]] = arith.constant 3 : index
// CHECK:       scf.for {{.*}} to %[[THREE]] {{.*}} iter_args(%{{.*}} = %[[G]], %{{.*}} = %[[H]])
// CHECK:         arith.shli
// CHECK:         arith.maxsi {{.*}} vector<5x1xi32>
// CHECK:         xetile.store_tile
// CHECK-NEXT:    gpu.barrier
// CHECK:         xetile.load_gather
// CHECK-NEXT:    gpu.barrier
// CHECK:         xetile.load_gather
// CHECK:         arith.mulf
// CHECK:         math.fma
// CHECK:         arith.cmpi sge
// CHECK-COUNT-2: arith.select
// CHECK-NOT:   xetile.tile_associative_scan
// OTHERS-LABEL: @pairs
// OTHERS-NOT:   memref.alloc
// OTHERS:       xetile.tile_associative_scan
func.func @pairs(%g: vector<5x3xf32>, %h: vector<5x3xf32>) -> vector<5x3xf32> {
  %r:2 = xetile.tile_associative_scan %g, %h {scan_dim = 0 : i64} : vector<5x3xf32>, vector<5x3xf32> {
  ^bb0(%g0: vector<5x3xf32>, %h0: vector<5x3xf32>, %g1: vector<5x3xf32>, %h1: vector<5x3xf32>):
    %both = arith.mulf %g0, %g1 : vector<5x3xf32>
    %state = math.fma %h0, %g1, %h1 : vector<5x3xf32>
    scf.yield %both, %state : vector<5x3xf32>, vector<5x3xf32>
  }
  func.return %r#1 : vector<5x3xf32>
}

// Masks go as bytes; a function that does more than elements at a time goes in any case.
// CHECK-LABEL: @masks
// CHECK:       memref.alloc() : memref<2x8xi8, 3 : i64>
// CHECK:       arith.extui {{.*}} to vector<2x8xi8>
// CHECK:       xetile.load_gather {{.*}} vector<2x8xi8>
// CHECK:       arith.trunci {{.*}} to vector<2x8xi1>
// OTHERS-LABEL: @masks
// OTHERS-NOT:   xetile.tile_associative_scan
// OTHERS:       memref.alloc
func.func @masks(%v: vector<2x8xi1>, %c: i1) -> vector<2x8xi1> {
  %r = xetile.tile_associative_scan %v {scan_dim = 1 : i64} : vector<2x8xi1> {
  ^bb0(%a: vector<2x8xi1>, %b: vector<2x8xi1>):
    %either = scf.if %c -> (vector<2x8xi1>) {
      %o = arith.ori %a, %b : vector<2x8xi1>
      scf.yield %o : vector<2x8xi1>
    } else {
      scf.yield %b : vector<2x8xi1>
    }
    scf.yield %either : vector<2x8xi1>
  }
  func.return %r : vector<2x8xi1>
}

// One element is what it came to; other operations stay.
// CHECK-LABEL: @others
// CHECK-NEXT:  xetile.tile_scan
// CHECK-NEXT:  func.return
func.func @others(%v: vector<4x1xi32>) -> vector<4x1xi32> {
  %s = xetile.tile_associative_scan %v {scan_dim = 1 : i64} : vector<4x1xi32> {
  ^bb0(%a: vector<4x1xi32>, %b: vector<4x1xi32>):
    scf.yield %b : vector<4x1xi32>
  }
  %t = xetile.tile_scan <add>, %s [0] : vector<4x1xi32> -> vector<4x1xi32>
  func.return %t : vector<4x1xi32>
}

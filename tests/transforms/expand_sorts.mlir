// RUN: xetl-opt %s -p expand-sorts | filecheck %s

// Two loops over the steps; elements change places through shared memory.
// CHECK-LABEL: @rows
// CHECK-SAME:  %[[V:.*]]: vector<2x8xi32>
// CHECK:       memref.alloc() : memref<2x8xi32, 3 : i64>
// CHECK:       scf.for {{.*}} iter_args(%{{.*}} = %[[V]])
// CHECK:         scf.for
// CHECK:           xetile.store_tile
// CHECK-NEXT:      gpu.barrier
// CHECK:           xetile.load_gather
// CHECK-NEXT:      gpu.barrier
// CHECK:           arith.maxsi
// CHECK:           arith.minsi
// CHECK:           arith.select
// CHECK-NOT:   xetile.tile_sort
func.func @rows(%v: vector<2x8xi32>) -> vector<2x8xi32> {
  %s = xetile.tile_sort %v [1] : vector<2x8xi32>
  func.return %s : vector<2x8xi32>
}

// What is not a power of two is padded with the largest number, and cut out again.
// CHECK-LABEL: @columns
// CHECK:       arith.constant dense<9223372036854775807> : vector<8x3xi64>
// CHECK:       xetile.store_tile {{.*}} !xetile.tile<8x3xi64
// CHECK:       xetile.store_tile {{.*}} !xetile.tile<5x3xi64
// CHECK:       xetile.load_tile {{.*}} vector<8x3xi64>
// CHECK:       scf.for
// CHECK:       xetile.load_tile {{.*}} vector<5x3xi64>
func.func @columns(%v: vector<5x3xi64>) -> vector<5x3xi64> {
  %s = xetile.tile_sort %v [0] : vector<5x3xi64>
  func.return %s : vector<5x3xi64>
}

// One element is in order; other operations stay.
// CHECK-LABEL: @others
// CHECK-NEXT:  xetile.tile_scan
// CHECK-NEXT:  func.return
func.func @others(%v: vector<4x1xi32>) -> vector<4x1xi32> {
  %s = xetile.tile_sort %v [1] : vector<4x1xi32>
  %t = xetile.tile_scan <add>, %s [0] : vector<4x1xi32> -> vector<4x1xi32>
  func.return %t : vector<4x1xi32>
}

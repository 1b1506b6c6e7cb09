// RUN: xetl-opt %s -p clamp-tile-offsets | filecheck %s

!matrix = memref<?x?xf32, strided<[?, 1]>>
!tile = !xetile.tile<64x32xf32>

// Rows may be negative, and the tile moves along k only; k starts at 0.
// CHECK-LABEL: @rows
// CHECK:       %[[SUM:.*]] = arith.addi %m, %{{.*}} : index
// CHECK:       %[[LAST:.*]] = arith.divui %[[SUM]]
// CHECK:       %[[NUMBER:.*]] = arith.minui %q, %[[LAST]] : index
// CHECK:       %[[ROW:.*]] = arith.muli %[[NUMBER]], %{{.*}} : index
// CHECK:       xetile.init_tile %A[%[[ROW]], 0]
func.func @rows(%A: !matrix, %q: index, %n: index) {
  %base, %at, %m, %k, %s0, %s1 = memref.extract_strided_metadata %A : !matrix -> memref<f32>, index, index, index, index, index
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %q, %c64 : index
  %a = xetile.init_tile %A[%row, 0], [%m, %k], [%s0, 1] : !matrix -> !tile
  %last = scf.for %i = %c0 to %n step %c32 iter_args(%t = %a) -> (!tile) {
    %v = xetile.load_tile %t : !tile -> vector<64x32xf32>
    %u = xetile.update_tile_offset %t, [0, 32] : !tile
    scf.yield %u : !tile
  }
  func.return
}

// It moves along the rows, or the offset is no multiple of the extent, or is proven.
// CHECK-LABEL: @others
// CHECK-NOT:   minui
func.func @others(%A: !matrix, %q: index, %n: index) {
  %base, %at, %m, %k, %s0, %s1 = memref.extract_strided_metadata %A : !matrix -> memref<f32>, index, index, index, index, index
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %q, %c64 : index
  %a = xetile.init_tile %A[%row, 0], [%m, %k], [%s0, 1] : !matrix -> !tile
  %b = xetile.update_tile_offset %a, [64, 0] : !tile
  %v = xetile.load_tile %b : !tile -> vector<64x32xf32>
  %c = xetile.init_tile %A[%q, 0], [%m, %k], [%s0, 1] : !matrix -> !tile
  %w = xetile.load_tile %c : !tile -> vector<64x32xf32>
  %max = arith.maxsi %q, %c0 : index
  %proven = arith.muli %max, %c64 : index
  %d = xetile.init_tile %A[%proven, 0], [%m, %k], [%s0, 1] : !matrix -> !tile
  %x = xetile.load_tile %d : !tile -> vector<64x32xf32>
  func.return
}

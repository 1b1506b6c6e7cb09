// RUN: xetl-opt %s -p fold-tile-offsets | filecheck %s

!matrix = memref<?x?xf32, strided<[?, 1]>>
!tile = !xetile.tile<16x16xf32>

// What is the same for all programs moves into a view, along both dimensions; the sum
// may be written either way.
// CHECK-LABEL: @beside
// CHECK:       %[[SKIP:.*]] = arith.muli %d, %s0 : index
// CHECK:       %[[START:.*]] = arith.addi %[[SKIP]], %n : index
// CHECK:       %[[V:.*]] = memref.reinterpret_cast %W to offset: [%[[START]]]
// CHECK:       xetile.init_tile %[[V]][%x, %at]
func.func @beside(%W: !matrix, %grid: index) {
  %base, %zero, %m, %n, %s0, %s1 = memref.extract_strided_metadata %W : !matrix -> memref<f32>, index, index, index, index, index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %d = arith.divui %n, %c16 : index
  scf.parallel (%x) = (%c0) to (%grid) step (%c1) {
    %at = arith.muli %x, %c16 : index
    %row = arith.addi %d, %x : index
    %col = arith.addi %at, %n : index
    %t = xetile.init_tile %W[%row, %col], [%m, %n], [%s0, 1] : !matrix -> !tile
    %v = xetile.load_tile %t : !tile -> vector<16x16xf32>
    scf.reduce
  }
  func.return
}

// Part of a sum may be negative, both parts are programs' own, or the tile moves
// backwards: as it was.
// CHECK-LABEL: @others
// CHECK-NOT:   reinterpret_cast
func.func @others(%W: !matrix, %grid: index, %q: index) {
  %base, %zero, %m, %n, %s0, %s1 = memref.extract_strided_metadata %W : !matrix -> memref<f32>, index, index, index, index, index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.parallel (%x) = (%c0) to (%grid) step (%c1) {
    %at = arith.muli %x, %c16 : index
    %may = arith.addi %at, %q : index
    %own = arith.addi %at, %x : index
    %t = xetile.init_tile %W[%may, %own], [%m, %n], [%s0, 1] : !matrix -> !tile
    %v = xetile.load_tile %t : !tile -> vector<16x16xf32>
    %far = arith.addi %at, %n : index
    %u = xetile.init_tile %W[%c0, %far], [%m, %n], [%s0, 1] : !matrix -> !tile
    %back = xetile.update_tile_offset %u, [0, -16] : !tile
    %w = xetile.load_tile %back : !tile -> vector<16x16xf32>
    scf.reduce
  }
  func.return
}

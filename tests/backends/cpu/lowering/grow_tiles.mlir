// RUN: xetl-opt %s -p grow-tiles | filecheck %s

// Eight columns a program become 64; nothing is stored behind those of the last one.
// CHECK-LABEL: @columns
// CHECK-DAG:   %[[END:.*]] = arith.muli %n
// CHECK-DAG:   %[[PROGRAMS:.*]] = arith.divui
// CHECK:       scf.parallel {{.*}} to (%m, %[[PROGRAMS]])
// CHECK:         load_tile {{.*}} : !xetile.tile<8x64xf32>
// CHECK:         tile_broadcast {{.*}} : vector<8x1xf32> -> vector<8x64xf32>
// CHECK:         arith.minsi {{.*}}, %[[END]]
// CHECK:         store_tile {{.*}} : vector<8x64xf32>
func.func @columns(%m: index, %n: index, %X: memref<?x?xf32, strided<[?, 1]>>, %Y: memref<?x?xf32, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%m, %n) step (%c1, %c1) {
    %row = arith.muli %i, %c8 : index
    %column = arith.muli %j, %c8 : index
    %t = xetile.init_tile %X[%row, %column], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<8x8xf32>
    %v = xetile.load_tile %t : !xetile.tile<8x8xf32> -> vector<8x8xf32>
    %s = xetile.init_tile %X[%row, 0], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<8x1xf32>
    %w = xetile.load_tile %s : !xetile.tile<8x1xf32> -> vector<8x1xf32>
    %b = xetile.tile_broadcast %w [1] : vector<8x1xf32> -> vector<8x8xf32>
    %r = arith.addf %v, %b : vector<8x8xf32>
    %u = xetile.init_tile %Y[%row, %column], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<8x8xf32>
    xetile.store_tile %r, %u : vector<8x8xf32>, !xetile.tile<8x8xf32>
    scf.reduce
  }
  func.return
}

// A sum of a tile's columns is one of the program: its neighbours have others.
// CHECK-LABEL: @sums_of_blocks
// CHECK:       scf.parallel {{.*}} to (%m, %n)
// CHECK-NOT:   x64xf32
func.func @sums_of_blocks(%m: index, %n: index, %X: memref<?x?xf32, strided<[?, 1]>>, %Y: memref<?x?xf32, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%m, %n) step (%c1, %c1) {
    %row = arith.muli %i, %c8 : index
    %column = arith.muli %j, %c8 : index
    %t = xetile.init_tile %X[%row, %column], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<8x8xf32>
    %v = xetile.load_tile %t : !xetile.tile<8x8xf32> -> vector<8x8xf32>
    %w = xetile.tile_reduce <"add">, %v [1] : vector<8x8xf32> -> vector<8x1xf32>
    %b = xetile.tile_broadcast %w [1] : vector<8x1xf32> -> vector<8x8xf32>
    %u = xetile.init_tile %Y[%row, %column], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<8x8xf32>
    xetile.store_tile %b, %u : vector<8x8xf32>, !xetile.tile<8x8xf32>
    scf.reduce
  }
  func.return
}

// RUN: xetl-opt %s -p grow-tiles | filecheck %s

// Eight columns a program become 64, and these up to four times as many by the number
// of programs; nothing is stored behind those of the last one.
// CHECK-LABEL: @columns
// CHECK:       %[[END:.*]] = arith.muli %n
// CHECK:       %[[PROGRAMS:.*]] = arith.divui
// CHECK:       arith.muli %m, %[[PROGRAMS]]
// CHECK-NEXT:  "cpu.thread_count"()
// CHECK:       arith.divui
// CHECK:       %[[TASKS:.*]] = arith.divui
// CHECK:       scf.parallel {{.*}} to (%m, %[[TASKS]])
// CHECK:         load_tile {{.*}} : !xetile.tile<8x256xf32>
// CHECK:         tile_broadcast {{.*}} : vector<8x1xf32> -> vector<8x256xf32>
// CHECK:         arith.minsi {{.*}}, %[[END]]
// CHECK:         store_tile {{.*}} : vector<8x256xf32>
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

// Rows of 64 become up to four times as long, each as many as there are tasks.
// CHECK-LABEL: @rows
// CHECK:       "cpu.thread_count"()
// CHECK:       scf.parallel {{.*}} to (%m, %{{.*}})
// CHECK:         load_tile {{.*}} : !xetile.tile<8x256xf32>
// CHECK:         store_tile {{.*}} : vector<8x256xf32>
func.func @rows(%m: index, %n: index, %X: memref<?x?xf32, strided<[?, 1]>>, %Y: memref<?x?xf32, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%m, %n) step (%c1, %c1) {
    %row = arith.muli %i, %c8 : index
    %column = arith.muli %j, %c64 : index
    %t = xetile.init_tile %X[%row, %column], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<8x64xf32>
    %v = xetile.load_tile %t : !xetile.tile<8x64xf32> -> vector<8x64xf32>
    %u = xetile.init_tile %Y[%row, %column], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<8x64xf32>
    xetile.store_tile %v, %u : vector<8x64xf32>, !xetile.tile<8x64xf32>
    scf.reduce
  }
  func.return
}

// Rows of a transpose lie along memory on one side, for each number.
// CHECK-LABEL: @transposed
// CHECK:       load_tile {{.*}} : !xetile.tile<256x128xf32>
// CHECK:       store_tile {{.*}} : vector<128x256xf32>
func.func @transposed(%m: index, %n: index, %X: memref<?x?xf32, strided<[?, 1]>>, %Y: memref<?x?xf32, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%m, %n) step (%c1, %c1) {
    %row = arith.muli %i, %c64 : index
    %column = arith.muli %j, %c64 : index
    %t = xetile.init_tile %X[%row, %column], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<64x64xf32>
    %v = xetile.load_tile %t : !xetile.tile<64x64xf32> -> vector<64x64xf32>
    %w = xetile.tile_transpose %v [1, 0] : vector<64x64xf32> -> vector<64x64xf32>
    %u = xetile.init_tile %Y[%column, %row], [%n, %m], [%m, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<64x64xf32>
    xetile.store_tile %w, %u : vector<64x64xf32>, !xetile.tile<64x64xf32>
    scf.reduce
  }
  func.return
}

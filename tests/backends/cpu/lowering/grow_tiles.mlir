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

// A loop that adds rows up to one that it carries: it is as long as a quarter of L1,
// and what is loaded ends with the task as well.
// CHECK-LABEL: @sums_down_columns
// CHECK:       scf.parallel
// CHECK:         %[[STOP:.*]] = arith.minsi %{{.*}}, %{{.*}} : index
// CHECK-NEXT:    arith.constant dense<0.000000e+00> : vector<1x{{[0-9]+}}xf32>
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      %[[COLS:.*]] = arith.minsi %n, %[[STOP]]
// CHECK-NEXT:      init_tile %X[{{.*}}], [%m, %[[COLS]]]
// CHECK-NEXT:      load_tile {{.*}} -> vector<8x{{[0-9]+}}xf32>
// CHECK-NEXT:      tile_reduce <add>, {{.*}} -> vector<1x{{[0-9]+}}xf32>
// CHECK:         arith.minsi %n, %[[STOP]]
// CHECK:         store_tile {{.*}} : vector<1x{{[0-9]+}}xf32>
func.func @sums_down_columns(%m: index, %n: index, %X: memref<?x?xf32, strided<[?, 1]>>, %Y: memref<?x?xf32, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%j) = (%c0) to (%n) step (%c1) {
    %column = arith.muli %j, %c64 : index
    %zero = arith.constant dense<0.0> : vector<1x64xf32>
    %sums = scf.for %row = %c0 to %m step %c8 iter_args(%have = %zero) -> (vector<1x64xf32>) {
      %t = xetile.init_tile %X[%row, %column], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<8x64xf32>
      %v = xetile.load_tile %t : !xetile.tile<8x64xf32> -> vector<8x64xf32>
      %w = xetile.tile_reduce <"add">, %v [0] : vector<8x64xf32> -> vector<1x64xf32>
      %s = arith.addf %have, %w : vector<1x64xf32>
      scf.yield %s : vector<1x64xf32>
    }
    %u = xetile.init_tile %Y[0, %column], [%c1, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<1x64xf32>
    xetile.store_tile %sums, %u : vector<1x64xf32>, !xetile.tile<1x64xf32>
    scf.reduce
  }
  func.return
}

// One that does more than that is much work, which several threads may share.
// CHECK-LABEL: @read_twice
// CHECK:       scf.parallel {{.*}} to (%n)
// CHECK:         load_tile {{.*}} -> vector<8x64xf32>
func.func @read_twice(%m: index, %n: index, %X: memref<?x?xf32, strided<[?, 1]>>, %Y: memref<?x?xf32, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%j) = (%c0) to (%n) step (%c1) {
    %column = arith.muli %j, %c64 : index
    %zero = arith.constant dense<0.0> : vector<1x64xf32>
    %sums = scf.for %row = %c0 to %m step %c8 iter_args(%have = %zero) -> (vector<1x64xf32>) {
      %t = xetile.init_tile %X[%row, %column], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<8x64xf32>
      %v = xetile.load_tile %t : !xetile.tile<8x64xf32> -> vector<8x64xf32>
      %q = arith.mulf %v, %v : vector<8x64xf32>
      %w = xetile.tile_reduce <"add">, %q [0] : vector<8x64xf32> -> vector<1x64xf32>
      %s = arith.addf %have, %w : vector<1x64xf32>
      scf.yield %s : vector<1x64xf32>
    }
    %u = xetile.init_tile %Y[0, %column], [%c1, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<1x64xf32>
    xetile.store_tile %sums, %u : vector<1x64xf32>, !xetile.tile<1x64xf32>
    scf.reduce
  }
  func.return
}

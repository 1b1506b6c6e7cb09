// RUN: xetl-opt %s -p collapse-rows | filecheck %s

// Where the grid covers the matrices, which are alike and have no gaps, they are rows.
// CHECK-LABEL: @add
// CHECK:       %[[DOWN:.*]] = arith.muli %gm, %{{.*}}
// CHECK-NEXT:  arith.cmpi sge, %[[DOWN]], %m
// CHECK:       %[[ALONG:.*]] = arith.muli %gn, %{{.*}}
// CHECK-NEXT:  arith.cmpi sge, %[[ALONG]], %n
// CHECK-NEXT:  arith.cmpi eq, %s, %n
// CHECK-NEXT:  arith.cmpi eq, %t, %n
// CHECK:       arith.andi
// CHECK-NEXT:  arith.andi
// CHECK-NEXT:  %[[FLAT:.*]] = arith.andi
// CHECK-NEXT:  %[[ALL:.*]] = arith.muli %m, %n
// CHECK:       %[[STEP:.*]] = arith.muli
// CHECK-NEXT:  %{{.*}} = arith.constant 1
// CHECK-NEXT:  %[[ROWS:.*]] = arith.select %[[FLAT]], %{{.*}}, %m
// CHECK-NEXT:  %[[COLUMNS:.*]] = arith.select %[[FLAT]], %[[ALL]], %n
// CHECK-NEXT:  %[[S:.*]] = arith.select %[[FLAT]], %[[STEP]], %s
// CHECK:       %[[T:.*]] = arith.select %[[FLAT]], %[[STEP]], %t
// CHECK:       %[[GM:.*]] = arith.select %[[FLAT]], %{{.*}}, %gm
// CHECK-NEXT:  %[[GN:.*]] = arith.select %[[FLAT]], %{{.*}}, %gn
// CHECK:       scf.parallel {{.*}} to (%[[GM]], %[[GN]])
// CHECK:         init_tile %X[%{{.*}}, %{{.*}}], [%[[ROWS]], %[[COLUMNS]]], [%[[S]], 1]
// CHECK:         init_tile %Y[%{{.*}}, %{{.*}}], [{{.*}}], [%[[T]], 1]
// CHECK:       } {xetl.lines}
func.func @add(%gm: index, %gn: index, %m: index, %n: index, %s: index, %t: index, %a: f32, %X: memref<?x?xf32, strided<[?, 1]>>, %Y: memref<?x?xf32, strided<[?, 1]>>) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%gm, %gn) step (%c1, %c1) {
    %row = arith.muli %i, %c8 : index
    %column = arith.muli %j, %c64 : index
    %x = xetile.init_tile %X[%row, %column], [%m, %n], [%s, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<8x64xf32>
    %v = xetile.load_tile %x : !xetile.tile<8x64xf32> -> vector<8x64xf32>
    %b = vector.broadcast %a : f32 to vector<8x64xf32>
    %r = arith.addf %v, %b : vector<8x64xf32>
    %y = xetile.init_tile %Y[%row, %column], [%m, %n], [%t, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<8x64xf32>
    xetile.store_tile %r, %y : vector<8x64xf32>, !xetile.tile<8x64xf32>
    scf.reduce
  }
  func.return
}

// What is computed at some cost and read twice gets a buffer: rows stay short.
// CHECK-LABEL: @squares_of_powers
// CHECK:       arith.select {{.*}}, %gn
// CHECK-NOT:   xetl.lines
func.func @squares_of_powers(%gm: index, %gn: index, %m: index, %n: index, %X: memref<?x?xf32, strided<[?, 1]>>) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%gm, %gn) step (%c1, %c1) {
    %row = arith.muli %i, %c64 : index
    %column = arith.muli %j, %c64 : index
    %x = xetile.init_tile %X[%row, %column], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<64x64xf32>
    %v = xetile.load_tile %x : !xetile.tile<64x64xf32> -> vector<64x64xf32>
    %e = math.exp %v : vector<64x64xf32>
    %r = arith.mulf %e, %e : vector<64x64xf32>
    xetile.store_tile %r, %x : vector<64x64xf32>, !xetile.tile<64x64xf32>
    scf.reduce
  }
  func.return
}

// A bias is another one in each column: rows stay rows.
// CHECK-LABEL: @bias
// CHECK-NOT:   arith.select
func.func @bias(%gm: index, %gn: index, %m: index, %n: index, %X: memref<?x?xf32, strided<[?, 1]>>, %B: memref<?x?xf32, strided<[?, 1]>>) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%gm, %gn) step (%c1, %c1) {
    %row = arith.muli %i, %c64 : index
    %column = arith.muli %j, %c64 : index
    %x = xetile.init_tile %X[%row, %column], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<64x64xf32>
    %v = xetile.load_tile %x : !xetile.tile<64x64xf32> -> vector<64x64xf32>
    %b = xetile.init_tile %B[0, %column], [1, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<1x64xf32>
    %w = xetile.load_tile %b : !xetile.tile<1x64xf32> -> vector<1x64xf32>
    %u = xetile.tile_broadcast %w [0] : vector<1x64xf32> -> vector<64x64xf32>
    %r = arith.addf %v, %u : vector<64x64xf32>
    xetile.store_tile %r, %x : vector<64x64xf32>, !xetile.tile<64x64xf32>
    scf.reduce
  }
  func.return
}

// Tiles on the diagonal, or where a tile's rows have gaps, do not cover a matrix.
// CHECK-LABEL: @diagonal
// CHECK-NOT:   arith.select
func.func @diagonal(%gm: index, %gn: index, %m: index, %v: vector<64x64xf32>, %X: memref<?x?xf32, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : vector<64x64xf32>
  scf.parallel (%i, %j) = (%c0, %c0) to (%gm, %gn) step (%c1, %c1) {
    %row = arith.muli %i, %c64 : index
    %x = xetile.init_tile %X[%row, %row], [%m, %m], [%m, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<64x64xf32>
    xetile.store_tile %zero, %x : vector<64x64xf32>, !xetile.tile<64x64xf32>
    scf.reduce
  }
  func.return
}

// CHECK-LABEL: @gaps
// CHECK-NOT:   arith.select
func.func @gaps(%gm: index, %gn: index, %m: index, %X: memref<?x?xf32, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : vector<32x64xf32>
  scf.parallel (%i, %j) = (%c0, %c0) to (%gm, %gn) step (%c1, %c1) {
    %row = arith.muli %i, %c64 : index
    %column = arith.muli %j, %c64 : index
    %x = xetile.init_tile %X[%row, %column], [%m, %m], [%m, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<32x64xf32>
    xetile.store_tile %zero, %x : vector<32x64xf32>, !xetile.tile<32x64xf32>
    scf.reduce
  }
  func.return
}

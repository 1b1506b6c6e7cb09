// RUN: xetl-opt %s -p order-programs | filecheck %s

// The second number moves the store along its rows, so it runs fastest.
// CHECK-LABEL: @rows_by_the_first
// CHECK:       } {xetl.order = array<i64: 1, 0>}
func.func @rows_by_the_first(%n: index, %v: vector<8x16xf32>, %Y: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %n) step (%c1, %c1) {
    %row = arith.muli %i, %c8 : index
    %column = arith.muli %j, %c8 : index
    %t = xetile.init_tile %Y[%row, %column] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
    xetile.store_tile %v, %t : vector<8x16xf32>, !xetile.tile<8x16xf32>
    scf.reduce
  }
  func.return
}

// The array lies by columns: the usual order goes along them.
// CHECK-LABEL: @by_columns
// CHECK-NOT:   xetl.order
func.func @by_columns(%n: index, %v: vector<8x16xf32>, %Y: memref<64x64xf32, strided<[1, 64]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %n) step (%c1, %c1) {
    %t = xetile.init_tile %Y[%i, %j] : memref<64x64xf32, strided<[1, 64]>> -> !xetile.tile<8x16xf32, #xetile.tile_attr<order = [0, 1]>>
    xetile.store_tile %v, %t : vector<8x16xf32>, !xetile.tile<8x16xf32, #xetile.tile_attr<order = [0, 1]>>
    scf.reduce
  }
  func.return
}

// Programs of a product share an operand as the numbers come.
// CHECK-LABEL: @product
// CHECK-NOT:   xetl.order
func.func @product(%n: index, %a: vector<8x16xf32>, %b: vector<16x16xf32>, %Y: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %n) step (%c1, %c1) {
    %v = xetile.tile_mma %a, %b : vector<8x16xf32>, vector<16x16xf32> -> vector<8x16xf32>
    %t = xetile.init_tile %Y[%i, %j] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
    xetile.store_tile %v, %t : vector<8x16xf32>, !xetile.tile<8x16xf32>
    scf.reduce
  }
  func.return
}

// RUN: xetl-opt %s -p raise-to-brgemm | filecheck %s

!matrix = memref<?x?xf32, strided<[?, 1]>>

// Tiles that move by k: the loop is one product of (n - 0) / 32 steps.
// CHECK-LABEL: @moving_tiles
// CHECK-NOT:   scf.for
// CHECK:       %[[STEPS:.*]] = arith.ceildivsi
// CHECK:       %[[COUNT:.*]] = arith.maxsi %[[STEPS]]
// CHECK:       "xsmm.brgemm.tile"(%a, %b, %zero, %[[COUNT]])
// CHECK-NOT:   trans_
func.func @moving_tiles(%A: !matrix, %B: !matrix, %n: index) -> vector<16x64xf32> {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  %a = xetile.init_tile %A[0, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<16x32xf32>
  %b = xetile.init_tile %B[0, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<32x64xf32>
  %r:3 = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero, %ta = %a, %tb = %b) -> (vector<16x64xf32>, !xetile.tile<16x32xf32>, !xetile.tile<32x64xf32>) {
    %x = xetile.load_tile %ta : !xetile.tile<16x32xf32> -> vector<16x32xf32>
    %y = xetile.load_tile %tb : !xetile.tile<32x64xf32> -> vector<32x64xf32>
    %d = xetile.tile_mma %x, %y, %acc : vector<16x32xf32>, vector<32x64xf32>, vector<16x64xf32> -> vector<16x64xf32>
    %na = xetile.update_tile_offset %ta, [0, 32] : !xetile.tile<16x32xf32>
    %nb = xetile.update_tile_offset %tb, [32, 0] : !xetile.tile<32x64xf32>
    scf.yield %d, %na, %nb : vector<16x64xf32>, !xetile.tile<16x32xf32>, !xetile.tile<32x64xf32>
  }
  func.return %r#0 : vector<16x64xf32>
}

// Tiles made anew at the counter, one of them transposed; prefetches do not matter.
// CHECK-LABEL: @rebuilt_tiles
// CHECK-NOT:   scf.for
// CHECK:       "xsmm.brgemm.tile"
// CHECK-SAME:  trans_b
func.func @rebuilt_tiles(%A: !matrix, %B: !matrix, %n: index) -> vector<16x64xf32> {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
    %a = xetile.init_tile %A[0, %k], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<16x32xf32>
    %b = xetile.init_tile %B[0, %k], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<64x32xf32>
    xetile.prefetch_tile %a : !xetile.tile<16x32xf32>
    %x = xetile.load_tile %a : !xetile.tile<16x32xf32> -> vector<16x32xf32>
    %l = xetile.load_tile %b : !xetile.tile<64x32xf32> -> vector<64x32xf32>
    %y = xetile.tile_transpose %l, [1, 0] : vector<64x32xf32> -> vector<32x64xf32>
    %d = xetile.tile_mma %x, %y, %acc : vector<16x32xf32>, vector<32x64xf32>, vector<16x64xf32> -> vector<16x64xf32>
    scf.yield %d : vector<16x64xf32>
  }
  func.return %r : vector<16x64xf32>
}

// Only what a store keeps is computed.
// CHECK-LABEL: @stored
// CHECK:       %[[ROWS:.*]] = arith.subi %m,
// CHECK:       %[[COLS:.*]] = arith.subi %n,
// CHECK:       "xsmm.brgemm.tile"(%a, %b, %{{.*}}, %[[ROWS]], %[[COLS]])
func.func @stored(%A: !matrix, %B: !matrix, %C: !matrix, %m: index, %n: index) {
  %a = xetile.init_tile %A[0, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<16x32xf32>
  %b = xetile.init_tile %B[0, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<32x64xf32>
  %c = xetile.init_tile %C[0, 0], [%m, %n], [%n, 1] : !matrix -> !xetile.tile<16x64xf32>
  %x = xetile.load_tile %a : !xetile.tile<16x32xf32> -> vector<16x32xf32>
  %y = xetile.load_tile %b : !xetile.tile<32x64xf32> -> vector<32x64xf32>
  %d = xetile.tile_mma %x, %y : vector<16x32xf32>, vector<32x64xf32> -> vector<16x64xf32>
  xetile.store_tile %d, %c : vector<16x64xf32>, !xetile.tile<16x64xf32>
  func.return
}

// A store in the loop may write what the next iteration loads: the loop stays, and the
// product in it is one step on tiles (both are read before the store).
// CHECK-LABEL: @store_in_the_loop
// CHECK:       scf.for
// CHECK:       "xsmm.brgemm.tile"(%a, %b, %acc
// CHECK:       xetile.store_tile
func.func @store_in_the_loop(%A: !matrix, %B: !matrix, %n: index) -> vector<16x64xf32> {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
    %a = xetile.init_tile %A[0, %k], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<16x32xf32>
    %b = xetile.init_tile %B[%k, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<32x64xf32>
    %x = xetile.load_tile %a : !xetile.tile<16x32xf32> -> vector<16x32xf32>
    %y = xetile.load_tile %b : !xetile.tile<32x64xf32> -> vector<32x64xf32>
    %d = xetile.tile_mma %x, %y, %acc : vector<16x32xf32>, vector<32x64xf32>, vector<16x64xf32> -> vector<16x64xf32>
    xetile.store_tile %x, %a : vector<16x32xf32>, !xetile.tile<16x32xf32>
    scf.yield %d : vector<16x64xf32>
  }
  func.return %r : vector<16x64xf32>
}

// The store stands between a load and the product: that operand stays a value.
// CHECK-LABEL: @store_in_between
// CHECK:       %x = xetile.load_tile
// CHECK:       "xsmm.brgemm.tile"(%x, %b
func.func @store_in_between(%A: !matrix, %B: !matrix, %n: index) -> vector<16x64xf32> {
  %a = xetile.init_tile %A[0, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<16x32xf32>
  %b = xetile.init_tile %B[0, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<32x64xf32>
  %x = xetile.load_tile %a : !xetile.tile<16x32xf32> -> vector<16x32xf32>
  xetile.store_tile %x, %a : vector<16x32xf32>, !xetile.tile<16x32xf32>
  %y = xetile.load_tile %b : !xetile.tile<32x64xf32> -> vector<32x64xf32>
  %d = xetile.tile_mma %x, %y : vector<16x32xf32>, vector<32x64xf32> -> vector<16x64xf32>
  func.return %d : vector<16x64xf32>
}

// An offset that may be negative, and padding other than 0: values, not tiles.
// (The last three arguments are the grid, which is positive.)
// CHECK-LABEL: @not_in_place
// CHECK:       "xsmm.brgemm.tile"(%x, %y
func.func @not_in_place(%A: !matrix, %B: !matrix, %o: index, %n: index, %gx: index, %gy: index, %gz: index) -> vector<16x64xf32> {
  %a = xetile.init_tile %A[%o, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<16x32xf32>
  %b = xetile.init_tile %B[0, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<32x64xf32>
  %x = xetile.load_tile %a : !xetile.tile<16x32xf32> -> vector<16x32xf32>
  %y = xetile.load_tile %b {padding = 1.0 : f32} : !xetile.tile<32x64xf32> -> vector<32x64xf32>
  %d = xetile.tile_mma %x, %y : vector<16x32xf32>, vector<32x64xf32> -> vector<16x64xf32>
  func.return %d : vector<16x64xf32>
}

// Tiles that move by something else than k: no batch.
// CHECK-LABEL: @other_steps
// CHECK:       scf.for
func.func @other_steps(%A: !matrix, %B: !matrix, %n: index) -> vector<16x64xf32> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  %r = scf.for %k = %c0 to %n step %c16 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
    %a = xetile.init_tile %A[0, %k], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<16x32xf32>
    %b = xetile.init_tile %B[%k, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<32x64xf32>
    %x = xetile.load_tile %a : !xetile.tile<16x32xf32> -> vector<16x32xf32>
    %y = xetile.load_tile %b : !xetile.tile<32x64xf32> -> vector<32x64xf32>
    %d = xetile.tile_mma %x, %y, %acc : vector<16x32xf32>, vector<32x64xf32>, vector<16x64xf32> -> vector<16x64xf32>
    scf.yield %d : vector<16x64xf32>
  }
  func.return %r : vector<16x64xf32>
}

// Bytes have signs.
// CHECK-LABEL: @bytes
// CHECK:       "xsmm.brgemm.tile"(%x, %y{{.*}}a_unsigned
func.func @bytes(%x: vector<16x32xi8>, %y: vector<32x64xi8>) -> vector<16x64xi32> {
  %d = xetile.tile_mma %x, %y {a_unsigned} : vector<16x32xi8>, vector<32x64xi8> -> vector<16x64xi32>
  func.return %d : vector<16x64xi32>
}

// There is no micro-kernel for i16.
// CHECK-LABEL: @other_types
// CHECK:       xetile.tile_mma
func.func @other_types(%x: vector<16x32xi16>, %y: vector<32x64xi16>) -> vector<16x64xi32> {
  %d = xetile.tile_mma %x, %y : vector<16x32xi16>, vector<32x64xi16> -> vector<16x64xi32>
  func.return %d : vector<16x64xi32>
}

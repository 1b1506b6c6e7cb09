// RUN: xetl-opt %s -p raise-to-brgemm | filecheck %s

!matrix = memref<?x?xf32, strided<[?, 1]>>

// Tiles that move by k: the loop is one product of (n - 0) / 32 steps, added to nothing.
// CHECK-LABEL: @moving_tiles
// CHECK-NOT:   scf.for
// CHECK:       %[[STEPS:.*]] = arith.ceildivsi
// CHECK:       %[[COUNT:.*]] = arith.maxsi %[[STEPS]]
// CHECK:       xsmm.brgemm.tile %a, %b times %[[COUNT]]
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
// CHECK:       xsmm.brgemm.tile
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
// CHECK:       xsmm.brgemm.tile %a, %b times %{{.*}} rows %[[ROWS]] cols %[[COLS]]
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
// CHECK:       xsmm.brgemm.tile %a, %b times %{{.*}} plus %acc
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
// CHECK:       xsmm.brgemm.tile %x, %b
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
// CHECK:       xsmm.brgemm.tile %x, %y
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
// CHECK:       xsmm.brgemm.tile %x, %y{{.*}}a_unsigned
func.func @bytes(%x: vector<16x32xi8>, %y: vector<32x64xi8>) -> vector<16x64xi32> {
  %d = xetile.tile_mma %x, %y {a_unsigned} : vector<16x32xi8>, vector<32x64xi8> -> vector<16x64xi32>
  func.return %d : vector<16x64xi32>
}

// Two accumulators that share A: two products, and no loop.
// CHECK-LABEL: @two_accumulators
// CHECK-NOT:   scf.for
// CHECK:       %[[P:.*]] = xsmm.brgemm.tile %{{.*}}, %{{.*}} times %{{.*}} :
// CHECK:       %[[Q:.*]] = xsmm.brgemm.tile %{{.*}}, %{{.*}} times %{{.*}} :
// CHECK-NOT:   scf.for
// CHECK:       func.return %[[P]], %[[Q]]
func.func @two_accumulators(%A: !matrix, %B: !matrix, %D: !matrix, %n: index) -> (vector<16x64xf32>, vector<16x64xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  %r:2 = scf.for %k = %c0 to %n step %c32 iter_args(%p = %zero, %q = %zero) -> (vector<16x64xf32>, vector<16x64xf32>) {
    %a = xetile.init_tile %A[0, %k], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<16x32xf32>
    %b = xetile.init_tile %B[%k, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<32x64xf32>
    %d = xetile.init_tile %D[%k, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<32x64xf32>
    %x = xetile.load_tile %a : !xetile.tile<16x32xf32> -> vector<16x32xf32>
    %y = xetile.load_tile %b : !xetile.tile<32x64xf32> -> vector<32x64xf32>
    %z = xetile.load_tile %d : !xetile.tile<32x64xf32> -> vector<32x64xf32>
    %np = xetile.tile_mma %x, %y, %p : vector<16x32xf32>, vector<32x64xf32>, vector<16x64xf32> -> vector<16x64xf32>
    %nq = xetile.tile_mma %x, %z, %q : vector<16x32xf32>, vector<32x64xf32>, vector<16x64xf32> -> vector<16x64xf32>
    scf.yield %np, %nq : vector<16x64xf32>, vector<16x64xf32>
  }
  func.return %r#0, %r#1 : vector<16x64xf32>, vector<16x64xf32>
}

// Two products into one accumulator, one after the other.
// CHECK-LABEL: @one_accumulator
// CHECK-NOT:   scf.for
// CHECK:       %[[P:.*]] = xsmm.brgemm.tile %{{.*}}, %{{.*}} times %{{.*}} :
// CHECK:       %[[Q:.*]] = xsmm.brgemm.tile %{{.*}}, %{{.*}} times %{{.*}} plus %[[P]]
// CHECK-NOT:   scf.for
// CHECK:       func.return %[[Q]]
func.func @one_accumulator(%A: !matrix, %B: !matrix, %D: !matrix, %n: index) -> vector<16x64xf32> {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%p = %zero) -> (vector<16x64xf32>) {
    %a = xetile.init_tile %A[0, %k], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<16x32xf32>
    %b = xetile.init_tile %B[%k, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<32x64xf32>
    %d = xetile.init_tile %D[%k, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<32x64xf32>
    %x = xetile.load_tile %a : !xetile.tile<16x32xf32> -> vector<16x32xf32>
    %y = xetile.load_tile %b : !xetile.tile<32x64xf32> -> vector<32x64xf32>
    %z = xetile.load_tile %d : !xetile.tile<32x64xf32> -> vector<32x64xf32>
    %np = xetile.tile_mma %x, %y, %p : vector<16x32xf32>, vector<32x64xf32>, vector<16x64xf32> -> vector<16x64xf32>
    %nq = xetile.tile_mma %x, %z, %np : vector<16x32xf32>, vector<32x64xf32>, vector<16x64xf32> -> vector<16x64xf32>
    scf.yield %nq : vector<16x64xf32>
  }
  func.return %r : vector<16x64xf32>
}

// What else the loop does stays in it: a sum of A's tiles, and a store to other memory.
// The product, its load of B and what it carried are gone.
// CHECK-LABEL: @something_beside
// CHECK:       xsmm.brgemm.tile
// CHECK:       scf.for %{{.*}} iter_args(%[[SUM:.*]] = %azero) -> (vector<16x32xf32>)
// CHECK-NOT:   vector<32x64xf32>
// CHECK:       arith.addf %[[SUM]]
// CHECK:       xetile.store_tile
// CHECK:       scf.yield %{{[^,]*}} : vector<16x32xf32>
func.func @something_beside(%A: !matrix, %B: !matrix, %S: !matrix, %n: index) -> (vector<16x64xf32>, vector<16x32xf32>) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  %azero = arith.constant dense<0.0> : vector<16x32xf32>
  %r:2 = scf.for %k = %c0 to %n step %c32 iter_args(%p = %zero, %s = %azero) -> (vector<16x64xf32>, vector<16x32xf32>) {
    %a = xetile.init_tile %A[0, %k], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<16x32xf32>
    %b = xetile.init_tile %B[%k, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<32x64xf32>
    %t = xetile.init_tile %S[0, %k], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<16x32xf32>
    %x = xetile.load_tile %a : !xetile.tile<16x32xf32> -> vector<16x32xf32>
    %y = xetile.load_tile %b : !xetile.tile<32x64xf32> -> vector<32x64xf32>
    %np = xetile.tile_mma %x, %y, %p : vector<16x32xf32>, vector<32x64xf32>, vector<16x64xf32> -> vector<16x64xf32>
    %ns = arith.addf %s, %x : vector<16x32xf32>
    xetile.store_tile %ns, %t : vector<16x32xf32>, !xetile.tile<16x32xf32>
    scf.yield %np, %ns : vector<16x64xf32>, vector<16x32xf32>
  }
  func.return %r#0, %r#1 : vector<16x64xf32>, vector<16x32xf32>
}

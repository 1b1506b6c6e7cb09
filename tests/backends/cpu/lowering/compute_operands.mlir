// RUN: xetl-opt %s -p compute-operands | filecheck %s

!matrix = memref<?x?xf32, strided<[?, 1]>>
!a = !xetile.tile<16x32xf32>
!b = !xetile.tile<32x64xf32>
!c = !xetile.tile<16x64xf32>

// B is scaled in the loop: that is done once, for all tiles and steps, and the loop loads
// what came of it. The tile that the loop carried is made at its counter.
// CHECK-LABEL: @scaled
// CHECK:       %ahead = memref.alloc
// CHECK:       %[[M:.*]] = memref.reinterpret_cast %ahead
// CHECK:       scf.parallel (%{{.*}}, %{{.*}}) = {{.*}} to (%gy, %{{.*}})
// CHECK:       xetile.load_tile
// CHECK:       %[[V:.*]] = arith.mulf
// CHECK:       xetile.init_tile %[[M]]
// CHECK:       xetile.store_tile %[[V]]
// CHECK:       scf.parallel (%x, %y)
// CHECK:       scf.for %k
// CHECK-NOT:   arith.mulf
// CHECK:       %[[T:.*]] = xetile.init_tile %[[M]][%k,
// CHECK:       %[[B:.*]] = xetile.load_tile %[[T]]
// CHECK:       xetile.tile_mma %{{.*}}, %[[B]], %acc
func.func @scaled(%A: !matrix, %B: !matrix, %C: !matrix, %n: index, %gx: index, %gy: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%x, %y) = (%c0, %c0) to (%gx, %gy) step (%c1, %c1) {
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %two = arith.constant dense<2.0> : vector<32x64xf32>
    %col = arith.muli %y, %c64 : index
    %b = xetile.init_tile %B[0, %col], [%n, %n], [%n, 1] : !matrix -> !b
    %c = xetile.init_tile %C[%x, %col], [%n, %n], [%n, 1] : !matrix -> !c
    %r:2 = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero, %tb = %b) -> (vector<16x64xf32>, !b) {
      %a = xetile.init_tile %A[%x, %k], [%n, %n], [%n, 1] : !matrix -> !a
      %va = xetile.load_tile %a : !a -> vector<16x32xf32>
      %vb = xetile.load_tile %tb : !b -> vector<32x64xf32>
      %s = arith.mulf %vb, %two : vector<32x64xf32>
      %d = xetile.tile_mma %va, %s, %acc : vector<16x32xf32>, vector<32x64xf32>, vector<16x64xf32> -> vector<16x64xf32>
      %nb = xetile.update_tile_offset %tb, [32, 0] : !b
      scf.yield %d, %nb : vector<16x64xf32>, !b
    }
    xetile.store_tile %r#0, %c : vector<16x64xf32>, !c
    scf.reduce
  }
  func.return
}

// The programs write what is scaled: nothing can be done ahead of them.
// CHECK-LABEL: @written
// CHECK-NOT:   memref.alloc
// CHECK:       scf.for
// CHECK:       arith.mulf
func.func @written(%A: !matrix, %B: !matrix, %n: index, %gx: index, %gy: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%x, %y) = (%c0, %c0) to (%gx, %gy) step (%c1, %c1) {
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %two = arith.constant dense<2.0> : vector<32x64xf32>
    %col = arith.muli %y, %c64 : index
    %c = xetile.init_tile %B[%x, %col], [%n, %n], [%n, 1] : !matrix -> !c
    %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %a = xetile.init_tile %A[%x, %k], [%n, %n], [%n, 1] : !matrix -> !a
      %b = xetile.init_tile %B[%k, %col], [%n, %n], [%n, 1] : !matrix -> !b
      %va = xetile.load_tile %a : !a -> vector<16x32xf32>
      %vb = xetile.load_tile %b : !b -> vector<32x64xf32>
      %s = arith.mulf %vb, %two : vector<32x64xf32>
      %d = xetile.tile_mma %va, %s, %acc : vector<16x32xf32>, vector<32x64xf32>, vector<16x64xf32> -> vector<16x64xf32>
      scf.yield %d : vector<16x64xf32>
    }
    xetile.store_tile %r, %c : vector<16x64xf32>, !c
    scf.reduce
  }
  func.return
}

// What is loaded depends on both numbers of a program: no two compute the same.
// CHECK-LABEL: @own
// CHECK-NOT:   memref.alloc
// CHECK:       scf.for
// CHECK:       arith.mulf
func.func @own(%A: !matrix, %B: !matrix, %C: !matrix, %n: index, %gx: index, %gy: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.parallel (%x, %y) = (%c0, %c0) to (%gx, %gy) step (%c1, %c1) {
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %two = arith.constant dense<2.0> : vector<32x64xf32>
    %col = arith.addi %y, %x : index
    %c = xetile.init_tile %C[%x, %col], [%n, %n], [%n, 1] : !matrix -> !c
    %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %a = xetile.init_tile %A[%x, %k], [%n, %n], [%n, 1] : !matrix -> !a
      %b = xetile.init_tile %B[%k, %col], [%n, %n], [%n, 1] : !matrix -> !b
      %va = xetile.load_tile %a : !a -> vector<16x32xf32>
      %vb = xetile.load_tile %b : !b -> vector<32x64xf32>
      %s = arith.mulf %vb, %two : vector<32x64xf32>
      %d = xetile.tile_mma %va, %s, %acc : vector<16x32xf32>, vector<32x64xf32>, vector<16x64xf32> -> vector<16x64xf32>
      scf.yield %d : vector<16x64xf32>
    }
    xetile.store_tile %r, %c : vector<16x64xf32>, !c
    scf.reduce
  }
  func.return
}

// Blocks of A, a matrix for each step, are copied to one; B is read where it is.
// CHECK-LABEL: @blocks
// CHECK:       %ahead = memref.alloc
// CHECK:       scf.parallel (%{{.*}}, %[[S:.*]]) = {{.*}} to (%gx, %{{.*}})
// CHECK:       memref.subview %A[%[[S]], 0, 0]
// CHECK:       xetile.store_tile
// CHECK:       scf.parallel (%x, %y)
// CHECK:       scf.for %k
// CHECK:       xetile.init_tile %B
// CHECK:       %[[K:.*]] = arith.muli %k,
// CHECK:       xetile.init_tile %{{.*}}[%{{.*}}, %[[K]]]
// CHECK-NOT:   memref.subview %A
// CHECK:       xetile.tile_mma
func.func @blocks(%A: memref<8x64x32xf32>, %B: memref<256x128xf32>, %C: memref<64x128xf32>, %gx: index, %gy: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%x, %y) = (%c0, %c0) to (%gx, %gy) step (%c1, %c1) {
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %row = arith.muli %x, %c16 : index
    %col = arith.muli %y, %c64 : index
    %c = xetile.init_tile %C[%row, %col] : memref<64x128xf32> -> !c
    %r = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %block = memref.subview %A[%k, 0, 0] [1, 64, 32] [1, 1, 1] : memref<8x64x32xf32> to memref<64x32xf32, strided<[32, 1], offset: ?>>
      %a = xetile.init_tile %block[%row, 0] : memref<64x32xf32, strided<[32, 1], offset: ?>> -> !a
      %first = arith.muli %k, %c32 : index
      %b = xetile.init_tile %B[%first, %col] : memref<256x128xf32> -> !b
      %va = xetile.load_tile %a : !a -> vector<16x32xf32>
      %vb = xetile.load_tile %b : !b -> vector<32x64xf32>
      %d = xetile.tile_mma %va, %vb, %acc : vector<16x32xf32>, vector<32x64xf32>, vector<16x64xf32> -> vector<16x64xf32>
      scf.yield %d : vector<16x64xf32>
    }
    xetile.store_tile %r, %c : vector<16x64xf32>, !c
    scf.reduce
  }
  func.return
}

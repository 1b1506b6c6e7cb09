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

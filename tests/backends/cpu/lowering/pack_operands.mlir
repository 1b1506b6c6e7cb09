// RUN: xetl-opt %s -p 'raise-to-brgemm,hoist-launch-invariants,plan-gemm{target=avx512_bf16},pack-operands{target=avx512_bf16}' | filecheck %s

!matrix = memref<?x?xbf16, strided<[?, 1]>>
!a = !xetile.tile<16x32xbf16>
!b = !xetile.tile<32x64xbf16>
!c = !xetile.tile<16x64xf32>

// B is the same for all programs of a column of the grid: packed before they run, all
// memory reserved before the first loop. One tile more than B has stands for the rest.
// A launch that brings B packed has no tiles to pack. If every thread gets four tiles, each
// packs the groups of four that it meets, whose rows have 512 bytes, into its own memory.
// Else a task has 32 tiles, whose rows have a page, or those that there are, and 64 of k.
// CHECK-LABEL: @packed
// CHECK:       %[[B:.*]] = memref.reinterpret_cast %B
// CHECK:       %[[THREADS:.*]] = "cpu.thread_count"
// CHECK:       %[[ENOUGH:.*]] = arith.cmpi sle, %[[THREADS]], %[[GROUPS:.*]] :
// CHECK:       %packed, %is_missing, %is_there, %is_own = "cpu.packed_memory"({{.*}}%[[B]]{{.*}}argument = 1 : i64
// CHECK:       %by_thread = arith.andi %{{.*}}, %is_own
// CHECK:       %[[SOME:.*]] = arith.divui %{{.*}}, %[[C32:.*]] : index
// CHECK:       %[[MISSING:.*]] = arith.select %is_missing, %[[SOME]],
// CHECK:       %[[AHEAD:.*]] = arith.select %by_thread, %{{.*}}, %[[MISSING]]
// CHECK:       scf.parallel (%[[TASK:.*]], %{{.*}}) = {{.*}} to (%[[AHEAD]],
// CHECK:       %[[FIRST:.*]] = arith.muli %[[TASK]], %[[C32]]
// CHECK:       %[[LENGTH:.*]] = arith.minsi %{{.*}}, %c64
// CHECK:       %[[LEFT:.*]] = arith.subi %{{.*}}, %[[FIRST]]
// CHECK:       %[[TILES:.*]] = arith.minsi %[[LEFT]], %[[C32]]
// CHECK:       %[[COLUMNS:.*]] = arith.muli %c64, %[[TILES]]
// CHECK:       "xsmm.pack"(%[[B]]{{.*}}, %[[LENGTH]], %[[COLUMNS]], %packed
// CHECK:       scf.parallel
// CHECK:       %[[TILE:.*]] = arith.minsi %y
// CHECK:       %[[THREAD:.*]] = "cpu.thread_number"
// CHECK:       %[[GROUP:.*]] = arith.divui %[[TILE]],
// CHECK:       %[[FIRST:.*]] = arith.muli %[[THREAD]],
// CHECK:       %[[BEHIND:.*]] = arith.subi %[[TILE]],
// CHECK:       %[[PLACE:.*]] = arith.addi %[[FIRST]], %[[BEHIND]]
// CHECK:       %[[MINE:.*]] = arith.select %by_thread, %[[PLACE]], %[[TILE]]
// CHECK:       scf.if %by_thread
// CHECK:       %[[NEW:.*]] = "cpu.is_new"(%[[GROUP]])
// CHECK:       scf.if %[[NEW]]
// CHECK:       arith.muli %[[GROUP]], %[[WIDE:.*]] : index
// CHECK:       "xsmm.pack"(%[[B]]{{.*}}, %[[WIDE]], %packed,
// CHECK:       %[[PANEL:.*]] = arith.muli %[[MINE]],
// CHECK:       xsmm.brgemm.tile{{.*}}packed(%packed : {{.*}}, panel %[[PANEL]], {{.*}} if %is_there
func.func @packed(%A: !matrix, %B: !matrix, %C: memref<?x?xf32, strided<[?, 1]>>, %m: index, %n: index, %gx: index, %gy: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%x, %y) = (%c0, %c0) to (%gx, %gy) step (%c1, %c1) {
    %c64 = arith.constant 64 : index
    %col = arith.muli %y, %c64 : index
    %a = xetile.init_tile %A[%x, 0], [%m, %n], [%n, 1] : !matrix -> !a
    %b = xetile.init_tile %B[0, %col], [%n, %n], [%n, 1] : !matrix -> !b
    %c = xetile.init_tile %C[%x, %col], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !c
    %va = xetile.load_tile %a : !a -> vector<16x32xbf16>
    %vb = xetile.load_tile %b : !b -> vector<32x64xbf16>
    %d = xetile.tile_mma %va, %vb : vector<16x32xbf16>, vector<32x64xbf16> -> vector<16x64xf32>
    xetile.store_tile %d, %c : vector<16x64xf32>, !c
    scf.reduce
  }
  func.return
}

// A is stored (k, m): copied row by row, in parallel, all memory being reserved before;
// the product reads the copy in place.
// CHECK-LABEL: @rows
// CHECK:       %rows = memref.alloc(
// CHECK:       %[[ROWS:.*]] = memref.reinterpret_cast %rows
// CHECK:       "cpu.packed_memory"
// CHECK:       scf.parallel
// CHECK:       "xsmm.pack"
// CHECK:       scf.parallel
// CHECK:       "xsmm.pack"
// CHECK:       scf.parallel
// CHECK:       %[[TILE:.*]] = xetile.init_tile %[[ROWS]][%{{.*}}, 0]
// CHECK:       xsmm.brgemm.tile(kernel = %{{.*}}) %[[TILE]]
// CHECK-NOT:   trans_a
func.func @rows(%A: !matrix, %B: !matrix, %C: memref<?x?xf32, strided<[?, 1]>>, %m: index, %n: index, %gx: index, %gy: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%x, %y) = (%c0, %c0) to (%gx, %gy) step (%c1, %c1) {
    %c64 = arith.constant 64 : index
    %col = arith.muli %y, %c64 : index
    %a = xetile.init_tile %A[0, %x], [%n, %m], [%m, 1] : !matrix -> !xetile.tile<32x16xbf16>
    %b = xetile.init_tile %B[0, %col], [%n, %n], [%n, 1] : !matrix -> !b
    %c = xetile.init_tile %C[%x, %col], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !c
    %va = xetile.load_tile %a : !xetile.tile<32x16xbf16> -> vector<32x16xbf16>
    %ta = xetile.tile_transpose %va, [1, 0] : vector<32x16xbf16> -> vector<16x32xbf16>
    %vb = xetile.load_tile %b : !b -> vector<32x64xbf16>
    %d = xetile.tile_mma %ta, %vb : vector<16x32xbf16>, vector<32x64xbf16> -> vector<16x64xf32>
    xetile.store_tile %d, %c : vector<16x64xf32>, !c
    scf.reduce
  }
  func.return
}

// The programs write B, or an argument that may be the same memory: not packed ahead.
// CHECK-LABEL: @written
// CHECK-NOT:   cpu.packed_memory
// CHECK-NOT:   memref.alloc
// CHECK-NOT:   xsmm.pack
// CHECK:       xsmm.brgemm.tile
// CHECK:       func.return
func.func @written(%A: !matrix, %B: !matrix, %m: index, %n: index, %gx: index, %gy: index) attributes {xetile.alias_groups = array<i64: 0, 0, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%x, %y) = (%c0, %c0) to (%gx, %gy) step (%c1, %c1) {
    %c64 = arith.constant 64 : index
    %col = arith.muli %y, %c64 : index
    %a = xetile.init_tile %A[%x, 0], [%m, %n], [%n, 1] : !matrix -> !a
    %b = xetile.init_tile %B[0, %col], [%n, %n], [%n, 1] : !matrix -> !b
    %c = xetile.init_tile %A[%x, %col], [%m, %n], [%n, 1] : !matrix -> !xetile.tile<16x64xbf16>
    %va = xetile.load_tile %a : !a -> vector<16x32xbf16>
    %vb = xetile.load_tile %b : !b -> vector<32x64xbf16>
    %d = xetile.tile_mma %va, %vb : vector<16x32xbf16>, vector<32x64xbf16> -> vector<16x64xf32>
    %e = arith.truncf %d : vector<16x64xf32> to vector<16x64xbf16>
    xetile.store_tile %e, %c : vector<16x64xbf16>, !xetile.tile<16x64xbf16>
    scf.reduce
  }
  func.return
}

// The column is no program's number times the tile: packed by each program.
// CHECK-LABEL: @other_columns
// CHECK-NOT:   cpu.packed_memory
// CHECK-NOT:   memref.alloc
// CHECK:       xsmm.brgemm.tile
// CHECK:       func.return
func.func @other_columns(%A: !matrix, %B: !matrix, %C: memref<?x?xf32, strided<[?, 1]>>, %m: index, %n: index, %gx: index, %gy: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%x, %y) = (%c0, %c0) to (%gx, %gy) step (%c1, %c1) {
    %c32 = arith.constant 32 : index
    %col = arith.muli %y, %c32 : index
    %a = xetile.init_tile %A[%x, 0], [%m, %n], [%n, 1] : !matrix -> !a
    %b = xetile.init_tile %B[0, %col], [%n, %n], [%n, 1] : !matrix -> !b
    %c = xetile.init_tile %C[%x, %col], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !c
    %va = xetile.load_tile %a : !a -> vector<16x32xbf16>
    %vb = xetile.load_tile %b : !b -> vector<32x64xbf16>
    %d = xetile.tile_mma %va, %vb : vector<16x32xbf16>, vector<32x64xbf16> -> vector<16x64xf32>
    xetile.store_tile %d, %c : vector<16x64xf32>, !c
    scf.reduce
  }
  func.return
}

// Both operands may be brought.
// CHECK-LABEL: @two_operands
// CHECK:       %packed, %is_missing, %is_there, %is_own = "cpu.packed_memory"
// CHECK-SAME:  argument = 1 : i64
// CHECK:       %packed_1, %is_missing_1, %is_there_1, %is_own_1 = "cpu.packed_memory"
// CHECK-SAME:  argument = 2 : i64
// CHECK-NOT:   memref.alloc
func.func @two_operands(%A: !matrix, %B: !matrix, %D: !matrix, %C: memref<?x?xf32, strided<[?, 1]>>, %m: index, %n: index, %gx: index, %gy: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%x, %y) = (%c0, %c0) to (%gx, %gy) step (%c1, %c1) {
    %c64 = arith.constant 64 : index
    %col = arith.muli %y, %c64 : index
    %a = xetile.init_tile %A[%x, 0], [%m, %n], [%n, 1] : !matrix -> !a
    %b = xetile.init_tile %B[0, %col], [%n, %n], [%n, 1] : !matrix -> !b
    %e = xetile.init_tile %D[0, %col], [%n, %n], [%n, 1] : !matrix -> !b
    %c = xetile.init_tile %C[%x, %col], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !c
    %va = xetile.load_tile %a : !a -> vector<16x32xbf16>
    %vb = xetile.load_tile %b : !b -> vector<32x64xbf16>
    %ve = xetile.load_tile %e : !b -> vector<32x64xbf16>
    %d = xetile.tile_mma %va, %vb : vector<16x32xbf16>, vector<32x64xbf16> -> vector<16x64xf32>
    %f = xetile.tile_mma %va, %ve, %d : vector<16x32xbf16>, vector<32x64xbf16>, vector<16x64xf32> -> vector<16x64xf32>
    xetile.store_tile %f, %c : vector<16x64xf32>, !c
    scf.reduce
  }
  func.return
}

// The grid's third axis chooses the matrix: programs run in groups along it, and what a
// group multiplies by is packed before they do. The view is made again where it is packed.
// A group has as many matrices as half of L2 holds; where several threads meet at its
// end, as many as L3 holds.
// CHECK-LABEL: @batched
// CHECK:       %[[COUNT:.*]] = "cpu.thread_count"
// CHECK:       %[[ONE:.*]] = arith.cmpi eq, %[[COUNT]],
// CHECK:       %[[BYTES:.*]] = arith.select %[[ONE]], %{{.*}}, %{{.*}}
// CHECK:       %[[FITTING:.*]] = arith.divui %[[BYTES]],
// CHECK:       %[[LEAST:.*]] = arith.select %[[ONE]],
// CHECK:       %[[NEEDED:.*]] = arith.divui %[[LEAST]],
// CHECK:       %[[MOST:.*]] = arith.maxsi %[[FITTING]], %[[NEEDED]]
// CHECK:       %[[SIZE:.*]] = arith.minsi %[[MOST]], %gz
// CHECK:       %[[GROUP:.*]] = arith.maxsi %[[SIZE]],
// CHECK:       %packed = memref.alloc
// CHECK:       scf.for %first_of_group = %{{.*}} to %gz step %[[GROUP]]
// CHECK:       scf.parallel (%{{.*}}, %{{.*}}, %[[OWN:.*]]) =
// CHECK:       %[[Z:.*]] = arith.addi %first_of_group, %[[OWN]]
// CHECK:       %[[AT:.*]] = arith.muli %[[Z]], %n
// CHECK:       %[[VIEW:.*]] = memref.reinterpret_cast %B to offset: [%[[AT]]]
// CHECK:       "xsmm.pack"(%{{[^,]*}},
// CHECK:       scf.parallel {{.*}} {
// CHECK:       xsmm.brgemm.tile{{.*}}packed(%packed :
func.func @batched(%A: !matrix, %B: memref<?xbf16>, %C: memref<?x?xf32, strided<[?, 1]>>, %m: index, %n: index, %gx: index, %gy: index, %gz: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%x, %y, %z) = (%c0, %c0, %c0) to (%gx, %gy, %gz) step (%c1, %c1, %c1) {
    %c64 = arith.constant 64 : index
    %col = arith.muli %y, %c64 : index
    %at = arith.muli %z, %n : index
    %view = memref.reinterpret_cast %B to offset: [%at], sizes: [%n, %n], strides: [%n, 1] : memref<?xbf16> to memref<?x?xbf16, strided<[?, 1], offset: ?>>
    %a = xetile.init_tile %A[%x, 0], [%m, %n], [%n, 1] : !matrix -> !a
    %b = xetile.init_tile %view[0, %col], [%n, %n], [%n, 1] : memref<?x?xbf16, strided<[?, 1], offset: ?>> -> !b
    %c = xetile.init_tile %C[%x, %col], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !c
    %va = xetile.load_tile %a : !a -> vector<16x32xbf16>
    %vb = xetile.load_tile %b : !b -> vector<32x64xbf16>
    %d = xetile.tile_mma %va, %vb : vector<16x32xbf16>, vector<32x64xbf16> -> vector<16x64xf32>
    xetile.store_tile %d, %c : vector<16x64xf32>, !c
    scf.reduce
  }
  func.return
}

// The axis that chooses the matrix is the only one: no two programs share what is packed.
// CHECK-LABEL: @alone
// CHECK-NOT:   memref.alloc
// CHECK-NOT:   xsmm.pack
// CHECK:       xsmm.brgemm.tile
// CHECK:       func.return
func.func @alone(%A: !matrix, %B: memref<?xbf16>, %C: memref<?x?xf32, strided<[?, 1]>>, %m: index, %n: index, %gz: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%z) = (%c0) to (%gz) step (%c1) {
    %at = arith.muli %z, %n : index
    %view = memref.reinterpret_cast %B to offset: [%at], sizes: [%n, %n], strides: [%n, 1] : memref<?xbf16> to memref<?x?xbf16, strided<[?, 1], offset: ?>>
    %a = xetile.init_tile %A[0, 0], [%m, %n], [%n, 1] : !matrix -> !a
    %b = xetile.init_tile %view[0, 0], [%n, %n], [%n, 1] : memref<?x?xbf16, strided<[?, 1], offset: ?>> -> !b
    %c = xetile.init_tile %C[%z, 0], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !c
    %va = xetile.load_tile %a : !a -> vector<16x32xbf16>
    %vb = xetile.load_tile %b : !b -> vector<32x64xbf16>
    %d = xetile.tile_mma %va, %vb : vector<16x32xbf16>, vector<32x64xbf16> -> vector<16x64xf32>
    xetile.store_tile %d, %c : vector<16x64xf32>, !c
    scf.reduce
  }
  func.return
}

// A loop in the program counts the parts of k: all of B is packed, and each step reads
// its part, which is where the counter says, but never past the last.
// CHECK-LABEL: @steps_of_k
// CHECK:       %packed = memref.alloc
// CHECK:       "xsmm.pack"
// CHECK:       scf.parallel
// CHECK:       scf.for %[[K:.*]] = %c0 to
// CHECK:       %[[FIRST:.*]] = arith.minsi %[[K]],
// CHECK:       xsmm.brgemm.tile{{.*}}packed(%packed : {{.*}}, k %[[FIRST]])
func.func @steps_of_k(%A: !matrix, %B: !matrix, %C: memref<?x?xf32, strided<[?, 1]>>, %m: index, %n: index, %gx: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.parallel (%x) = (%c0) to (%gx) step (%c1) {
    %zero = arith.constant dense<0.0> : vector<16x64xf32>
    %half = arith.constant dense<0.5> : vector<16x64xf32>
    %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %a = xetile.init_tile %A[%x, %k], [%m, %n], [%n, 1] : !matrix -> !a
      %b = xetile.init_tile %B[%k, 0], [%n, %n], [%n, 1] : !matrix -> !b
      %va = xetile.load_tile %a : !a -> vector<16x32xbf16>
      %vb = xetile.load_tile %b : !b -> vector<32x64xbf16>
      %s = arith.mulf %acc, %half : vector<16x64xf32>
      %d = xetile.tile_mma %va, %vb, %s : vector<16x32xbf16>, vector<32x64xbf16>, vector<16x64xf32> -> vector<16x64xf32>
      scf.yield %d : vector<16x64xf32>
    }
    %c = xetile.init_tile %C[%x, 0], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !c
    xetile.store_tile %r, %c : vector<16x64xf32>, !c
    scf.reduce
  }
  func.return
}

// Two products read the same part of B: it is packed once.
// CHECK-LABEL: @shared
// CHECK:       %packed, %is_missing, %is_there, %is_own = "cpu.packed_memory"
// CHECK-NOT:   memref.alloc
// CHECK:       "xsmm.pack"
// CHECK-NOT:   "xsmm.pack"
// CHECK:       xsmm.brgemm.tile{{.*}}packed(%packed :
// CHECK:       xsmm.brgemm.tile{{.*}}packed(%packed :
func.func @shared(%A: !matrix, %B: !matrix, %C: memref<?x?xf32, strided<[?, 1]>>, %m: index, %n: index, %gx: index, %gy: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%x, %y) = (%c0, %c0) to (%gx, %gy) step (%c1, %c1) {
    %c64 = arith.constant 64 : index
    %col = arith.muli %y, %c64 : index
    %a = xetile.init_tile %A[%x, 0], [%m, %n], [%n, 1] : !matrix -> !a
    %d = xetile.init_tile %A[0, %x], [%m, %n], [%n, 1] : !matrix -> !a
    %b = xetile.init_tile %B[0, %col], [%n, %n], [%n, 1] : !matrix -> !b
    %e = xetile.init_tile %B[0, %col], [%n, %n], [%n, 1] : !matrix -> !b
    %c = xetile.init_tile %C[%x, %col], [%m, %n], [%n, 1] : memref<?x?xf32, strided<[?, 1]>> -> !c
    %va = xetile.load_tile %a : !a -> vector<16x32xbf16>
    %vd = xetile.load_tile %d : !a -> vector<16x32xbf16>
    %vb = xetile.load_tile %b : !b -> vector<32x64xbf16>
    %ve = xetile.load_tile %e : !b -> vector<32x64xbf16>
    %p = xetile.tile_mma %va, %vb : vector<16x32xbf16>, vector<32x64xbf16> -> vector<16x64xf32>
    %q = xetile.tile_mma %vd, %ve, %p : vector<16x32xbf16>, vector<32x64xbf16>, vector<16x64xf32> -> vector<16x64xf32>
    xetile.store_tile %q, %c : vector<16x64xf32>, !c
    scf.reduce
  }
  func.return
}

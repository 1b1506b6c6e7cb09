// RUN: xetl-opt %s -p 'grow-tiles{target=avx2}' | filecheck %s

!mat = memref<?x?xf32, strided<[?, 1]>>

// A task of up to two programs: its tile ends where the last of them ends.
// CHECK-LABEL: @product
// CHECK:       %[[ALL:.*]] = arith.muli %gx, %{{[0-9]+}} : index
// CHECK:       %[[STRIDE:.*]] = arith.muli %{{[0-9]+}}, %{{[0-9]+}} : index
// CHECK-NEXT:  scf.parallel (%x, %y)
// CHECK-NEXT:    %[[M:.*]] = arith.muli %x, %[[STRIDE]]
// CHECK-NEXT:    %[[NEXT:.*]] = arith.addi %[[M]], %[[STRIDE]]
// CHECK-NEXT:    %[[END:.*]] = arith.minsi %[[NEXT]], %[[ALL]]
// CHECK:         %a = xetile.init_tile %A[%[[M]], 0], {{.*}} !xetile.tile<256x32xf32>
// CHECK:         %[[ROWS:.*]] = arith.minsi %size, %[[END]]
// CHECK-NEXT:    %rows = arith.subi %[[ROWS]], %[[M]]
// CHECK-NEXT:    xsmm.brgemm.tile {{.*}} rows %rows {{.*}} vector<256x256xf32>
// CHECK-NEXT:    %[[ROWS:.*]] = arith.minsi %size, %[[END]]
// CHECK-NEXT:    xetile.init_tile %C[%[[M]], %n], [%[[ROWS]], %size]
func.func @product(%A: !mat, %B: !mat, %C: !mat, %size: index, %gx: index, %gy: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  scf.parallel (%x, %y) = (%c0, %c0) to (%gx, %gy) step (%c1, %c1) {
    %m = arith.muli %x, %c128 : index
    %n = arith.muli %y, %c256 : index
    %a = xetile.init_tile %A[%m, 0], [%size, %size], [%size, 1] : !mat -> !xetile.tile<128x32xf32>
    %b = xetile.init_tile %B[0, %n], [%size, %size], [%size, 1] : !mat -> !xetile.tile<32x256xf32>
    %rows = arith.subi %size, %m : index
    %p = xsmm.brgemm.tile %a, %b times %c1 rows %rows cols %size : !xetile.tile<128x32xf32>, !xetile.tile<32x256xf32> -> vector<128x256xf32>
    %c = xetile.init_tile %C[%m, %n], [%size, %size], [%size, 1] : !mat -> !xetile.tile<128x256xf32>
    xetile.store_tile %p, %c : vector<128x256xf32>, !xetile.tile<128x256xf32>
    scf.reduce
  }
  func.return
}

// Places that are computed: a power of two of programs that divides both a row of tiles and the grid.
// CHECK-LABEL: @computed
// CHECK:       %[[BOTH:.*]] = arith.ori %gx, %across
// CHECK:       %[[MOST:.*]] = arith.andi %[[BOTH]], %{{[0-9]+}}
// CHECK:       arith.minsi %[[MOST]]
// CHECK:       %[[SOME:.*]] = arith.maxsi
// CHECK-NEXT:  %[[TASKS:.*]] = arith.divui %gx, %[[SOME]]
// CHECK-NEXT:  %[[ACROSS:.*]] = arith.divui %across, %[[SOME]]
// CHECK:       %[[STRIDE:.*]] = arith.muli %[[SOME]]
// CHECK-NEXT:  scf.parallel (%x) = (%{{.*}}) to (%[[TASKS]])
// CHECK:         %row = arith.floordivsi %x, %[[ACROSS]]
// CHECK:         arith.muli %row, %[[ACROSS]]
// CHECK-NEXT:    %rest = arith.subi %x
// CHECK-NEXT:    %[[N:.*]] = arith.muli %rest, %[[STRIDE]]
// CHECK:         xetile.init_tile %B[0, %[[N]]], {{.*}} !xetile.tile<32x512xf32>
func.func @computed(%A: !mat, %B: !mat, %C: !mat, %size: index, %gx: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %base, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %B : !mat -> memref<f32>, index, index, index, index, index
  %across = arith.floordivsi %sizes#1, %c64 : index
  scf.parallel (%x) = (%c0) to (%gx) step (%c1) {
    %row = arith.floordivsi %x, %across : index
    %all = arith.muli %row, %across : index
    %rest = arith.subi %x, %all : index
    %m = arith.muli %row, %c8 : index
    %n = arith.muli %rest, %c64 : index
    %a = xetile.init_tile %A[%m, 0], [%size, %size], [%size, 1] : !mat -> !xetile.tile<8x32xf32>
    %b = xetile.init_tile %B[0, %n], [%size, %size], [%size, 1] : !mat -> !xetile.tile<32x64xf32>
    %cols = arith.subi %size, %n : index
    %p = xsmm.brgemm.tile %a, %b times %c1 rows %size cols %cols : !xetile.tile<8x32xf32>, !xetile.tile<32x64xf32> -> vector<8x64xf32>
    %c = xetile.init_tile %C[%m, %n], [%size, %size], [%size, 1] : !mat -> !xetile.tile<8x64xf32>
    xetile.store_tile %p, %c : vector<8x64xf32>, !xetile.tile<8x64xf32>
    scf.reduce
  }
  func.return
}

// As many columns as let few rows of C stay in L1, up to 512; what is read of them says how many a task has.
// No more than the grid has: what is packed is as wide as the tile.
// CHECK-LABEL: @columns
// CHECK:       arith.minsi %{{[0-9]+}}, %gy
// CHECK:       %[[ALL:.*]] = arith.muli %gy, %{{[0-9]+}} : index
// CHECK:       %[[STRIDE:.*]] = arith.muli %{{[0-9]+}}, %{{[0-9]+}} : index
// CHECK-NEXT:  scf.parallel (%y)
// CHECK-NEXT:    %[[N:.*]] = arith.muli %y, %[[STRIDE]]
// CHECK-NEXT:    %[[NEXT:.*]] = arith.addi %[[N]], %[[STRIDE]]
// CHECK-NEXT:    %[[END:.*]] = arith.minsi %[[NEXT]], %[[ALL]]
// CHECK:         %b = xetile.init_tile %B[0, %[[N]]], {{.*}} !xetile.tile<32x512xf32>
// CHECK:         %[[COLS:.*]] = arith.minsi %{{.*}}, %[[STRIDE]]
// CHECK-NEXT:    xsmm.brgemm.tile {{.*}} cols %[[COLS]] {{.*}} vector<8x512xf32>
// CHECK-NEXT:    %[[COLS:.*]] = arith.minsi %size, %[[END]]
// CHECK-NEXT:    xetile.init_tile %C[0, %[[N]]], [%size, %[[COLS]]]
func.func @columns(%A: !mat, %B: !mat, %C: !mat, %size: index, %gy: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%y) = (%c0) to (%gy) step (%c1) {
    %n = arith.muli %y, %c64 : index
    %a = xetile.init_tile %A[0, 0], [%size, %size], [%size, 1] : !mat -> !xetile.tile<8x32xf32>
    %b = xetile.init_tile %B[0, %n], [%size, %size], [%size, 1] : !mat -> !xetile.tile<32x64xf32>
    %cols = arith.subi %size, %n : index
    %p = xsmm.brgemm.tile %a, %b times %c1 rows %size cols %cols : !xetile.tile<8x32xf32>, !xetile.tile<32x64xf32> -> vector<8x64xf32>
    %c = xetile.init_tile %C[0, %n], [%size, %size], [%size, 1] : !mat -> !xetile.tile<8x64xf32>
    xetile.store_tile %p, %c : vector<8x64xf32>, !xetile.tile<8x64xf32>
    scf.reduce
  }
  func.return
}

// A product with a bias along its columns, which the rest of the program reads too.
// CHECK-LABEL: @bias
// CHECK:       scf.parallel (%y)
// CHECK-NEXT:    %[[N:.*]] = arith.muli %y, %[[STRIDE:.*]] : index
// CHECK:         xsmm.brgemm.tile {{.*}} vector<64x256xf32>
// CHECK:         %d = xetile.init_tile %D[0, %[[N]]], {{.*}} !xetile.tile<1x256xf32>
// CHECK:         xetile.tile_broadcast {{.*}} vector<1x256xf32> -> vector<64x256xf32>
// CHECK:         arith.addf {{.*}} vector<64x256xf32>
func.func @bias(%A: !mat, %B: !mat, %C: !mat, %D: !mat, %size: index, %gy: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%y) = (%c0) to (%gy) step (%c1) {
    %n = arith.muli %y, %c64 : index
    %a = xetile.init_tile %A[0, 0], [%size, %size], [%size, 1] : !mat -> !xetile.tile<64x32xf32>
    %b = xetile.init_tile %B[0, %n], [%size, %size], [%size, 1] : !mat -> !xetile.tile<32x64xf32>
    %cols = arith.subi %size, %n : index
    %p = xsmm.brgemm.tile %a, %b times %c1 rows %size cols %cols : !xetile.tile<64x32xf32>, !xetile.tile<32x64xf32> -> vector<64x64xf32>
    %d = xetile.init_tile %D[0, %n], [%c1, %size], [%size, 1] : !mat -> !xetile.tile<1x64xf32>
    %e = xetile.load_tile %d : !xetile.tile<1x64xf32> -> vector<1x64xf32>
    %f = xetile.tile_broadcast %e [0] : vector<1x64xf32> -> vector<64x64xf32>
    %g = arith.addf %p, %f : vector<64x64xf32>
    %c = xetile.init_tile %C[0, %n], [%size, %size], [%size, 1] : !mat -> !xetile.tile<64x64xf32>
    xetile.store_tile %g, %c : vector<64x64xf32>, !xetile.tile<64x64xf32>
    scf.reduce
  }
  func.return
}

// The number of the program says more than where its tile is.
// CHECK-LABEL: @numbered
// CHECK:       vector<128x128xf32>
func.func @numbered(%A: !mat, %B: !mat, %C: !mat, %size: index, %gx: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  scf.parallel (%x) = (%c0) to (%gx) step (%c1) {
    %m = arith.muli %x, %c128 : index
    %a = xetile.init_tile %A[%m, 0], [%size, %size], [%size, 1] : !mat -> !xetile.tile<128x32xf32>
    %b = xetile.init_tile %B[0, 0], [%size, %size], [%size, 1] : !mat -> !xetile.tile<32x128xf32>
    %p = xsmm.brgemm.tile %a, %b times %x : !xetile.tile<128x32xf32>, !xetile.tile<32x128xf32> -> vector<128x128xf32>
    %c = xetile.init_tile %C[%m, 0], [%size, %size], [%size, 1] : !mat -> !xetile.tile<128x128xf32>
    xetile.store_tile %p, %c : vector<128x128xf32>, !xetile.tile<128x128xf32>
    scf.reduce
  }
  func.return
}

// RUN: xetl-opt %s -p hoist-launch-invariants | filecheck %s

// Sizes, constants and what is computed from them move before the loop.
// CHECK-LABEL: @moves
// CHECK:       memref.extract_strided_metadata
// CHECK:       arith.constant 32
// CHECK:       %[[N:.*]] = arith.muli
// CHECK:       scf.parallel
// CHECK-NEXT:  arith.addi %program_x, %[[N]]
func.func @moves(%X: memref<?xf32, strided<[1]>>, %grid: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.parallel (%program_x) = (%zero) to (%grid) step (%one) {
    %base, %offset, %size, %stride = memref.extract_strided_metadata %X : memref<?xf32, strided<[1]>> -> memref<f32>, index, index, index
    %c = arith.constant 32 : index
    %n = arith.muli %size, %c : index
    %own = arith.addi %program_x, %n : index
    scf.reduce
  }
  func.return
}

// Stay: vectors and what reads memory. A division leaves even a loop that may run no
// times: it cannot trap.
// CHECK-LABEL: @stays
// CHECK:       arith.divsi
// CHECK:       scf.parallel
// CHECK:       arith.constant dense
// CHECK:       memref.load
// CHECK:       scf.for
func.func @stays(%X: memref<?xf32, strided<[1]>>, %n: index, %grid: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.parallel (%program_x) = (%zero) to (%grid) step (%one) {
    %v = arith.constant dense<1.0> : vector<4x4xf32>
    %x = memref.load %X[%zero] : memref<?xf32, strided<[1]>>
    scf.for %i = %zero to %n step %one {
      %q = arith.divsi %one, %n : index
    }
    scf.reduce
  }
  func.return
}

// A view made in a K loop leaves it, and then the program.
// CHECK-LABEL: @view
// CHECK:       memref.reinterpret_cast
// CHECK:       scf.parallel
// CHECK:         scf.for
// CHECK-NEXT:      xetile.init_tile
func.func @view(%X: memref<?x?xf32, strided<[?, 1]>>, %n: index, %grid: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.parallel (%program_x) = (%zero) to (%grid) step (%one) {
    scf.for %k = %zero to %n step %one {
      %v = memref.reinterpret_cast %X to offset: [0], sizes: [%n, %n], strides: [1, %n] : memref<?x?xf32, strided<[?, 1]>> to memref<?x?xf32, strided<[1, ?]>>
      %t = xetile.init_tile %v[0, %k], [%n, %n], [1, %n] : memref<?x?xf32, strided<[1, ?]>> -> !xetile.tile<8x8xf32, #xetile.tile_attr<order = [0, 1]>>
    }
    scf.reduce
  }
  func.return
}

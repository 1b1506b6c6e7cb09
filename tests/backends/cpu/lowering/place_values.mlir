// RUN: xetl-opt %s -p 'place-values{target=avx512}' | filecheck %s
// RUN: xetl-opt %s -p 'place-values{target=avx2}' | filecheck %s --check-prefix=AVX2

!row = vector<1x64xf32>
!tile = !xetile.tile<1x64xf32>
!matrix = memref<?x?xf32, strided<[?, 1]>>

// What the loop of one store reads stays in its registers.
// CHECK-LABEL: @two_readers
// CHECK:       xetile.load_tile {{.*}} {cpu.registers = "2 readers, 2 operations a vector: computed once, in registers of one loop"}
// CHECK-NEXT:  arith.addf %{{.*}}, %{{.*}} {cpu.registers = "2 readers, 5 operations a vector: computed once, in registers of one loop"}
// CHECK-NEXT:  math.exp %{{.*}} {cpu.registers = "2 readers, 15 operations a vector: computed once, in registers of one loop"}
// CHECK-NEXT:  arith.mulf %{{.*}}, %{{[a-z]*}} : vector
// CHECK-NEXT:  arith.divf %{{.*}}, %{{[a-z]*}} : vector
func.func @two_readers(%X: !matrix, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%n) step (%c1) {
    %x = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !tile
    %v = xetile.load_tile %x : !tile -> !row
    %w = arith.addf %v, %v : !row
    %e = math.exp %w : !row
    %f = arith.mulf %e, %w : !row
    %g = arith.divf %f, %e : !row
    xetile.store_tile %g, %x : !row, !tile
    scf.reduce
  }
  func.return
}

// One loop stores both of a value that is dear, and an array is updated in place.
// CHECK-LABEL: @two_stores
// CHECK:       math.exp %{{.*}} {cpu.registers = "2 readers, 12 operations a vector: computed once, in registers of one loop"}
// CHECK:       xetile.store_tile %e, %x {cpu.joined = "stored by the loop of the next one"}
// CHECK-NEXT:  xetile.store_tile %f, %y : vector
func.func @two_stores(%X: !matrix, %Y: !matrix, %n: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%n) step (%c1) {
    %x = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !tile
    %y = xetile.init_tile %Y[%p, 0], [%n, %n], [%n, 1] : !matrix -> !tile
    %v = xetile.load_tile %x : !tile -> !row
    %e = math.exp %v : !row
    %f = arith.addf %e, %v : !row
    xetile.store_tile %e, %x : !row, !tile
    xetile.store_tile %f, %y : !row, !tile
    scf.reduce
  }
  func.return
}

// So it is of two parts of a row, if they are known to be apart.
// CHECK-LABEL: @two_parts
// CHECK:       xetile.store_tile %e, %x {cpu.joined
func.func @two_parts(%X: !matrix, %Y: !matrix, %n: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%n) step (%c1) {
    %x = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !tile
    %y = xetile.init_tile %X[%p, 64], [%n, %n], [%n, 1] : !matrix -> !tile
    %v = xetile.load_tile %x : !tile -> !row
    %e = math.exp %v : !row
    %f = arith.addf %e, %v : !row
    xetile.store_tile %e, %x : !row, !tile
    xetile.store_tile %f, %y : !row, !tile
    scf.reduce
  }
  func.return
}

// CHECK-LABEL: @overlapping
// CHECK:       math.exp %{{.*}} {cpu.buffer = "2 readers, 12 operations a vector: computed once"}
// CHECK:       xetile.store_tile %e, %x : vector
func.func @overlapping(%X: !matrix, %Y: !matrix, %n: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%n) step (%c1) {
    %x = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !tile
    %y = xetile.init_tile %X[%p, 63], [%n, %n], [%n, 1] : !matrix -> !tile
    %v = xetile.load_tile %x : !tile -> !row
    %e = math.exp %v : !row
    %f = arith.addf %e, %v : !row
    xetile.store_tile %e, %x : !row, !tile
    xetile.store_tile %f, %y : !row, !tile
    scf.reduce
  }
  func.return
}

// A sum that is stored where one of its operands was is computed once: else a copy of
// that operand would be.
// CHECK-LABEL: @residual
// CHECK:       arith.addf %{{.*}} {cpu.buffer = "3 readers, 5 operations a vector: computed once, before what it reads is overwritten"}
// CHECK-LABEL: @not_overwritten
// CHECK:       arith.addf %{{.*}} {cpu.registers = "3 readers, 5 operations a vector: computed by each, in registers"}
func.func @residual(%X: !matrix, %Y: !matrix, %n: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%n) step (%c1) {
    %x = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !tile
    %y = xetile.init_tile %Y[%p, 0], [%n, %n], [%n, 1] : !matrix -> !tile
    %v = xetile.load_tile %x : !tile -> !row
    %u = xetile.load_tile %y : !tile -> !row
    %w = arith.addf %v, %u : !row
    xetile.store_tile %w, %x : !row, !tile
    %s = xetile.tile_reduce <add>, %w [1] : !row -> vector<1x1xf32>
    %b = xetile.tile_broadcast %s [1] : vector<1x1xf32> -> !row
    %d = arith.mulf %w, %b : !row
    xetile.store_tile %d, %y : !row, !tile
    scf.reduce
  }
  func.return
}
func.func @not_overwritten(%X: !matrix, %Y: !matrix, %Z: !matrix, %n: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%n) step (%c1) {
    %x = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !tile
    %y = xetile.init_tile %Y[%p, 0], [%n, %n], [%n, 1] : !matrix -> !tile
    %z = xetile.init_tile %Z[%p, 0], [%n, %n], [%n, 1] : !matrix -> !tile
    %v = xetile.load_tile %x : !tile -> !row
    %u = xetile.load_tile %y : !tile -> !row
    %w = arith.addf %v, %u : !row
    xetile.store_tile %w, %z : !row, !tile
    %s = xetile.tile_reduce <add>, %w [1] : !row -> vector<1x1xf32>
    %b = xetile.tile_broadcast %s [1] : vector<1x1xf32> -> !row
    %d = arith.mulf %w, %b : !row
    xetile.store_tile %d, %y : !row, !tile
    scf.reduce
  }
  func.return
}

// A row that four rows read is computed once if it is dear, as a row gathered from a
// column is, or loaded across rows; not if it lies along that column or a row.
// CHECK-LABEL: @rows
// CHECK:       xetile.load_tile
// CHECK:       vector.shape_cast %{{.*}} {cpu.buffer = "4 rows, 10 operations a vector: computed once"}
// CHECK:       vector.shape_cast %u : vector
// CHECK:       xetile.load_tile %y {cpu.registers = "4 rows, 2 operations a vector: computed by each, in registers"}
// CHECK:       math.exp %w {cpu.buffer = "4 rows, 12 operations a vector: computed once"}
// CHECK:       xetile.load_tile %a {cpu.buffer = "4 rows, 8 operations a vector: computed once"}
func.func @rows(%X: !matrix, %Z: memref<?x?xf32, strided<[1, ?]>>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%n) step (%c1) {
    %x = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<64x1xf32>
    %z = xetile.init_tile %Z[%p, 0], [%n, %n], [1, %n] : memref<?x?xf32, strided<[1, ?]>> -> !xetile.tile<64x1xf32, #xetile.tile_attr<order = [0, 1]>>
    %y = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !tile
    %t = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<4x64xf32>
    %v = xetile.load_tile %x : !xetile.tile<64x1xf32> -> vector<64x1xf32>
    %r = vector.shape_cast %v : vector<64x1xf32> to !row
    %rs = xetile.tile_broadcast %r [0] : !row -> vector<4x64xf32>
    %u = xetile.load_tile %z : !xetile.tile<64x1xf32, #xetile.tile_attr<order = [0, 1]>> -> vector<64x1xf32>
    %q = vector.shape_cast %u : vector<64x1xf32> to !row
    %qs = xetile.tile_broadcast %q [0] : !row -> vector<4x64xf32>
    %w = xetile.load_tile %y : !tile -> !row
    %ws = xetile.tile_broadcast %w [0] : !row -> vector<4x64xf32>
    %e = math.exp %w : !row
    %es = xetile.tile_broadcast %e [0] : !row -> vector<4x64xf32>
    %a = xetile.init_tile %Z[0, %p], [%n, %n], [1, %n] : memref<?x?xf32, strided<[1, ?]>> -> !xetile.tile<1x64xf32, #xetile.tile_attr<order = [0, 1]>>
    %b = xetile.load_tile %a : !xetile.tile<1x64xf32, #xetile.tile_attr<order = [0, 1]>> -> !row
    %bs = xetile.tile_broadcast %b [0] : !row -> vector<4x64xf32>
    %f = arith.addf %rs, %qs : vector<4x64xf32>
    %g = arith.addf %ws, %es : vector<4x64xf32>
    %i = arith.addf %f, %g : vector<4x64xf32>
    %h = arith.addf %i, %bs : vector<4x64xf32>
    xetile.store_tile %h, %t : vector<4x64xf32>, !xetile.tile<4x64xf32>
    scf.reduce
  }
  func.return
}

// A nested block reads it; a column is computed down its rows.
// CHECK-LABEL: @once
// CHECK:       math.exp %{{.*}} {cpu.buffer = "computed once, down its rows"}
// CHECK:       math.exp %{{.*}} {cpu.buffer = "computed once, for a nested block reads it"}
func.func @once(%X: !matrix, %column: vector<4x1xf32>, %n: index, %is: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%n) step (%c1) {
    %x = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<4x64xf32>
    %v = xetile.load_tile %x : !xetile.tile<4x64xf32> -> vector<4x64xf32>
    %c = math.exp %column : vector<4x1xf32>
    %b = xetile.tile_broadcast %c [1] : vector<4x1xf32> -> vector<4x64xf32>
    %e = math.exp %v : vector<4x64xf32>
    scf.if %is {
      %f = arith.mulf %e, %b : vector<4x64xf32>
      xetile.store_tile %f, %x : vector<4x64xf32>, !xetile.tile<4x64xf32>
    }
    scf.reduce
  }
  func.return
}

// Sixteen registers of AVX-512 hold a row that a loop carries; AVX2 would need thirty-two.
// CHECK-LABEL: @carried
// CHECK:       scf.yield
// CHECK:       } {cpu.registers = "rows that it carries fit"}
// AVX2-LABEL:  @carried
// AVX2-NOT:    cpu.registers
// AVX2-LABEL:  @carried_by_both
// AVX2:        } {cpu.registers = "rows that it carries fit"}
func.func @carried(%X: !matrix, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%n) step (%c1) {
    %x = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<1x256xf32>
    %v = xetile.load_tile %x : !xetile.tile<1x256xf32> -> vector<1x256xf32>
    %s = scf.for %k = %c0 to %n step %c1 iter_args(%a = %v) -> (vector<1x256xf32>) {
      %b = arith.addf %a, %a : vector<1x256xf32>
      scf.yield %b : vector<1x256xf32>
    }
    xetile.store_tile %s, %x : vector<1x256xf32>, !xetile.tile<1x256xf32>
    scf.reduce
  }
  func.return
}

func.func @carried_by_both(%X: !matrix, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%n) step (%c1) {
    %x = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !tile
    %v = xetile.load_tile %x : !tile -> !row
    %s = scf.for %k = %c0 to %n step %c1 iter_args(%a = %v) -> (!row) {
      %b = arith.addf %a, %a : !row
      scf.yield %b : !row
    }
    xetile.store_tile %s, %x : !row, !tile
    scf.reduce
  }
  func.return
}

// A reduction reads the carried row at other elements than it writes: a buffer.
// CHECK-LABEL: @read_elsewhere
// CHECK-NOT:   cpu.registers = "all
func.func @read_elsewhere(%X: !matrix, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%n) step (%c1) {
    %x = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !tile
    %v = xetile.load_tile %x : !tile -> !row
    %s = scf.for %k = %c0 to %n step %c1 iter_args(%a = %v) -> (!row) {
      %t = xetile.tile_reduce <add>, %a [1] : !row -> vector<1x1xf32>
      %u = xetile.tile_broadcast %t [1] : vector<1x1xf32> -> !row
      %b = arith.addf %a, %u : !row
      scf.yield %b : !row
    }
    xetile.store_tile %s, %x : !row, !tile
    scf.reduce
  }
  func.return
}

// A number of each row costs a vector nothing. What is widened is computed again where
// that takes a shift and a mask; with shuffles it is dearer than a buffer.
// CHECK-LABEL: @differences_from_a_mean
// CHECK:       arith.subf %{{.*}} {cpu.buffer = "2 readers, 8 operations a vector: computed once"}
// AVX2-LABEL: @differences_from_a_mean
// AVX2:       arith.subf %{{.*}} {cpu.registers = "2 readers, 4 operations a vector: computed by each, in registers"}
func.func @differences_from_a_mean(%X: memref<?x?xbf16, strided<[?, 1]>>, %Y: !matrix, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %many = arith.constant dense<64.0> : vector<1x1xf32>
  scf.parallel (%p) = (%c0) to (%n) step (%c1) {
    %x = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : memref<?x?xbf16, strided<[?, 1]>> -> !xetile.tile<1x64xbf16>
    %y = xetile.init_tile %Y[%p, 0], [%n, %n], [%n, 1] : !matrix -> !tile
    %b = xetile.load_tile %x : !xetile.tile<1x64xbf16> -> vector<1x64xbf16>
    %v = arith.extf %b : vector<1x64xbf16> to !row
    %s = xetile.tile_reduce <add>, %v [1] : !row -> vector<1x1xf32>
    %m = arith.divf %s, %many : vector<1x1xf32>
    %u = xetile.tile_broadcast %m [1] : vector<1x1xf32> -> !row
    %d = arith.subf %v, %u : !row
    %t = xetile.tile_reduce <add>, %d [1] : !row -> vector<1x1xf32>
    %w = xetile.tile_broadcast %t [1] : vector<1x1xf32> -> !row
    %e = arith.mulf %d, %w : !row
    xetile.store_tile %e, %y : !row, !tile
    scf.reduce
  }
  func.return
}

// RUN: xetl-opt %s -p 'plan-gemm{target=avx512_bf16},place-values{target=avx512_bf16},convert-xetile-to-loops{target=avx512_bf16}' --verify-stage=loops | filecheck %s
// RUN: xetl-opt %s -p 'plan-gemm{target=avx2},place-values{target=avx2},convert-xetile-to-loops{target=avx2}' --verify-stage=loops | filecheck %s --check-prefix=AVX2

!matrix = memref<?x?xf32, strided<[?, 1]>>
!tile = !xetile.tile<8x44xf32>

// One loop of whole vectors without masks, one with masks for what is left of a row;
// everything elementwise is computed inside.
// CHECK-LABEL: @elementwise
// CHECK-NOT:   memref.alloca
// CHECK:       scf.for
// CHECK:       scf.for
// CHECK-NOT:   mask
// CHECK:       vector.load {{.*}} vector<16xf32>
// CHECK-NEXT:  arith.addf
// CHECK-NEXT:  math.exp
// CHECK:       vector.store
// CHECK:       scf.for
// CHECK:       vector.maskedload
// CHECK:       vector.maskedstore
// AVX2-LABEL:  @elementwise
// AVX2:        vector.load {{.*}} vector<8xf32>
func.func @elementwise(%X: !matrix, %Y: !matrix, %n: index, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %x = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !tile
    %y = xetile.init_tile %Y[%p, 0], [%n, %n], [%n, 1] : !matrix -> !tile
    %v = xetile.load_tile %x : !tile -> vector<8x44xf32>
    %w = arith.addf %v, %v : vector<8x44xf32>
    %e = math.exp %w : vector<8x44xf32>
    xetile.store_tile %e, %y : vector<8x44xf32>, !tile
    scf.reduce
  }
  func.return
}

// Behind all that is loaded there is only padding: the sum goes on to the tile's width in
// a loop without loads.
// CHECK-LABEL: @sum_of_exponentials
// CHECK:       scf.for
// CHECK:       vector.load {{.*}} vector<16xf32>
// CHECK:       scf.for
// CHECK:       vector.maskedload
// CHECK:       scf.for
// CHECK-NOT:   load
// CHECK:       math.exp
// CHECK:       vector.reduction <add>
func.func @sum_of_exponentials(%X: !matrix, %Y: !matrix, %n: index, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %x = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<1x128xf32>
    %y = xetile.init_tile %Y[%p, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<1x1xf32>
    %v = xetile.load_tile %x : !xetile.tile<1x128xf32> -> vector<1x128xf32>
    %e = math.exp %v : vector<1x128xf32>
    %s = xetile.tile_reduce <add>, %e [1] : vector<1x128xf32> -> vector<1x1xf32>
    xetile.store_tile %s, %y : vector<1x1xf32>, !xetile.tile<1x1xf32>
    scf.reduce
  }
  func.return
}

// A tile that may begin before its matrix: masks everywhere. (The last three arguments
// are the grid, which is positive.)
// CHECK-LABEL: @may_be_negative
// CHECK-NOT:   vector.load
// CHECK-NOT:   vector.store
// CHECK:       vector.maskedload
// CHECK:       vector.maskedstore
// CHECK:       func.return
func.func @may_be_negative(%X: !matrix, %Y: !matrix, %o: index, %n: index, %gx: index, %gy: index, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %x = xetile.init_tile %X[0, %o], [%n, %n], [%n, 1] : !matrix -> !tile
    %y = xetile.init_tile %Y[0, %o], [%n, %n], [%n, 1] : !matrix -> !tile
    %v = xetile.load_tile %x : !tile -> vector<8x44xf32>
    xetile.store_tile %v, %y : vector<8x44xf32>, !tile
    scf.reduce
  }
  func.return
}

// The first store may change what the second one still needs: the load is done before
// it, into scratch.
// CHECK-LABEL: @stored_twice
// CHECK:       memref.alloca
// CHECK:       vector.load %{{.*}} memref<?x?xf32, strided<[?, 1]>>
// CHECK:       vector.store %{{.*}} memref<8x48xf32>
// AVX2-LABEL:  @stored_twice
// AVX2:        memref.alloca() : memref<8x64xf32>
func.func @stored_twice(%X: !matrix, %n: index, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %x = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !tile
    %y = xetile.init_tile %X[%p, 1], [%n, %n], [%n, 1] : !matrix -> !tile
    %v = xetile.load_tile %x : !tile -> vector<8x44xf32>
    xetile.store_tile %v, %y : vector<8x44xf32>, !tile
    xetile.store_tile %v, %x : vector<8x44xf32>, !tile
    scf.reduce
  }
  func.return
}

// Changed in place, each element read right before it is written: no scratch.
// CHECK-LABEL: @in_place
// CHECK-NOT:   memref.alloca
// CHECK:       func.return
func.func @in_place(%X: !matrix, %n: index, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %x = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !tile
    %v = xetile.load_tile %x : !tile -> vector<8x44xf32>
    %w = arith.addf %v, %v : vector<8x44xf32>
    xetile.store_tile %w, %x : vector<8x44xf32>, !tile
    scf.reduce
  }
  func.return
}

// Scalar code stays as it is.
// CHECK-LABEL: @scalars
// CHECK:       %[[SUM:.*]] = arith.addi %p, %n
// CHECK-NEXT:  arith.muli %[[SUM]], %[[SUM]]
// CHECK-NEXT:  scf.reduce
func.func @scalars(%n: index, %grid: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %s = arith.addi %p, %n : index
    %t = arith.muli %s, %s : index
    scf.reduce
  }
  func.return
}

// What is reduced down columns is added to what the loop carries: there is one buffer,
// and one loop over columns. Not if the sum so far is read, too.
// CHECK-LABEL: @columns
// CHECK:       %[[ACC:.*]] = memref.alloca() : memref<1x512xf32>
// CHECK-NOT:   memref.alloca
// CHECK:       scf.for %k = %c0 to %n
// CHECK:       vector.load %[[ACC]]
// CHECK-COUNT-4: arith.addf
// CHECK:       vector.store %{{.*}}, %[[ACC]][
// CHECK-LABEL: @columns_and_read
// CHECK:       memref.alloca() : memref<1x512xf32>
// CHECK-NEXT:  memref.alloca() : memref<1x512xf32>
func.func @columns(%X: !matrix, %Y: !matrix, %n: index, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %zero = arith.constant dense<0.0> : vector<1x512xf32>
    %r = scf.for %k = %c0 to %n step %c8 iter_args(%acc = %zero) -> (vector<1x512xf32>) {
      %x = xetile.init_tile %X[%k, %p], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<8x512xf32>
      %v = xetile.load_tile %x : !xetile.tile<8x512xf32> -> vector<8x512xf32>
      %s = xetile.tile_reduce <add>, %v [0] : vector<8x512xf32> -> vector<1x512xf32>
      %new = arith.addf %acc, %s : vector<1x512xf32>
      scf.yield %new : vector<1x512xf32>
    }
    %y = xetile.init_tile %Y[0, %p], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<1x512xf32>
    xetile.store_tile %r, %y : vector<1x512xf32>, !xetile.tile<1x512xf32>
    scf.reduce
  }
  func.return
}

func.func @columns_and_read(%X: !matrix, %Y: !matrix, %n: index, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %zero = arith.constant dense<0.0> : vector<1x512xf32>
    %r = scf.for %k = %c0 to %n step %c8 iter_args(%acc = %zero) -> (vector<1x512xf32>) {
      %x = xetile.init_tile %X[%k, %p], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<8x512xf32>
      %v = xetile.load_tile %x : !xetile.tile<8x512xf32> -> vector<8x512xf32>
      %s = xetile.tile_reduce <add>, %v [0] : vector<8x512xf32> -> vector<1x512xf32>
      %new = arith.addf %acc, %s : vector<1x512xf32>
      %twice = arith.addf %new, %acc : vector<1x512xf32>
      scf.yield %twice : vector<1x512xf32>
    }
    %y = xetile.init_tile %Y[0, %p], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<1x512xf32>
    xetile.store_tile %r, %y : vector<1x512xf32>, !xetile.tile<1x512xf32>
    scf.reduce
  }
  func.return
}

// Between the steps of attention: what was summed so far is scaled where it stands, and
// of the probabilities only what the product reads is stored, while they are summed up.
// CHECK-LABEL: @attention_step
// CHECK:       %[[ACC:.*]] = memref.alloca() : memref<8x16xf32>
// CHECK-NOT:   memref<8x16xf32>
// CHECK:       vector.store %{{.*}}, %[[ACC]][
// CHECK:       scf.for %k = %c0 to %n
// CHECK:       math.exp
// CHECK-NEXT:  arith.truncf
// CHECK-NEXT:  vector.store {{.*}} vector<16xbf16>
// CHECK-NEXT:  arith.addf
// CHECK:       vector.load %[[ACC]]
// CHECK-NEXT:  arith.mulf
// CHECK-NEXT:  vector.store %{{.*}}, %[[ACC]][
// CHECK:       "xsmm.block_gemm"({{.*}}, %[[ACC]], %[[B:[^,]*]], %[[ROW:[^,]*]], %[[COL:[^,]*]], %{{[^,]*}})
// CHECK-NOT:   vector.store %{{.*}}, %[[ACC]][
// CHECK:       func.return
func.func @attention_step(%X: !matrix, %V: memref<?x?xbf16, strided<[?, 1]>>, %Y: !matrix, %n: index, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %zero = arith.constant dense<0.0> : vector<8x16xf32>
    %none = arith.constant dense<0.0> : vector<8x1xf32>
    %half = arith.constant dense<0.5> : vector<8x16xf32>
    %r:2 = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero, %sum = %none) -> (vector<8x16xf32>, vector<8x1xf32>) {
      %x = xetile.init_tile %X[%p, %k], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<8x64xf32>
      %v = xetile.init_tile %V[%k, 0], [%n, %n], [%n, 1] : memref<?x?xbf16, strided<[?, 1]>> -> !xetile.tile<64x16xbf16>
      %s = xetile.load_tile %x : !xetile.tile<8x64xf32> -> vector<8x64xf32>
      %e = math.exp %s : vector<8x64xf32>
      %t = xetile.tile_reduce <add>, %e [1] : vector<8x64xf32> -> vector<8x1xf32>
      %new = arith.addf %sum, %t : vector<8x1xf32>
      %w = arith.truncf %e : vector<8x64xf32> to vector<8x64xbf16>
      %scaled = arith.mulf %acc, %half : vector<8x16xf32>
      %one = arith.constant 1 : index
      %d = xsmm.brgemm.tile %w, %v times %one plus %scaled : vector<8x16xf32> : vector<8x64xbf16>, !xetile.tile<64x16xbf16> -> vector<8x16xf32>
      scf.yield %d, %new : vector<8x16xf32>, vector<8x1xf32>
    }
    %y = xetile.init_tile %Y[%p, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<8x16xf32>
    %out = arith.addf %r#0, %r#0 : vector<8x16xf32>
    xetile.store_tile %out, %y : vector<8x16xf32>, !xetile.tile<8x16xf32>
    scf.reduce
  }
  func.return
}

// The last chunk of k goes from registers to the matrix, rounded on the way; the first
// one adds to nothing. No other loop stores. What the program packs next is known:
// the next chunk, and after the last one the tile beside it.
// CHECK-LABEL: @stored_product
// CHECK:       %[[C:.*]] = memref.reinterpret_cast %C
// CHECK:       scf.for %[[K:.*]] = %
// CHECK:       %[[NEXT:.*]] = arith.addi %[[K]], %{{.*}}
// CHECK:       "xsmm.pack"
// CHECK:       %[[A:[^,]*]], %[[M:[^,]*]], %[[K0:[^,]*]] = scf.if
// CHECK:         memref.cast
// CHECK:       } else {
// CHECK:         "xsmm.pack"
// CHECK:         memref.cast
// CHECK:       %[[MORE:.*]] = arith.cmpi sgt, %[[K]],
// CHECK:       %[[LAST:.*]] = arith.cmpi sge, %[[NEXT]],
// CHECK:       %[[END:.*]] = arith.cmpi sge, %[[NEXT]],
// CHECK:       %[[ROW:.*]] = arith.select %[[END]], %{{.*}}, %[[NEXT]]
// CHECK-NEXT:  %[[WIDTH:.*]] = arith.constant 64
// CHECK:       %[[COL:.*]] = arith.select %[[END]], %[[WIDTH]],
// CHECK:       "xsmm.block_gemm"(%[[A]], %[[M]], %[[K0]], {{.*}}, %[[MORE]], %[[C]], %p, %{{[^,]*}}, %{{[^,]*}}, %[[LAST]], %{{[^,]*}}, %[[ROW]], %[[COL]], %{{[^,]*}})
// CHECK-NOT:   vector.store
// CHECK-NOT:   maskedstore
// CHECK:       func.return
func.func @stored_product(%A: memref<?x?xbf16, strided<[?, 1]>>, %B: memref<?x?xbf16, strided<[?, 1]>>, %C: memref<?x?xbf16, strided<[?, 1]>>, %n: index, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %a = xetile.init_tile %A[%p, 0], [%n, %n], [%n, 1] : memref<?x?xbf16, strided<[?, 1]>> -> !xetile.tile<64x32xbf16>
    %b = xetile.init_tile %B[0, 0], [%n, %n], [%n, 1] : memref<?x?xbf16, strided<[?, 1]>> -> !xetile.tile<32x64xbf16>
    %c = xetile.init_tile %C[%p, 0], [%n, %n], [%n, 1] : memref<?x?xbf16, strided<[?, 1]>> -> !xetile.tile<64x64xbf16>
    %d = xsmm.brgemm.tile %a, %b times %n rows %n cols %n : !xetile.tile<64x32xbf16>, !xetile.tile<32x64xbf16> -> vector<64x64xf32>
    %e = arith.truncf %d : vector<64x64xf32> to vector<64x64xbf16>
    xetile.store_tile %e, %c : vector<64x64xbf16>, !xetile.tile<64x64xbf16>
    scf.reduce
  }
  func.return
}

// Up to 32 rows stream B where it is, if all of it is there; then C is a buffer of zeros,
// and a product of no steps stores it.
// CHECK-LABEL: @low_product
// CHECK:       arith.andi
// CHECK-NOT:   xsmm.block_gemm
// CHECK:       scf.if %{{.*}} {
// CHECK:         vector.store
// CHECK:         "xsmm.skinny_gemm"
// CHECK:         "xsmm.block_gemm"
// CHECK:       } else {
// CHECK:         "xsmm.pack"
// CHECK:         "xsmm.block_gemm"
// CHECK:       func.return
func.func @low_product(%A: memref<?x?xbf16, strided<[?, 1]>>, %B: memref<?x?xbf16, strided<[?, 1]>>, %C: memref<?x?xbf16, strided<[?, 1]>>, %n: index, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %a = xetile.init_tile %A[%p, 0], [%n, %n], [%n, 1] : memref<?x?xbf16, strided<[?, 1]>> -> !xetile.tile<8x32xbf16>
    %b = xetile.init_tile %B[0, 0], [%n, %n], [%n, 1] : memref<?x?xbf16, strided<[?, 1]>> -> !xetile.tile<32x256xbf16>
    %c = xetile.init_tile %C[%p, 0], [%n, %n], [%n, 1] : memref<?x?xbf16, strided<[?, 1]>> -> !xetile.tile<8x256xbf16>
    %d = xsmm.brgemm.tile %a, %b times %n rows %n cols %n : !xetile.tile<8x32xbf16>, !xetile.tile<32x256xbf16> -> vector<8x256xf32>
    %e = arith.truncf %d : vector<8x256xf32> to vector<8x256xbf16>
    xetile.store_tile %e, %c : vector<8x256xbf16>, !xetile.tile<8x256xbf16>
    scf.reduce
  }
  func.return
}

// The matrix may be A: what the product still reads must not be overwritten.
// CHECK-LABEL: @stored_to_an_operand
// CHECK:       "xsmm.block_gemm"
// CHECK:       vector.store
// CHECK:       func.return
func.func @stored_to_an_operand(%A: !matrix, %B: !matrix, %n: index, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %a = xetile.init_tile %A[%p, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<8x32xf32>
    %b = xetile.init_tile %B[0, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<32x64xf32>
    %c = xetile.init_tile %A[%p, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<8x64xf32>
    %d = xsmm.brgemm.tile %a, %b times %n rows %n cols %n : !xetile.tile<8x32xf32>, !xetile.tile<32x64xf32> -> vector<8x64xf32>
    xetile.store_tile %d, %c : vector<8x64xf32>, !xetile.tile<8x64xf32>
    scf.reduce
  }
  func.return
}

// Eight vectors are sorted in registers, then merged in loops whose number of
// instructions does not grow with the row.
// CHECK-LABEL: @sorted_rows
// CHECK-COUNT-8: vector.load {{.*}} vector<16xi32>
// CHECK:       vector.shuffle
// CHECK:       arith.minsi
// CHECK:       arith.maxsi
// CHECK:       scf.for
// CHECK:       arith.shli
// CHECK:       scf.for
// CHECK-COUNT-8: vector.load {{.*}} vector<16xi32>
// CHECK:       vector.store
// CHECK:       func.return
// AVX2-LABEL:  @sorted_rows
// AVX2-COUNT-8: vector.load {{.*}} vector<8xi32>
func.func @sorted_rows(%X: memref<1x1024xi32>, %Y: memref<1x1024xi32>, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %x = xetile.init_tile %X[0, 0] : memref<1x1024xi32> -> !xetile.tile<1x1024xi32>
    %y = xetile.init_tile %Y[0, 0] : memref<1x1024xi32> -> !xetile.tile<1x1024xi32>
    %v = xetile.load_tile %x : !xetile.tile<1x1024xi32> -> vector<1x1024xi32>
    %s = xetile.tile_sort %v [1] : vector<1x1024xi32>
    xetile.store_tile %s, %y : vector<1x1024xi32>, !xetile.tile<1x1024xi32>
    scf.reduce
  }
  func.return
}

// Columns are compared row by row: no lane meets another one.
// CHECK-LABEL: @sorted_columns
// CHECK-NOT:   vector.shuffle
// CHECK:       arith.minsi
// CHECK-NOT:   vector.shuffle
// CHECK:       func.return
func.func @sorted_columns(%X: memref<9x64xi64>, %Y: memref<9x64xi64>, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %x = xetile.init_tile %X[0, 0] : memref<9x64xi64> -> !xetile.tile<9x64xi64>
    %y = xetile.init_tile %Y[0, 0] : memref<9x64xi64> -> !xetile.tile<9x64xi64>
    %v = xetile.load_tile %x : !xetile.tile<9x64xi64> -> vector<9x64xi64>
    %s = xetile.tile_sort %v [0] : vector<9x64xi64>
    xetile.store_tile %s, %y : vector<9x64xi64>, !xetile.tile<9x64xi64>
    scf.reduce
  }
  func.return
}

// A row that a loop carries stays in registers; what a trip loads has masks only where
// not all of it is inside. Behind the loop the row goes into a buffer.
// CHECK-LABEL: @carried
// CHECK:       scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>)
// CHECK:       scf.if {{.*}} -> (vector<16xf32>, vector<16xf32>)
// CHECK-NOT:   mask
// CHECK-COUNT-2: arith.addf
// CHECK:       scf.yield
// CHECK-COUNT-2: vector.maskedload
// CHECK:       scf.yield
// CHECK:       scf.yield
// CHECK-COUNT-2: vector.store
func.func @carried(%X: !matrix, %Y: !matrix, %n: index, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %zero = arith.constant dense<0.0> : vector<1x32xf32>
    %sum = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero) -> (vector<1x32xf32>) {
      %x = xetile.init_tile %X[%p, %i], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<1x32xf32>
      %v = xetile.load_tile %x : !xetile.tile<1x32xf32> -> vector<1x32xf32>
      %next = arith.addf %acc, %v : vector<1x32xf32>
      scf.yield %next : vector<1x32xf32>
    }
    %y = xetile.init_tile %Y[%p, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<1x32xf32>
    xetile.store_tile %sum, %y : vector<1x32xf32>, !xetile.tile<1x32xf32>
    scf.reduce
  }
  func.return
}

// A wide row begins with a vector under a mask, up to the first aligned address.
// CHECK-LABEL: @begins_within_a_line
// CHECK:       %[[START:.*]] = memref.extract_aligned_pointer_as_index
// CHECK:       %[[LEAD:.*]] = arith.select
// CHECK:       scf.for {{.*}} to
// CHECK:         vector.maskedstore
// CHECK:       scf.if
// CHECK-NEXT:    scf.for {{.*}} = %[[LEAD]] to
// CHECK:           vector.store {{.*}} {nontemporal = true
// CHECK:         scf.for {{.*}} = %[[LEAD]] to
// CHECK:           vector.store
// CHECK:       vector.maskedstore
func.func @begins_within_a_line(%X: !matrix, %Y: !matrix, %n: index, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %x = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<1x512xf32>
    %y = xetile.init_tile %Y[%p, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<1x512xf32>
    %v = xetile.load_tile %x : !xetile.tile<1x512xf32> -> vector<1x512xf32>
    xetile.store_tile %v, %y : vector<1x512xf32>, !xetile.tile<1x512xf32>
    scf.reduce
  }
  func.return
}

// A copy in scratch whose tiles are all known to be inside of it, for the loop ends with
// the trip at 4: it is written and read without masks. What is copied may begin before
// its matrix: masks of all vectors of a row are made of the same two numbers, before the
// loop over rows, in which whole rows may be outside.
// CHECK-LABEL: @windows
// CHECK:       %[[COPY:.*]] = memref.alloca() : memref<8x48xf32
// CHECK:       %[[END:.*]] = arith.subi %{{.*}}, %o : index
// CHECK-NEXT:  %[[LEFT:.*]] = arith.subi %[[END]], %{{.*}} : index
// CHECK-NEXT:  vector.create_mask %[[LEFT]]
// CHECK:       scf.for
// CHECK:         vector.broadcast %{{.*}} : i1 to
// CHECK-NOT:   vector.create_mask
// CHECK:       vector.maskedload
// CHECK-NEXT:  vector.store %{{.*}}, %[[COPY]]
// CHECK:       vector.maskedload
// CHECK-NEXT:  vector.store %{{.*}}, %[[COPY]]
// CHECK:       vector.maskedload
// CHECK-NEXT:  vector.store %{{.*}}, %[[COPY]]
// CHECK-NOT:   vector.maskedload
// CHECK:       vector.load %[[COPY]]
// CHECK-NOT:   vector.maskedload
// CHECK:       func.return
func.func @windows(%X: !matrix, %Y: !matrix, %o: index, %n: index, %gx: index, %gy: index, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %copy = memref.alloc() : memref<8x48xf32, 3 : i64>
    %x = xetile.init_tile %X[0, %o], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<8x48xf32>
    %v = xetile.load_tile %x : !xetile.tile<8x48xf32> -> vector<8x48xf32>
    %all = xetile.init_tile %copy[0, 0] : memref<8x48xf32, 3 : i64> -> !xetile.tile<8x48xf32, #xetile.tile_attr<memory_space = 3>>
    xetile.store_tile %v, %all : vector<8x48xf32>, !xetile.tile<8x48xf32, #xetile.tile_attr<memory_space = 3>>
    scf.for %i = %c0 to %c7 step %c4 {
      %part = xetile.init_tile %copy[%i, 3] : memref<8x48xf32, 3 : i64> -> !xetile.tile<4x32xf32, #xetile.tile_attr<memory_space = 3>>
      %w = xetile.load_tile %part : !xetile.tile<4x32xf32, #xetile.tile_attr<memory_space = 3>> -> vector<4x32xf32>
      %y = xetile.init_tile %Y[%i, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<4x32xf32>
      xetile.store_tile %w, %y : vector<4x32xf32>, !xetile.tile<4x32xf32>
    }
    scf.reduce
  }
  func.return
}

// What is updated has been loaded: nothing is stored past the caches.
// CHECK-LABEL: @updated
// CHECK-NOT:   nontemporal
// CHECK:       vector.store
// CHECK-NOT:   nontemporal
// CHECK:       func.return
func.func @updated(%X: !matrix, %n: index, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %x = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<1x512xf32>
    %v = xetile.load_tile %x : !xetile.tile<1x512xf32> -> vector<1x512xf32>
    %w = arith.addf %v, %v : vector<1x512xf32>
    %y = xetile.init_tile %X[%p, 0], [%n, %n], [%n, 1] : !matrix -> !xetile.tile<1x512xf32>
    xetile.store_tile %w, %y : vector<1x512xf32>, !xetile.tile<1x512xf32>
    scf.reduce
  }
  func.return
}

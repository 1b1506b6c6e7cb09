// RUN: xetl-opt %s -p 'convert-xetile-to-loops{target=avx512}' --verify-stage=loops | filecheck %s

// Both loads are 0 behind the longer of the two, and a sum of zeros need not go on.
// CHECK-LABEL: @sum_of_products
// CHECK:       %[[N:.*]] = arith.select %{{.*}}, %n, %{{.*}} : index
// CHECK:       %[[M:.*]] = arith.select %{{.*}}, %m, %{{.*}} : index
// CHECK:       %[[LONGER:.*]] = arith.maxsi %[[N]], %[[M]] : index
// CHECK:       %[[FAR:.*]] = arith.maxsi %{{.*}}, %[[LONGER]] : index
// CHECK:       %[[END:.*]] = arith.minsi %{{.*}}, %[[FAR]] : index
// CHECK:       scf.for
// CHECK:       scf.for %{{.*}} = %{{.*}} to %[[END]] step
func.func @sum_of_products(%A: memref<?x?xf32, strided<[?, 1]>>, %B: memref<?x?xf32, strided<[?, 1]>>, %m: index, %n: index, %ld: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%x) = (%c0) to (%c1) step (%c1) {
    %a = xetile.init_tile %A[0, 0], [%c1, %m], [%ld, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<1x512xf32>
    %b = xetile.init_tile %B[0, 0], [%c1, %n], [%ld, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<1x512xf32>
    %v = xetile.load_tile %a : !xetile.tile<1x512xf32> -> vector<1x512xf32>
    %w = xetile.load_tile %b : !xetile.tile<1x512xf32> -> vector<1x512xf32>
    %p = arith.mulf %v, %w : vector<1x512xf32>
    %s = xetile.tile_reduce <add>, %p [1] : vector<1x512xf32> -> vector<1x1xf32>
    %c = xetile.init_tile %A[0, 0], [%c1, %m], [%ld, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<1x1xf32>
    xetile.store_tile %s, %c : vector<1x1xf32>, !xetile.tile<1x1xf32>
    scf.reduce
  }
  func.return
}

// Long rows begin with a vector under a mask, so that all others are aligned; the sums
// go on with what it leaves.
// CHECK-LABEL: @sum_of_a_row
// CHECK:       memref.extract_aligned_pointer_as_index
// CHECK:       %[[LEAD:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : index
// CHECK:       %[[STOP:.*]] = arith.minsi %{{.*}}, %[[LEAD]] : index
// CHECK:       %[[FIRST:.*]] = scf.for %{{.*}} = %{{.*}} to %[[STOP]] step
// CHECK:         arith.subi %[[STOP]], %{{.*}} : index
// CHECK:         vector.create_mask
// CHECK:       scf.for %{{.*}} = %[[LEAD]] to %{{.*}} step %{{.*}} iter_args(%{{.*}} = %[[FIRST]],
// CHECK-NOT:     vector.create_mask
// CHECK:       scf.for
func.func @sum_of_a_row(%A: memref<?x?xf32, strided<[?, 1]>>, %B: memref<?x?xf32, strided<[?, 1]>>, %m: index, %n: index, %ld: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%x) = (%c0) to (%c1) step (%c1) {
    %a = xetile.init_tile %A[0, 0], [%c1, %n], [%ld, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<1x512xf32>
    %v = xetile.load_tile %a : !xetile.tile<1x512xf32> -> vector<1x512xf32>
    %s = xetile.tile_reduce <add>, %v [1] : vector<1x512xf32> -> vector<1x1xf32>
    %c = xetile.init_tile %B[0, 0], [%c1, %m], [%ld, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<1x1xf32>
    xetile.store_tile %s, %c : vector<1x1xf32>, !xetile.tile<1x1xf32>
    scf.reduce
  }
  func.return
}

// Two sums of a row are one loop, which carries both; what is chosen to the end of the
// row is what is loaded there, and nothing is to be done behind it.
// CHECK-LABEL: @both_moments
// CHECK:       %[[N:.*]] = arith.select %{{.*}}, %n, %{{.*}} : index
// CHECK:       %[[FAR:.*]] = arith.maxsi %{{.*}}, %[[N]] : index
// CHECK:       %[[END:.*]] = arith.minsi %{{.*}}, %[[FAR]] : index
// CHECK:       scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK-NOT:     arith.select
// CHECK:       scf.for %{{.*}} = %{{.*}} to %[[END]] step {{.*}} -> (vector<16xf32>, vector<16xf32>)
// CHECK:         arith.select
// CHECK-NOT:   scf.for
// CHECK:       func.return
func.func @both_moments(%A: memref<?x?xf32, strided<[?, 1]>>, %B: memref<?x?xf32, strided<[?, 1]>>, %m: index, %n: index, %ld: index, %mean: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bound = arith.index_cast %n : index to i32
  scf.parallel (%x) = (%c0) to (%c1) step (%c1) {
    %a = xetile.init_tile %A[0, 0], [%c1, %n], [%ld, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<1x512xf32>
    %v = xetile.load_tile %a : !xetile.tile<1x512xf32> -> vector<1x512xf32>
    %u = vector.broadcast %mean : f32 to vector<1x512xf32>
    %d = arith.subf %v, %u : vector<1x512xf32>
    %k = vector.step : vector<512xindex>
    %i = arith.index_cast %k : vector<512xindex> to vector<512xi32>
    %j = vector.shape_cast %i : vector<512xi32> to vector<1x512xi32>
    %e = vector.broadcast %bound : i32 to vector<1x512xi32>
    %o = arith.cmpi slt, %j, %e : vector<1x512xi32>
    %z = arith.constant dense<0.0> : vector<1x512xf32>
    %w = arith.select %o, %d, %z : vector<1x512xi1>, vector<1x512xf32>
    %q = arith.mulf %w, %w : vector<1x512xf32>
    %s = xetile.tile_reduce <add>, %q [1] : vector<1x512xf32> -> vector<1x1xf32>
    %t = xetile.tile_reduce <add>, %w [1] : vector<1x512xf32> -> vector<1x1xf32>
    %r = arith.addf %s, %t : vector<1x1xf32>
    %c = xetile.init_tile %B[0, 0], [%c1, %m], [%ld, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<1x1xf32>
    xetile.store_tile %r, %c : vector<1x1xf32>, !xetile.tile<1x1xf32>
    scf.reduce
  }
  func.return
}

// A sum of what another one gives is a loop of its own, and so is one behind a store.
// CHECK-LABEL: @one_after_the_other
// CHECK:       scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK:       scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK:       memref.store
// CHECK:       scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
func.func @one_after_the_other(%A: memref<?x?xf32, strided<[?, 1]>>, %B: memref<?x?xf32, strided<[?, 1]>>, %m: index, %n: index, %ld: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%x) = (%c0) to (%c1) step (%c1) {
    %a = xetile.init_tile %A[0, 0], [%c1, %n], [%ld, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<1x512xf32>
    %v = xetile.load_tile %a : !xetile.tile<1x512xf32> -> vector<1x512xf32>
    %s = xetile.tile_reduce <add>, %v [1] : vector<1x512xf32> -> vector<1x1xf32>
    %u = xetile.tile_broadcast %s [1] : vector<1x1xf32> -> vector<1x512xf32>
    %d = arith.subf %v, %u : vector<1x512xf32>
    %t = xetile.tile_reduce <add>, %d [1] : vector<1x512xf32> -> vector<1x1xf32>
    %c = xetile.init_tile %B[0, 0], [%c1, %m], [%ld, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<1x1xf32>
    xetile.store_tile %t, %c : vector<1x1xf32>, !xetile.tile<1x1xf32>
    %b = xetile.init_tile %B[0, 0], [%c1, %n], [%ld, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<1x512xf32>
    %w = xetile.load_tile %b : !xetile.tile<1x512xf32> -> vector<1x512xf32>
    %q = xetile.tile_reduce <add>, %w [1] : vector<1x512xf32> -> vector<1x1xf32>
    xetile.store_tile %q, %c : vector<1x1xf32>, !xetile.tile<1x1xf32>
    scf.reduce
  }
  func.return
}

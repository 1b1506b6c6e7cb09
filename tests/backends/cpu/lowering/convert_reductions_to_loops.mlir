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

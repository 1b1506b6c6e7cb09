// RUN: xetl-opt %s | filecheck %s
// XeTile RFC (seed 001), "XeTile Dialect": what works on values, at the document's shapes.
// Corrected: `float` is f32; the first tile_mma of the text names %vector_b, %vector_a in
// the order b, a, its types are a, b, c: the order is a, b, c, as in the table.

// CHECK: func.func @mma
func.func @mma(%a: memref<64x32xbf16>, %b: memref<32x128xbf16>, %c: memref<64x128xf32>) {
  %tile_a = xetile.init_tile %a[0, 0] : memref<64x32xbf16> -> !xetile.tile<64x32xbf16>
  %tile_b = xetile.init_tile %b[0, 0] : memref<32x128xbf16> -> !xetile.tile<32x128xbf16>
  %tile_c = xetile.init_tile %c[0, 0] : memref<64x128xf32> -> !xetile.tile<64x128xf32>
  %vector_a = xetile.load_tile %tile_a : !xetile.tile<64x32xbf16> into vector<64x32xbf16>
  %vector_b = xetile.load_tile %tile_b : !xetile.tile<32x128xbf16> into vector<32x128xbf16>
  %once = xetile.tile_mma %vector_a, %vector_b : vector<64x32xbf16>, vector<32x128xbf16> into vector<64x128xf32>
  %twice = xetile.tile_mma %vector_a, %vector_b, %once : vector<64x32xbf16>, vector<32x128xbf16>, vector<64x128xf32> into vector<64x128xf32>
  xetile.store_tile %twice, %tile_c : vector<64x128xf32>, !xetile.tile<64x128xf32>
  return
}

// The permutation stands before the value in the text, behind it in the table.
// CHECK: func.func @transpose
// CHECK-COUNT-2: xetile.tile_transpose %{{.*}}, [1, 0] : vector<64x32xf32> -> vector<32x64xf32>
func.func @transpose(%from: memref<64x32xf32>, %out: memref<32x64xf32>, %out2: memref<32x64xf32>) {
  %in = xetile.init_tile %from[0, 0] : memref<64x32xf32> -> !xetile.tile<64x32xf32>
  %vector_b = xetile.load_tile %in : !xetile.tile<64x32xf32> -> vector<64x32xf32>
  %vector_a = xetile.tile_transpose [1, 0] %vector_b : vector<64x32xf32> into vector<32x64xf32>
  %table = xetile.tile_transpose %vector_b [1, 0] : vector<64x32xf32> into vector<32x64xf32>
  %to = xetile.init_tile %out[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32>
  %to2 = xetile.init_tile %out2[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32>
  xetile.store_tile %vector_a, %to : vector<32x64xf32>, !xetile.tile<32x64xf32>
  xetile.store_tile %table, %to2 : vector<32x64xf32>, !xetile.tile<32x64xf32>
  return
}

// CHECK: func.func @reduce
func.func @reduce(%from: memref<64x32xf32>, %out: memref<64x1xf32>) {
  %in = xetile.init_tile %from[0, 0] : memref<64x32xf32> -> !xetile.tile<64x32xf32>
  %vector_b = xetile.load_tile %in : !xetile.tile<64x32xf32> -> vector<64x32xf32>
  %vector_a = xetile.tile_reduce <add> %vector_b [1] : vector<64x32xf32> into vector<64x1xf32>
  %to = xetile.init_tile %out[0, 0] : memref<64x1xf32> -> !xetile.tile<64x1xf32>
  xetile.store_tile %vector_a, %to : vector<64x1xf32>, !xetile.tile<64x1xf32>
  return
}

// CHECK: func.func @broadcast
func.func @broadcast(%from: memref<1x32xf32>, %out: memref<64x32xf32>) {
  %in = xetile.init_tile %from[0, 0] : memref<1x32xf32> -> !xetile.tile<1x32xf32>
  %vector_b = xetile.load_tile %in : !xetile.tile<1x32xf32> -> vector<1x32xf32>
  %vector_a = xetile.tile_broadcast %vector_b [0] : vector<1x32xf32> into vector<64x32xf32>
  %to = xetile.init_tile %out[0, 0] : memref<64x32xf32> -> !xetile.tile<64x32xf32>
  xetile.store_tile %vector_a, %to : vector<64x32xf32>, !xetile.tile<64x32xf32>
  return
}

// "The reduce operation are ...": every kind that the text lists, of floats along rows ...
// CHECK: func.func @kinds_of_floats
func.func @kinds_of_floats(%from: memref<8x16xf32>, %out: memref<6x16xf32>) {
  %in = xetile.init_tile %from[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
  %v = xetile.load_tile %in : !xetile.tile<8x16xf32> -> vector<8x16xf32>
  %0 = xetile.tile_reduce <add> %v [0] : vector<8x16xf32> into vector<1x16xf32>
  %1 = xetile.tile_reduce <mul> %v [0] : vector<8x16xf32> into vector<1x16xf32>
  %2 = xetile.tile_reduce <minnumf> %v [0] : vector<8x16xf32> into vector<1x16xf32>
  %3 = xetile.tile_reduce <maxnumf> %v [0] : vector<8x16xf32> into vector<1x16xf32>
  %4 = xetile.tile_reduce <minimumf> %v [0] : vector<8x16xf32> into vector<1x16xf32>
  %5 = xetile.tile_reduce <maximumf> %v [0] : vector<8x16xf32> into vector<1x16xf32>
  %t0 = xetile.init_tile %out[0, 0] : memref<6x16xf32> -> !xetile.tile<1x16xf32>
  %t1 = xetile.update_tile_offset %t0, [1, 0] : !xetile.tile<1x16xf32>
  %t2 = xetile.update_tile_offset %t1, [1, 0] : !xetile.tile<1x16xf32>
  %t3 = xetile.update_tile_offset %t2, [1, 0] : !xetile.tile<1x16xf32>
  %t4 = xetile.update_tile_offset %t3, [1, 0] : !xetile.tile<1x16xf32>
  %t5 = xetile.update_tile_offset %t4, [1, 0] : !xetile.tile<1x16xf32>
  xetile.store_tile %0, %t0 : vector<1x16xf32>, !xetile.tile<1x16xf32>
  xetile.store_tile %1, %t1 : vector<1x16xf32>, !xetile.tile<1x16xf32>
  xetile.store_tile %2, %t2 : vector<1x16xf32>, !xetile.tile<1x16xf32>
  xetile.store_tile %3, %t3 : vector<1x16xf32>, !xetile.tile<1x16xf32>
  xetile.store_tile %4, %t4 : vector<1x16xf32>, !xetile.tile<1x16xf32>
  xetile.store_tile %5, %t5 : vector<1x16xf32>, !xetile.tile<1x16xf32>
  return
}

// ... and of integers.
// CHECK: func.func @kinds_of_integers
func.func @kinds_of_integers(%from: memref<8x16xi32>, %out: memref<9x16xi32>) {
  %in = xetile.init_tile %from[0, 0] : memref<8x16xi32> -> !xetile.tile<8x16xi32>
  %v = xetile.load_tile %in : !xetile.tile<8x16xi32> -> vector<8x16xi32>
  %0 = xetile.tile_reduce <add> %v [0] : vector<8x16xi32> into vector<1x16xi32>
  %1 = xetile.tile_reduce <mul> %v [0] : vector<8x16xi32> into vector<1x16xi32>
  %2 = xetile.tile_reduce <minsi> %v [0] : vector<8x16xi32> into vector<1x16xi32>
  %3 = xetile.tile_reduce <minui> %v [0] : vector<8x16xi32> into vector<1x16xi32>
  %4 = xetile.tile_reduce <maxsi> %v [0] : vector<8x16xi32> into vector<1x16xi32>
  %5 = xetile.tile_reduce <maxui> %v [0] : vector<8x16xi32> into vector<1x16xi32>
  %6 = xetile.tile_reduce <and> %v [0] : vector<8x16xi32> into vector<1x16xi32>
  %7 = xetile.tile_reduce <or> %v [0] : vector<8x16xi32> into vector<1x16xi32>
  %8 = xetile.tile_reduce <xor> %v [0] : vector<8x16xi32> into vector<1x16xi32>
  %t0 = xetile.init_tile %out[0, 0] : memref<9x16xi32> -> !xetile.tile<1x16xi32>
  %t1 = xetile.update_tile_offset %t0, [1, 0] : !xetile.tile<1x16xi32>
  %t2 = xetile.update_tile_offset %t1, [1, 0] : !xetile.tile<1x16xi32>
  %t3 = xetile.update_tile_offset %t2, [1, 0] : !xetile.tile<1x16xi32>
  %t4 = xetile.update_tile_offset %t3, [1, 0] : !xetile.tile<1x16xi32>
  %t5 = xetile.update_tile_offset %t4, [1, 0] : !xetile.tile<1x16xi32>
  %t6 = xetile.update_tile_offset %t5, [1, 0] : !xetile.tile<1x16xi32>
  %t7 = xetile.update_tile_offset %t6, [1, 0] : !xetile.tile<1x16xi32>
  %t8 = xetile.update_tile_offset %t7, [1, 0] : !xetile.tile<1x16xi32>
  xetile.store_tile %0, %t0 : vector<1x16xi32>, !xetile.tile<1x16xi32>
  xetile.store_tile %1, %t1 : vector<1x16xi32>, !xetile.tile<1x16xi32>
  xetile.store_tile %2, %t2 : vector<1x16xi32>, !xetile.tile<1x16xi32>
  xetile.store_tile %3, %t3 : vector<1x16xi32>, !xetile.tile<1x16xi32>
  xetile.store_tile %4, %t4 : vector<1x16xi32>, !xetile.tile<1x16xi32>
  xetile.store_tile %5, %t5 : vector<1x16xi32>, !xetile.tile<1x16xi32>
  xetile.store_tile %6, %t6 : vector<1x16xi32>, !xetile.tile<1x16xi32>
  xetile.store_tile %7, %t7 : vector<1x16xi32>, !xetile.tile<1x16xi32>
  xetile.store_tile %8, %t8 : vector<1x16xi32>, !xetile.tile<1x16xi32>
  return
}

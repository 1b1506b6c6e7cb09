// RUN: xetl-opt %s -p legalize-vectors | filecheck %s

// Matrices are combined, rows are reduced: nothing else moves between columns.
// CHECK-LABEL: @reductions
// CHECK:       %[[ZERO:.*]] = arith.constant dense<-0.{{0+}}e+00> : vector<8x16xf32>
// CHECK-NEXT:  vector.multi_reduction <add>, %v, %[[ZERO]] [0]
// CHECK-NEXT:  arith.addf {{.*}}, %a
// CHECK:       vector.transpose %v, [1, 0, 2]
// CHECK:       vector.multi_reduction <add>, {{.*}} [0] : vector<8x4x16xf32> to vector<4x16xf32>
// CHECK:       xetile.tile_reduce <maximumf>, {{.*}} [1] : vector<4x128xf32>
func.func @reductions(%v: vector<4x8x16xf32>, %a: vector<8x16xf32>, %b: vector<4x16xf32>, %c: vector<4xf32>) -> (vector<8x16xf32>, vector<4x16xf32>, vector<4xf32>) {
  %0 = vector.multi_reduction <add>, %v, %a [0] : vector<4x8x16xf32> to vector<8x16xf32>
  %1 = vector.multi_reduction <add>, %v, %b [1] : vector<4x8x16xf32> to vector<4x16xf32>
  %2 = vector.multi_reduction <maximumf>, %v, %c [1, 2] : vector<4x8x16xf32> to vector<4xf32>
  return %0, %1, %2 : vector<8x16xf32>, vector<4x16xf32>, vector<4xf32>
}

// Of f16 sums run in f32 and are rounded once.
// CHECK-LABEL: @two_steps
// CHECK:       arith.extf
// CHECK:       vector.multi_reduction <add>, {{.*}} : vector<8x32x128xf32> to vector<32x128xf32>
// CHECK-NEXT:  xetile.tile_reduce <add>, {{.*}} [1]
// CHECK-NEXT:  arith.truncf
// CHECK:       vector.multi_reduction <maxnumf>, {{.*}} [0]
func.func @two_steps(%v: vector<8x32x128xf16>, %a: vector<32xf16>, %b: vector<32x128xf16>) -> (vector<32xf16>, vector<32x128xf16>) {
  %0 = vector.multi_reduction <add>, %v, %a [0, 2] : vector<8x32x128xf16> to vector<32xf16>
  %1 = vector.multi_reduction <maxnumf>, %v, %b [0] : vector<8x32x128xf16> to vector<32x128xf16>
  return %0, %1 : vector<32xf16>, vector<32x128xf16>
}

// What only one side has is summed up; all of a batch is in one dimension, in front.
// CHECK-LABEL: @contractions
// CHECK:       xetile.tile_reduce <add>, %a [1]
// CHECK:       xetile.tile_mma {{.*}} : vector<8x1xf32>, vector<1x4xf32>, vector<8x4xf32>
// CHECK:       vector.contract {{.*}} : vector<6x8x4xf32>, vector<6x4x16xf32> into vector<6x8x16xf32>
// CHECK-NEXT:  vector.shape_cast {{.*}} to vector<2x3x8x16xf32>
func.func @contractions(%a: vector<8x3xf32>, %b: vector<4xf32>, %c: vector<8x4xf32>, %x: vector<2x3x8x4xf32>, %y: vector<2x3x4x16xf32>, %z: vector<2x3x8x16xf32>) -> (vector<8x4xf32>, vector<2x3x8x16xf32>) {
  %0 = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %a, %b, %c : vector<8x3xf32>, vector<4xf32> into vector<8x4xf32>
  %1 = vector.contract {indexing_maps = [affine_map<(p, q, m, n, k) -> (p, q, m, k)>, affine_map<(p, q, m, n, k) -> (p, q, k, n)>, affine_map<(p, q, m, n, k) -> (p, q, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>} %x, %y, %z : vector<2x3x8x4xf32>, vector<2x3x4x16xf32> into vector<2x3x8x16xf32>
  return %0, %1 : vector<8x4xf32>, vector<2x3x8x16xf32>
}

// Two groups of dimensions that change places are the rows and columns of a matrix.
// CHECK-LABEL: @transposes
// CHECK:       xetile.tile_transpose {{.*}} : vector<6x4xf32> -> vector<4x6xf32>
// CHECK:       vector.shape_cast %w : vector<1x4x2xf32> to vector<4x1x2xf32>
// CHECK:       vector.transpose %v, [2, 1, 0]
func.func @transposes(%v: vector<2x3x4xf32>, %w: vector<1x4x2xf32>) -> (vector<4x2x3xf32>, vector<4x1x2xf32>, vector<4x3x2xf32>) {
  %0 = vector.transpose %v, [2, 0, 1] : vector<2x3x4xf32> to vector<4x2x3xf32>
  %1 = vector.transpose %w, [1, 0, 2] : vector<1x4x2xf32> to vector<4x1x2xf32>
  %2 = vector.transpose %v, [2, 1, 0] : vector<2x3x4xf32> to vector<4x3x2xf32>
  return %0, %1, %2 : vector<4x2x3xf32>, vector<4x1x2xf32>, vector<4x3x2xf32>
}

// A row in memory is a tile; what is masked has an offset for each element.
// CHECK-LABEL: @memory
// CHECK:       arith.cmpi slt
// CHECK:       memref.reinterpret_cast
// CHECK:       xetile.load_tile {{.*}} -> vector<1x16xf32>
// CHECK:       xetile.load_gather {{.*}}
// CHECK-NEXT:  arith.select
// CHECK:       xetile.store_scatter
// CHECK-NOT:   vector.maskedstore
func.func @memory(%m: memref<8x32xf32>, %n: index, %f: vector<16xf32>) {
  %k = vector.create_mask %n : vector<16xi1>
  %0 = vector.load %m[%n, %n] : memref<8x32xf32>, vector<16xf32>
  %1 = vector.maskedload %m[%n, %n], %k, %f : memref<8x32xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  %2 = arith.addf %0, %1 : vector<16xf32>
  vector.maskedstore %m[%n, %n], %k, %2 : memref<8x32xf32>, vector<16xi1>, vector<16xf32>
  return
}

// A transfer of a matrix is a tile; one of a row that may leave the memory is masked.
// CHECK-LABEL: @transfers
// CHECK:       xetile.init_tile %m[%i, %i]
// CHECK-NEXT:  xetile.load_tile
// CHECK:       arith.cmpi ult
// CHECK:       xetile.load_gather
// CHECK-NOT:   vector.transfer_read
func.func @transfers(%m: memref<8x32xf32>, %i: index, %p: f32) -> (vector<8x16xf32>, vector<16xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = vector.transfer_read %m[%i, %i], %zero : memref<8x32xf32>, vector<8x16xf32>
  %1 = vector.transfer_read %m[%i, %i], %p : memref<8x32xf32>, vector<16xf32>
  return %0, %1 : vector<8x16xf32>, vector<16xf32>
}

// CHECK-LABEL: @views
// CHECK-NOT:   memref.collapse_shape
// CHECK:       memref.reinterpret_cast {{.*}} sizes: [32], strides: [1]
func.func @views(%m: memref<4x8xf32>) -> memref<32xf32> {
  %0 = memref.collapse_shape %m [[0, 1]] : memref<4x8xf32> into memref<32xf32>
  return %0 : memref<32xf32>
}

// A part of a matrix, read from its corner on: a tile of the matrix.
// CHECK-LABEL: @subview
// CHECK:       %[[T:.*]] = xetile.init_tile %m[%i, %k] : memref<128x64xbf16> -> !xetile.tile<64x32xbf16>
// CHECK-NEXT:  xetile.load_tile %[[T]] :
func.func @subview(%m: memref<128x64xbf16>, %i: index, %k: index) -> vector<64x32xbf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : bf16
  %s = memref.subview %m[%i, %k] [64, 32] [1, 1] : memref<128x64xbf16> to memref<64x32xbf16, strided<[64, 1], offset: ?>>
  %v = vector.transfer_read %s[%c0, %c0], %zero : memref<64x32xbf16, strided<[64, 1], offset: ?>>, vector<64x32xbf16>
  return %v : vector<64x32xbf16>
}

// The transfer may leave the part: beyond its edge is padding, not the matrix.
// CHECK-LABEL: @edge_of_a_subview
// CHECK:       %[[S:.*]] = memref.subview
// CHECK:       xetile.init_tile %[[S]][8, 0] {{.*}} -> !xetile.tile<64x32xbf16>
// CHECK-NEXT:  xetile.load_tile {{.*}} {padding = 1.{{0+}}e+00 : bf16}
func.func @edge_of_a_subview(%m: memref<128x64xbf16>, %i: index) -> vector<64x32xbf16> {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %one = arith.constant 1.0 : bf16
  %s = memref.subview %m[%i, 0] [64, 32] [1, 1] : memref<128x64xbf16> to memref<64x32xbf16, strided<[64, 1], offset: ?>>
  %v = vector.transfer_read %s[%c8, %c0], %one : memref<64x32xbf16, strided<[64, 1], offset: ?>>, vector<64x32xbf16>
  return %v : vector<64x32xbf16>
}

// A matrix seen by columns has the order [0, 1] (RFC, appendix 1).
// CHECK-LABEL: @column_major
// CHECK:       init_tile %m[%i, %j] {{.*}} -> !xetile.tile<32x64xbf16, #xetile.tile_attr<order = [0, 1]>>
// CHECK:       init_tile %n[%i, %j] {{.*}} -> !xetile.tile<32x64xbf16, #xetile.tile_attr<order = [0, 1]>>
func.func @column_major(%m: memref<64x128xbf16, strided<[1, 64]>>, %n: memref<64x128xbf16, affine_map<(d0, d1) -> (d1, d0)>>, %i: index, %j: index) -> (vector<32x64xbf16>, vector<32x64xbf16>) {
  %zero = arith.constant 0.0 : bf16
  %v = vector.transfer_read %m[%i, %j], %zero : memref<64x128xbf16, strided<[1, 64]>>, vector<32x64xbf16>
  %w = vector.transfer_read %n[%i, %j], %zero : memref<64x128xbf16, affine_map<(d0, d1) -> (d1, d0)>>, vector<32x64xbf16>
  return %v, %w : vector<32x64xbf16>, vector<32x64xbf16>
}

// A map that swaps the dimensions: the tile is turned after the load, before the store.
// CHECK-LABEL: @turned
// CHECK:       load_tile {{.*}} -> vector<16x8xf32>
// CHECK-NEXT:  tile_transpose {{.*}} : vector<16x8xf32> -> vector<8x16xf32>
// CHECK-NEXT:  tile_transpose {{.*}} : vector<8x16xf32> -> vector<16x8xf32>
// CHECK:       store_tile
func.func @turned(%m: memref<32x32xf32>, %i: index) {
  %zero = arith.constant 0.0 : f32
  %v = vector.transfer_read %m[%i, %i], %zero {permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : memref<32x32xf32>, vector<8x16xf32>
  vector.transfer_write %v, %m[%i, %i] {permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : vector<8x16xf32>, memref<32x32xf32>
  return
}

// Sizes and strides that the type does not say are asked for; leading dimensions stay.
// CHECK-LABEL: @dynamic
// CHECK:       memref.extract_strided_metadata %m
// CHECK:       init_tile %m[%b, %i, %i], [{{.*}}, {{.*}}, 64], [{{.*}}, {{.*}}, 1]
// CHECK-SAME:  memory_space = 3
func.func @dynamic(%m: memref<?x?x64xf32, strided<[?, ?, 1]>, 3>, %b: index, %i: index) -> vector<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %v = vector.transfer_read %m[%b, %i, %i], %zero : memref<?x?x64xf32, strided<[?, ?, 1]>, 3>, vector<8x16xf32>
  return %v : vector<8x16xf32>
}

// Either side, and the result, may be stored the other way round.
// CHECK-LABEL: @contract
// CHECK:       xetile.tile_mma %a, %b, %c : vector<8x4xf16>, vector<4x16xf16>, vector<8x16xf32>
// CHECK:       %[[AT:.*]] = xetile.tile_transpose %at
// CHECK:       %[[BT:.*]] = xetile.tile_transpose %bt
// CHECK:       xetile.tile_mma %[[AT]], %[[BT]], %c
// CHECK:       %[[BTT:.*]] = xetile.tile_transpose %b,
// CHECK:       %[[ATT:.*]] = xetile.tile_transpose %a,
// CHECK:       xetile.tile_mma %[[BTT]], %[[ATT]], %ct : vector<16x4xf16>, vector<4x8xf16>, vector<16x8xf32>
func.func @contract(%a: vector<8x4xf16>, %b: vector<4x16xf16>, %at: vector<4x8xf16>, %bt: vector<16x4xf16>, %c: vector<8x16xf32>, %ct: vector<16x8xf32>) -> (vector<8x16xf32>, vector<8x16xf32>, vector<16x8xf32>) {
  %0 = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %a, %b, %c : vector<8x4xf16>, vector<4x16xf16> into vector<8x16xf32>
  %1 = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %at, %bt, %c : vector<4x8xf16>, vector<16x4xf16> into vector<8x16xf32>
  %2 = vector.contract {indexing_maps = [affine_map<(k, m, n) -> (m, k)>, affine_map<(k, m, n) -> (k, n)>, affine_map<(k, m, n) -> (n, m)>], iterator_types = ["reduction", "parallel", "parallel"], kind = #vector.kind<add>} %a, %b, %ct : vector<8x4xf16>, vector<4x16xf16> into vector<16x8xf32>
  return %0, %1, %2 : vector<8x16xf32>, vector<8x16xf32>, vector<16x8xf32>
}

// What a reduction starts from is combined after it; what it drops comes back as 1.
// CHECK-LABEL: @values
// CHECK:       tile_reduce <add>, %v [1] : vector<8x16xf32> -> vector<8x1xf32>
// CHECK-NEXT:  vector.shape_cast {{.*}} to vector<8xf32>
// CHECK-NEXT:  arith.addf {{.*}}, %s
// CHECK:       tile_reduce <maximumf>, %v [0, 1] : vector<8x16xf32> -> vector<1x1xf32>
// CHECK-NEXT:  vector.extract {{.*}}[0, 0]
// CHECK-NEXT:  arith.maximumf {{.*}}, %f
// CHECK:       tile_transpose %v, [1, 0]
// CHECK:       vector.shape_cast %r : vector<16xf32> to vector<1x16xf32>
// CHECK-NEXT:  tile_broadcast {{.*}} [0] : vector<1x16xf32> -> vector<8x16xf32>
// CHECK:       vector.broadcast %f : f32 to vector<8x16xf32>
func.func @values(%v: vector<8x16xf32>, %s: vector<8xf32>, %r: vector<16xf32>, %f: f32) -> (vector<8xf32>, f32, vector<16x8xf32>, vector<8x16xf32>, vector<8x16xf32>) {
  %0 = vector.multi_reduction <add>, %v, %s [1] : vector<8x16xf32> to vector<8xf32>
  %1 = vector.multi_reduction <maximumf>, %v, %f [0, 1] : vector<8x16xf32> to f32
  %2 = vector.transpose %v, [1, 0] : vector<8x16xf32> to vector<16x8xf32>
  %3 = vector.broadcast %r : vector<16xf32> to vector<8x16xf32>
  %4 = vector.broadcast %f : f32 to vector<8x16xf32>
  return %0, %1, %2, %3, %4 : vector<8xf32>, f32, vector<16x8xf32>, vector<8x16xf32>, vector<8x16xf32>
}

// RUN: xetl-opt %s --split-input-file --verify-diagnostics | filecheck %s
// What each operation refuses, in the order of the cases.

// CHECK: the base holds f16, the tile f32
func.func @f(%m: memref<64x64xf16>) {
  %t = xetile.init_tile %m[0, 0] : memref<64x64xf16> -> !xetile.tile<32x64xf32>
  return
}
// -----
// CHECK: sizes and strides are given, but memref<64x64xf16> states them itself
func.func @f(%m: memref<64x64xf16>, %i: index) {
  %t = xetile.init_tile %m[0, 0], [%i, %i], [%i, 1] : memref<64x64xf16> -> !xetile.tile<32x64xf16>
  return
}
// -----
// CHECK: a base of unknown shape needs 2 sizes, found 0
func.func @f(%m: memref<?x?xf16>) {
  %t = xetile.init_tile %m[0, 0] : memref<?x?xf16> -> !xetile.tile<32x64xf16>
  return
}
// -----
// CHECK: expected 2 offsets, found 1
func.func @f(%m: memref<64x64xf16>) {
  %t = xetile.init_tile %m[0] : memref<64x64xf16> -> !xetile.tile<32x64xf16>
  return
}
// -----
// CHECK: the base is in memory space 3, the tile in 0
func.func @f(%m: memref<64x64xf16, 3>) {
  %t = xetile.init_tile %m[0, 0] : memref<64x64xf16, 3> -> !xetile.tile<32x64xf16>
  return
}
// -----
// CHECK: order [0, 1] needs stride 1 in dimension 0, but the base has stride 64 there
func.func @f(%m: memref<64x64xf16>) {
  %t = xetile.init_tile %m[0, 0] : memref<64x64xf16> -> !xetile.tile<32x64xf16, #xetile.tile_attr<order = [0, 1]>>
  return
}
// -----
// CHECK: order [1, 0] needs stride 1 in dimension 1, but the base has stride 64 there
func.func @f(%m: memref<64x64xf16, affine_map<(d0, d1) -> (d1, d0)>>) {
  %t = xetile.init_tile %m[0, 0] : memref<64x64xf16, affine_map<(d0, d1) -> (d1, d0)>> -> !xetile.tile<32x64xf16>
  return
}
// -----
// CHECK: order [1, 0] needs stride 1 in dimension 1, but the base has stride 2 there
func.func @f(%p: i64, %i: index) {
  %c2 = arith.constant 2 : index
  %t = xetile.init_tile %p[0, 0], [%i, %i], [%i, %c2] : i64 -> !xetile.tile<32x64xf16>
  return
}
// -----
// CHECK: a tile of rank 1 must be scattered
func.func @f(%t: !xetile.tile<32xf16>) {
  return
}
// -----
// CHECK: a scattered tile cannot have an `array_length`
func.func @f(%t: !xetile.tile<32xf16, #xetile.tile_attr<scattered = true, array_length = 2>>) {
  return
}
// -----
// CHECK: `order` must be [1, 0] or [0, 1], found [1, 1]
func.func @f(%t: !xetile.tile<32x32xf16, #xetile.tile_attr<order = [1, 1]>>) {
  return
}
// -----
// CHECK: `sg_layout` must have two entries, one a dimension, found [4]
func.func @f(%t: !xetile.tile<32x32xf16, #xetile.wg_map<sg_layout = [4], sg_data = [8, 8]>>) {
  return
}
// -----
// CHECK: neither divides the other
func.func @f(%t: !xetile.tile<96x64xf16, #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>>) {
  return
}
// -----
// CHECK: sg_data 24 does not divide extent 64 of dimension 0
func.func @f(%t: !xetile.tile<64x64xf16, #xetile.wg_map<sg_layout = [2, 2], sg_data = [24, 32]>>) {
  return
}
// -----
// CHECK: unknown parameter `layout`
func.func @f(%t: !xetile.tile<64x64xf16, #xetile.tile_attr<layout = 3>>) {
  return
}
// -----
// CHECK: padding 1.000000e+00 : f32 does not fit elements of type i8
func.func @f(%t: !xetile.tile<8x8xi8>) {
  %v = xetile.load_tile %t {padding = 1.0 : f32} : !xetile.tile<8x8xi8> -> vector<8x8xi8>
  return
}
// -----
// CHECK: the result is vector<8x4xf16>, but the tile holds vector<8x8xf16>
func.func @f(%t: !xetile.tile<8x8xf16>) {
  %v = xetile.load_tile %t : !xetile.tile<8x8xf16> -> vector<8x4xf16>
  return
}
// -----
// CHECK: the value is vector<8x4xf16>, but the tile holds vector<8x8xf16>
func.func @f(%t: !xetile.tile<8x8xf16>, %v: vector<8x4xf16>) {
  xetile.store_tile %v, %t : vector<8x4xf16>, !xetile.tile<8x8xf16>
  return
}
// -----
// CHECK: locality is 0, 1, 2 or 3, found 4
func.func @f(%t: !xetile.tile<8x8xf16>) {
  xetile.prefetch_tile %t locality<4> : !xetile.tile<8x8xf16>
  return
}
// -----
// CHECK: the left side has 8 columns, the right side 4 rows
func.func @f(%a: vector<8x8xf16>, %b: vector<4x8xf16>) {
  %c = xetile.tile_mma %a, %b : vector<8x8xf16>, vector<4x8xf16> -> vector<8x8xf32>
  return
}
// -----
// CHECK: both sides need one element type, found f16 and bf16
func.func @f(%a: vector<8x8xf16>, %b: vector<8x8xbf16>) {
  %c = xetile.tile_mma %a, %b : vector<8x8xf16>, vector<8x8xbf16> -> vector<8x8xf32>
  return
}
// -----
// CHECK: the addend is vector<8x8xf16>, but the result is vector<8x8xf32>
func.func @f(%a: vector<8x8xf16>) {
  %c = xetile.tile_mma %a, %a, %a : vector<8x8xf16>, vector<8x8xf16>, vector<8x8xf16> -> vector<8x8xf32>
  return
}
// -----
// CHECK: the permutation must be [1, 0], found [0, 1]
func.func @f(%a: vector<8x4xf16>) {
  %c = xetile.tile_transpose %a, [0, 1] : vector<8x4xf16> -> vector<8x4xf16>
  return
}
// -----
// CHECK: the permutation must be [1, 0, 3, 2], found [1, 0]
func.func @f(%a: vector<1x1x8x4xf16>) {
  %c = xetile.tile_transpose %a, [1, 0] : vector<1x1x8x4xf16> -> vector<1x1x4x8xf16>
  return
}
// -----
// CHECK: a reduced dimension keeps size 1, found vector<8x1xf16>
func.func @f(%a: vector<8x4xf16>) {
  %c = xetile.tile_reduce <add>, %a [0] : vector<8x4xf16> -> vector<8x1xf16>
  return
}
// -----
// CHECK: `xor` does not reduce elements of type f16
func.func @f(%a: vector<8x4xf16>) {
  %c = xetile.tile_reduce <xor>, %a [0] : vector<8x4xf16> -> vector<1x4xf16>
  return
}
// -----
// CHECK: `sum` is no kind of reduction
func.func @f(%a: vector<8x4xf16>) {
  %c = xetile.tile_reduce <sum>, %a [0] : vector<8x4xf16> -> vector<1x4xf16>
  return
}
// -----
// CHECK: the source must have size 1 in dimension 0
func.func @f(%a: vector<2x4xf16>) {
  %c = xetile.tile_broadcast %a [0] : vector<2x4xf16> -> vector<8x4xf16>
  return
}
// -----
// CHECK: tile_conv_layout needs the map of its result
func.func @f(%a: vector<2x4xf16>) {
  %c = xetile.tile_conv_layout %a : vector<2x4xf16>
  return
}
// -----
// CHECK: inner_blocks [3, 4] do not divide [8, 4]
func.func @f(%a: vector<8x4xf16>) {
  %c = xetile.tile_pack %a {inner_blocks = array<i64: 3, 4>} : vector<8x4xf16> -> vector<2x1x3x4xf16>
  return
}
// -----
// CHECK: the mask is vector<8x4xi1>, expected vector<1x8xi1>
func.func @f(%t: !xetile.tile<1x8xf16, #scatter>, %m: vector<8x4xi1>) {
  %v = xetile.load_gather %t, %m : !xetile.tile<1x8xf16, #scatter>, vector<8x4xi1> -> vector<1x8xf16>
  return
}
// -----
// CHECK: has 2 fields for 1 values
func.func @f(%i: index) {
  xetile.print "{} {}"(%i) : index
  return
}
// -----
// CHECK: is no text with fields {}
func.func @f(%i: index, %c: i1) {
  xetile.assert %c, "{name}"(%i) : index
  return
}
// -----
// CHECK: value 1 of "{} {:d}": Unknown format code 'd'
func.func @f(%i: index, %x: f32) {
  xetile.print "{} {:d}"(%i, %x) : index, f32
  return
}
// -----
// CHECK: `unsigned` names values that are not there: [1]
func.func @f(%i: i8) {
  xetile.print "{}"(%i) {unsigned = array<i64: 1>} : i8
  return
}
// -----
// CHECK: the dimension is 0 or 1, found [2]
func.func @f(%v: vector<4x8xf16>) {
  %s = xetile.tile_scan <add>, %v [2] : vector<4x8xf16> -> vector<4x8xf16>
  return
}
// -----
// CHECK: `maximumf` does not combine elements of i8
func.func @f(%v: vector<4x8xi8>) {
  %s = xetile.tile_scan <maximumf>, %v [1] : vector<4x8xi8> -> vector<4x8xi8>
  return
}
// -----
// CHECK: tile_sort takes a vector of rank 2 of i32 or i64, found vector<4x8xf32>
func.func @f(%v: vector<4x8xf32>) {
  %s = xetile.tile_sort %v [1] : vector<4x8xf32>
  return
}
// -----
// CHECK: the dimension is 0 or 1, found [2]
func.func @f(%v: vector<4x8xi32>) {
  %s = xetile.tile_sort %v [2] : vector<4x8xi32>
  return
}
// -----
// CHECK: a scan takes vectors of rank 2 and of one shape
func.func @f(%v: vector<4x8xi8>, %w: vector<4x4xi8>) {
  %r:2 = xetile.tile_associative_scan %v, %w {scan_dim = 1 : i64} : vector<4x8xi8>, vector<4x4xi8> {
  ^bb0(%a: vector<4x8xi8>, %b: vector<4x4xi8>, %c: vector<4x8xi8>, %d: vector<4x4xi8>):
    scf.yield %a, %b : vector<4x8xi8>, vector<4x4xi8>
  }
  return
}
// -----
// CHECK: the dimension is 0 or 1, found 2
func.func @f(%v: vector<4x8xi8>, %w: vector<4x8xf32>) {
  %r:2 = xetile.tile_associative_scan %v, %w {scan_dim = 2 : i64} : vector<4x8xi8>, vector<4x8xf32> {
  ^bb0(%a: vector<4x8xi8>, %b: vector<4x8xf32>, %c: vector<4x8xi8>, %d: vector<4x8xf32>):
    scf.yield %a, %b : vector<4x8xi8>, vector<4x8xf32>
  }
  return
}
// -----
// CHECK: the block takes the types of the sources twice
func.func @f(%v: vector<4x8xi8>, %w: vector<4x8xf32>) {
  %r:2 = xetile.tile_associative_scan %v, %w {scan_dim = 0 : i64} : vector<4x8xi8>, vector<4x8xf32> {
  ^bb0(%a: vector<4x8xf32>, %b: vector<4x8xi8>, %c: vector<4x8xf32>, %d: vector<4x8xi8>):
    scf.yield %b, %a : vector<4x8xi8>, vector<4x8xf32>
  }
  return
}
// -----
// CHECK: the block yields the types of the sources
func.func @f(%v: vector<4x8xi8>, %w: vector<4x8xf32>) {
  %r:2 = xetile.tile_associative_scan %v, %w {scan_dim = 0 : i64} : vector<4x8xi8>, vector<4x8xf32> {
  ^bb0(%a: vector<4x8xi8>, %b: vector<4x8xf32>, %c: vector<4x8xi8>, %d: vector<4x8xf32>):
    scf.yield %a : vector<4x8xi8>
  }
  return
}
// -----
// CHECK: there are 1 names for 0 values
func.func @f() {
  xetile.breakpoint {names = ["i"]}
  return
}
// -----
// CHECK: padding 256 : i32 does not fit elements of type i8
func.func @f(%t: !xetile.tile<8x8xi8>) {
  // With or without sign, as the elements themselves.
  %u = xetile.load_tile %t {padding = 255 : i32} : !xetile.tile<8x8xi8> -> vector<8x8xi8>
  %s = xetile.load_tile %t {padding = -128 : i32} : !xetile.tile<8x8xi8> -> vector<8x8xi8>
  %v = xetile.load_tile %t {padding = 256 : i32} : !xetile.tile<8x8xi8> -> vector<8x8xi8>
  return
}
// -----
// CHECK: padding -129 : i32 does not fit elements of type i8
func.func @f(%t: !xetile.tile<8x8xi8, #scatter>, %m: vector<8x8xi1>) {
  %v = xetile.load_gather %t, %m {padding = -129 : i32} : !xetile.tile<8x8xi8, #scatter>, vector<8x8xi1> -> vector<8x8xi8>
  return
}
// -----
// CHECK: order [1, 0] needs stride 1 in dimension 1, but the base has stride 2 there
func.func @f(%m: memref<?x?xf16>, %i: index) {
  %c2 = arith.constant 2 : i64
  %s = arith.index_cast %c2 : i64 to index
  %t = xetile.init_tile %m[0, 0], [%i, %i], [%i, %s] : memref<?x?xf16> -> !xetile.tile<8x8xf16>
  return
}
// -----
// CHECK: order [0, 1] needs stride 1 in dimension 0, but the base has stride 4 there
func.func @f(%m: memref<?x?xf16>, %i: index) {
  %c4 = index.constant 4
  %t = xetile.init_tile %m[0, 0], [%i, %i], [%c4, %i] : memref<?x?xf16> -> !xetile.tile<8x8xf16, #xetile.tile_attr<order = [0, 1]>>
  return
}
// -----
// A map on an operation of any dialect is one for what it gives.
// CHECK: `arith.addf`: `map`: wg_map: sg_data 24 does not divide extent 64 of dimension 0
func.func @f(%v: vector<64x64xf16>) {
  %a = arith.addf %v, %v {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [24, 32]>} : vector<64x64xf16>
  return
}
// -----
// CHECK: `arith.constant`: `map`: wg_map: sg_layout * sg_data = 3 * 32 = 96 and extent 64 of dimension 1
func.func @f() {
  %a = arith.constant {map = #xetile.xe_map<wg = <sg_layout = [2, 3], sg_data = [32, 32]>>} dense<0.0> : vector<64x64xf16>
  return
}
// -----
// CHECK: `math.exp`: `map`: layout: it has 3 dimensions, the shape [64, 64] 2
func.func @f(%v: vector<64x64xf16>) {
  %a = math.exp %v {map = #xetile.layout<sg_layout = [1, 1, 1], sg_data = [64, 64, 1]>} : vector<64x64xf16>
  return
}
// -----
// Aliases count where they are defined, used or not.
// CHECK: `sg_data` must have two entries, one a dimension, found [4, 4, 4]
#unused = #xetile.wg_map<sg_layout = [2, 2], sg_data = [4, 4, 4]>
func.func @f() {
  return
}
// -----
// CHECK: `wi_layout` must have two entries, one a dimension, found [16]
#unused = #xetile.sg_map<wi_layout = [16], wi_data = [1, 1]>
func.func @f() {
  return
}
// -----
// CHECK: `inner_blocks` must be two positive numbers, found [8]
func.func @f(%t: !xetile.tile<8x8xf16, #xetile.tile_attr<inner_blocks = [8]>>) {
  return
}
// -----
// CHECK: `memory_space` must be 0 (global) or 3 (shared), found 1
func.func @f(%t: !xetile.tile<8x8xf16, #xetile.tile_attr<memory_space = 1>>) {
  return
}
// -----
// CHECK: the base is in memory space 0, the tile in 3
func.func @f(%m: memref<64x64xf16>) {
  %t = xetile.init_tile %m[0, 0] : memref<64x64xf16> -> !xetile.tile<8x8xf16, #xetile.tile_attr<memory_space = 3>>
  return
}
// -----
// CHECK: the indices are vector<1x8xindex>, expected vector<8x8xindex>
func.func @f(%m: memref<64xf16>, %i: vector<1x8xindex>) {
  %t = xetile.init_tile %m, %i : memref<64xf16>, vector<1x8xindex> -> !xetile.tile<8x8xf16, #scatter>
  return
}
// -----
// CHECK: a scattered tile is loaded by load_gather
func.func @f(%t: !xetile.tile<8x8xf16, #scatter>) {
  %v = xetile.load_tile %t : !xetile.tile<8x8xf16, #scatter> -> vector<8x8xf16>
  return
}
// -----
// CHECK: dimension 0 is not in [1] and must stay 64, found 32
func.func @f(%v: vector<64x1xf16>) {
  %a = xetile.tile_broadcast %v [1] : vector<64x1xf16> -> vector<32x64xf16>
  return
}
// -----
// CHECK: reduction_size 5 does not divide the reduced extent
func.func @f(%v: vector<64x64xf16>) {
  %a = xetile.reduction <add>, %v [0] {reduction_size = 5 : i64} : vector<64x64xf16> -> vector<8x64xf16>
  return
}
// -----
// CHECK: i8 cannot be accumulated in f32
func.func @f(%v: vector<8x8xi8>) {
  %d = xetile.tile_mma %v, %v : vector<8x8xi8>, vector<8x8xi8> -> vector<8x8xf32>
  return
}
// -----
// CHECK: `wg_map_a`: wg_map: sg_data 24 does not divide extent 64 of dimension 0
func.func @f(%v: vector<64x64xf16>) {
  %d = xetile.tile_mma %v, %v {wg_map_a = #xetile.wg_map<sg_layout = [2, 2], sg_data = [24, 32]>} : vector<64x64xf16>, vector<64x64xf16> -> vector<64x64xf32>
  return
}
// -----
// CHECK: `transpose` must be [1, 0], found [0, 1]
func.func @f(%t: !xetile.tile<8x16xf16>) {
  %v = xetile.load_tile %t {transpose = [0, 1]} : !xetile.tile<8x16xf16> -> vector<8x16xf16>
  return
}
// -----
// CHECK: the transposed tile is vector<16x8xf16>, found vector<8x16xf16>
func.func @f(%t: !xetile.tile<8x16xf16>) {
  %v = xetile.load_tile %t {transpose = [1, 0]} : !xetile.tile<8x16xf16> -> vector<8x16xf16>
  return
}
// -----
// CHECK: a load transposes one vector of rank 2, not several or a blocked one
func.func @f(%t: !xetile.tile<8x16xf16, #xetile.tile_attr<inner_blocks = [8, 16]>>) {
  %v = xetile.load_tile %t {transpose = [1, 0]} : !xetile.tile<8x16xf16, #xetile.tile_attr<inner_blocks = [8, 16]>> -> vector<16x8xf16>
  return
}

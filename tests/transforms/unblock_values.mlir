// RUN: xetl-opt %s -p unblock-values | filecheck %s

// Packing and unpacking cancel; what lies between works on the value itself.
// CHECK-LABEL: @elementwise
// CHECK-NOT:   tile_pack
// CHECK:       [[SUM:%.+]] = arith.addf {{.*}} : vector<64x32xf32>
// CHECK-NOT:   tile_unpack
// CHECK:       return [[SUM]] : vector<64x32xf32>
func.func @elementwise(%v: vector<64x32xf32>) -> vector<64x32xf32> {
  %p = xetile.tile_pack %v {inner_blocks = array<i64: 16, 16>} : vector<64x32xf32> -> vector<4x2x16x16xf32>
  %s = arith.addf %p, %p : vector<4x2x16x16xf32>
  %u = xetile.tile_unpack %s {inner_blocks = array<i64: 16, 16>} : vector<4x2x16x16xf32> -> vector<64x32xf32>
  return %u : vector<64x32xf32>
}

// A dimension and the inner one of its blocks are one dimension of the value.
// CHECK-LABEL: @reduces
// CHECK:       tile_reduce <add>, {{.*}} [1] : vector<64x32xf32> -> vector<64x1xf32>
func.func @reduces(%v: vector<64x32xf32>) -> vector<64x1xf32> {
  %p = xetile.tile_pack %v {inner_blocks = array<i64: 16, 16>} : vector<64x32xf32> -> vector<4x2x16x16xf32>
  %r = xetile.tile_reduce <add>, %p [1, 3] : vector<4x2x16x16xf32> -> vector<4x1x16x1xf32>
  %u = xetile.tile_unpack %r {inner_blocks = array<i64: 16, 1>} : vector<4x1x16x1xf32> -> vector<64x1xf32>
  return %u : vector<64x1xf32>
}

// Blocks swap when their elements do; the value is just transposed.
// CHECK-LABEL: @transposes
// CHECK:       tile_transpose {{.*}}, [1, 0] : vector<64x32xf32> -> vector<32x64xf32>
func.func @transposes(%v: vector<64x32xf32>) -> vector<32x64xf32> {
  %p = xetile.tile_pack %v {inner_blocks = array<i64: 16, 8>} : vector<64x32xf32> -> vector<4x4x16x8xf32>
  %r = xetile.tile_transpose %p, [1, 0, 3, 2] : vector<4x4x16x8xf32> -> vector<4x4x8x16xf32>
  %u = xetile.tile_unpack %r {inner_blocks = array<i64: 8, 16>} : vector<4x4x8x16xf32> -> vector<32x64xf32>
  return %u : vector<32x64xf32>
}

// Tiles lose their blocks, and so do loads from them.
// CHECK-LABEL: @loads
// CHECK:       init_tile {{.*}} -> !xetile.tile<64x32xf32>
// CHECK:       load_tile {{.*}} -> vector<64x32xf32>
func.func @loads(%m: memref<64x32xf32>) {
  %t = xetile.init_tile %m[0, 0] : memref<64x32xf32> -> !xetile.tile<64x32xf32, #xetile.tile_attr<inner_blocks = [16, 16]>>
  %v = xetile.load_tile %t : !xetile.tile<64x32xf32, #xetile.tile_attr<inner_blocks = [16, 16]>> -> vector<4x2x16x16xf32>
  xetile.store_tile %v, %t : vector<4x2x16x16xf32>, !xetile.tile<64x32xf32, #xetile.tile_attr<inner_blocks = [16, 16]>>
  return
}

// Without blocks nothing changes.
// CHECK-LABEL: @plain
// CHECK:       tile_reduce <add>, {{.*}} [0] : vector<64x32xf32> -> vector<1x32xf32>
func.func @plain(%v: vector<64x32xf32>) -> vector<1x32xf32> {
  %r = xetile.tile_reduce <add>, %v [0] : vector<64x32xf32> -> vector<1x32xf32>
  return %r : vector<1x32xf32>
}

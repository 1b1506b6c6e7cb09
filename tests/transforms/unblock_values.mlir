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

// A part of blocks is a part of the value.
// CHECK-LABEL: @parts
// CHECK:       vector.extract_strided_slice {{.*}} {offsets = [32 : i64, 16 : i64], sizes = [32 : i64, 16 : i64], {{.*}} : vector<64x32xf32> to vector<32x16xf32>
// CHECK:       vector.insert_strided_slice {{.*}} {offsets = [0 : i64, 0 : i64], {{.*}} : vector<32x16xf32> into vector<64x32xf32>
func.func @parts(%v: vector<64x32xf32>) -> vector<64x32xf32> {
  %p = xetile.tile_pack %v {inner_blocks = array<i64: 16, 16>} : vector<64x32xf32> -> vector<4x2x16x16xf32>
  %s = vector.extract_strided_slice %p {offsets = [2, 1], sizes = [2, 1], strides = [1, 1]} : vector<4x2x16x16xf32> to vector<2x1x16x16xf32>
  %w = vector.insert_strided_slice %s, %p {offsets = [0, 0, 0, 0], strides = [1, 1, 1, 1]} : vector<2x1x16x16xf32> into vector<4x2x16x16xf32>
  %u = xetile.tile_unpack %w {inner_blocks = array<i64: 16, 16>} : vector<4x2x16x16xf32> -> vector<64x32xf32>
  return %u : vector<64x32xf32>
}

// What looks at one of the four dimensions keeps them, with all that is computed from
// them; other blocked values do not stay for it.
// CHECK-LABEL: @looked_at
// CHECK:       tile_pack {{.*}} -> vector<4x2x16x16xf32>
// CHECK-NEXT:  arith.mulf {{.*}} : vector<4x2x16x16xf32>
// CHECK-NEXT:  tile_reduce <add>, {{.*}} [3] : vector<4x2x16x16xf32> -> vector<4x2x16x1xf32>
// CHECK-NEXT:  arith.addf %v, %v : vector<64x32xf32>
func.func @looked_at(%v: vector<64x32xf32>) -> (vector<4x2x16x1xf32>, vector<64x32xf32>) {
  %p = xetile.tile_pack %v {inner_blocks = array<i64: 16, 16>} : vector<64x32xf32> -> vector<4x2x16x16xf32>
  %q = arith.mulf %p, %p : vector<4x2x16x16xf32>
  %r = xetile.tile_reduce <add>, %q [3] : vector<4x2x16x16xf32> -> vector<4x2x16x1xf32>
  %o = xetile.tile_pack %v {inner_blocks = array<i64: 8, 8>} : vector<64x32xf32> -> vector<8x4x8x8xf32>
  %a = arith.addf %o, %o : vector<8x4x8x8xf32>
  %u = xetile.tile_unpack %a {inner_blocks = array<i64: 8, 8>} : vector<8x4x8x8xf32> -> vector<64x32xf32>
  return %r, %u : vector<4x2x16x1xf32>, vector<64x32xf32>
}

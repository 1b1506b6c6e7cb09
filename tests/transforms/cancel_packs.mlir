// RUN: xetl-opt %s -p cancel-packs | filecheck %s

// Unpacked and packed alike: nothing has happened.
// CHECK-LABEL: @cancels
// CHECK-NOT:   tile_
// CHECK:       return %p
func.func @cancels(%p: vector<4x2x8x16xf32>) -> vector<4x2x8x16xf32> {
  %u = xetile.tile_unpack %p {inner_blocks = array<i64: 8, 16>} : vector<4x2x8x16xf32> -> vector<32x32xf32>
  %q = xetile.tile_pack %u {inner_blocks = array<i64: 8, 16>} : vector<32x32xf32> -> vector<4x2x8x16xf32>
  return %q : vector<4x2x8x16xf32>
}

// The other way round; the pack has another reader and stays.
// CHECK-LABEL: @keeps_what_is_read
// CHECK:       %[[P:.*]] = xetile.tile_pack %v
// CHECK-NOT:   tile_unpack
// CHECK:       return %[[P]], %v
func.func @keeps_what_is_read(%v: vector<32x32xf32>) -> (vector<4x2x8x16xf32>, vector<32x32xf32>) {
  %p = xetile.tile_pack %v {inner_blocks = array<i64: 8, 16>} : vector<32x32xf32> -> vector<4x2x8x16xf32>
  %u = xetile.tile_unpack %p {inner_blocks = array<i64: 8, 16>} : vector<4x2x8x16xf32> -> vector<32x32xf32>
  return %p, %u : vector<4x2x8x16xf32>, vector<32x32xf32>
}

// A chain of three: the pair in the middle goes.
// CHECK-LABEL: @chain
// CHECK:       tile_unpack %p {inner_blocks = array<i64: 8, 16>}
// CHECK-NEXT:  tile_pack {{.*}} {inner_blocks = array<i64: 16, 16>}
// CHECK-NEXT:  return
func.func @chain(%p: vector<4x2x8x16xf32>) -> vector<2x2x16x16xf32> {
  %u = xetile.tile_unpack %p {inner_blocks = array<i64: 8, 16>} : vector<4x2x8x16xf32> -> vector<32x32xf32>
  %q = xetile.tile_pack %u {inner_blocks = array<i64: 32, 32>} : vector<32x32xf32> -> vector<1x1x32x32xf32>
  %w = xetile.tile_unpack %q {inner_blocks = array<i64: 32, 32>} : vector<1x1x32x32xf32> -> vector<32x32xf32>
  %r = xetile.tile_pack %w {inner_blocks = array<i64: 16, 16>} : vector<32x32xf32> -> vector<2x2x16x16xf32>
  return %r : vector<2x2x16x16xf32>
}

// One number is made in blocks.
// CHECK-LABEL: @uniform
// CHECK-NEXT:  arith.constant dense<1.5{{.*}}> : vector<4x2x8x16xf32>
// CHECK-NEXT:  return
func.func @uniform() -> vector<4x2x8x16xf32> {
  %c = arith.constant dense<1.5> : vector<32x32xf32>
  %q = xetile.tile_pack %c {inner_blocks = array<i64: 8, 16>} : vector<32x32xf32> -> vector<4x2x8x16xf32>
  return %q : vector<4x2x8x16xf32>
}

// Two sizes: elements move.
// CHECK-LABEL: @keeps_two_sizes
// CHECK:       tile_unpack
// CHECK:       tile_pack
func.func @keeps_two_sizes(%p: vector<4x2x8x16xf32>) -> vector<2x2x16x16xf32> {
  %u = xetile.tile_unpack %p {inner_blocks = array<i64: 8, 16>} : vector<4x2x8x16xf32> -> vector<32x32xf32>
  %q = xetile.tile_pack %u {inner_blocks = array<i64: 16, 16>} : vector<32x32xf32> -> vector<2x2x16x16xf32>
  return %q : vector<2x2x16x16xf32>
}

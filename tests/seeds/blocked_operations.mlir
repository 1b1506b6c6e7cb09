// RUN: xetl-opt %s | filecheck %s
// XeTile RFC (seed 001), "Internal Operations to support gradual lowering".
// Corrected: the atomic's value is 8x4x8x16, as its result is, not 8x48x16; the table's
// tile_unpack of 1x2x64x16 has blocks of 64x16 (as its text says) and keeps f32.

#blocks = #xetile.tile_attr<inner_blocks = [16, 16]>
#atomic = #xetile.tile_attr<inner_blocks = [8, 16]>

// CHECK: func.func @load_and_store
// CHECK: xetile.load_tile %{{.*}} : !xetile.tile<64x32xbf16, #xetile.tile_attr<inner_blocks = [16, 16]>> -> vector<4x2x16x16xbf16>
func.func @load_and_store(%base_memref: memref<128x128xbf16>, %o0: index, %o1: index, %out: memref<64x32xbf16>) {
  %tile0 = xetile.init_tile %base_memref, [%o0, %o1] : memref<128x128xbf16> into !xetile.tile<64x32xbf16, #blocks>
  %vector_a = xetile.load_tile %tile0 : !xetile.tile<64x32xbf16, #blocks> into vector<4x2x16x16xbf16>
  %tile_a = xetile.init_tile %out[0, 0] : memref<64x32xbf16> -> !xetile.tile<64x32xbf16, #blocks>
  xetile.store_tile %vector_a, %tile_a : vector<4x2x16x16xbf16>, !xetile.tile<64x32xbf16, #blocks>
  return
}

// CHECK: func.func @atomic
func.func @atomic(%base: memref<64x64xbf16>, %by: memref<64x64xbf16>, %out: memref<64x64xbf16>) {
  %in = xetile.init_tile %by[0, 0] : memref<64x64xbf16> -> !xetile.tile<64x64xbf16, #atomic>
  %value = xetile.load_tile %in : !xetile.tile<64x64xbf16, #atomic> -> vector<8x4x8x16xbf16>
  %tile = xetile.init_tile %base[0, 0] : memref<64x64xbf16> -> !xetile.tile<64x64xbf16, #atomic>
  %vector_a = xetile.atomic_rmw_tile <add> %value, %tile : vector<8x4x8x16xbf16>, !xetile.tile<64x64xbf16, #atomic> to vector<8x4x8x16xbf16>
  %to = xetile.init_tile %out[0, 0] : memref<64x64xbf16> -> !xetile.tile<64x64xbf16, #atomic>
  xetile.store_tile %vector_a, %to : vector<8x4x8x16xbf16>, !xetile.tile<64x64xbf16, #atomic>
  return
}

#a = #xetile.tile_attr<inner_blocks = [8, 8]>
#b = #xetile.tile_attr<inner_blocks = [8, 16]>

// CHECK: func.func @mma
func.func @mma(%a: memref<64x32xbf16>, %b: memref<32x128xbf16>, %c: memref<64x128xf32>) {
  %tile_a = xetile.init_tile %a[0, 0] : memref<64x32xbf16> -> !xetile.tile<64x32xbf16, #a>
  %tile_b = xetile.init_tile %b[0, 0] : memref<32x128xbf16> -> !xetile.tile<32x128xbf16, #b>
  %tile_c = xetile.init_tile %c[0, 0] : memref<64x128xf32> -> !xetile.tile<64x128xf32, #b>
  %vector_a = xetile.load_tile %tile_a : !xetile.tile<64x32xbf16, #a> -> vector<8x4x8x8xbf16>
  %vector_b = xetile.load_tile %tile_b : !xetile.tile<32x128xbf16, #b> -> vector<4x8x8x16xbf16>
  %old = xetile.load_tile %tile_c : !xetile.tile<64x128xf32, #b> -> vector<8x8x8x16xf32>
  %vector_c = xetile.tile_mma %vector_a, %vector_b, %old : vector<8x4x8x8xbf16>, vector<4x8x8x16xbf16>, vector<8x8x8x16xf32> into vector<8x8x8x16xf32>
  xetile.store_tile %vector_c, %tile_c : vector<8x8x8x16xf32>, !xetile.tile<64x128xf32, #b>
  return
}

#sums = #xetile.tile_attr<inner_blocks = [8, 1]>

// CHECK: func.func @reduce
func.func @reduce(%from: memref<64x64xf32>, %out: memref<64x1xf32>) {
  %in = xetile.init_tile %from[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32, #b>
  %vector_b = xetile.load_tile %in : !xetile.tile<64x64xf32, #b> -> vector<8x4x8x16xf32>
  %vector_a = xetile.tile_reduce <add> %vector_b [1, 3] : vector<8x4x8x16xf32> into vector<8x1x8x1xf32>
  %to = xetile.init_tile %out[0, 0] : memref<64x1xf32> -> !xetile.tile<64x1xf32, #sums>
  xetile.store_tile %vector_a, %to : vector<8x1x8x1xf32>, !xetile.tile<64x1xf32, #sums>
  return
}

// CHECK: func.func @broadcast
func.func @broadcast(%from: memref<64x1xf32>, %out: memref<64x64xf32>) {
  %in = xetile.init_tile %from[0, 0] : memref<64x1xf32> -> !xetile.tile<64x1xf32, #sums>
  %vector_b = xetile.load_tile %in : !xetile.tile<64x1xf32, #sums> -> vector<8x1x8x1xf32>
  %vector_a = xetile.tile_broadcast %vector_b [1, 3] : vector<8x1x8x1xf32> into vector<8x4x8x16xf32>
  %to = xetile.init_tile %out[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32, #b>
  xetile.store_tile %vector_a, %to : vector<8x4x8x16xf32>, !xetile.tile<64x64xf32, #b>
  return
}

#tall = #xetile.tile_attr<inner_blocks = [64, 16]>

// What is packed is stored block by block, what was loaded block by block is unpacked.
// CHECK: func.func @pack
func.func @pack(%from: memref<64x32xf32>, %out: memref<64x32xf32>) {
  %in = xetile.init_tile %from[0, 0] : memref<64x32xf32> -> !xetile.tile<64x32xf32>
  %1 = xetile.load_tile %in : !xetile.tile<64x32xf32> -> vector<64x32xf32>
  %0 = xetile.tile_pack %1 {inner_blocks = array<i64: 16, 16>} : vector<64x32xf32> -> vector<4x2x16x16xf32>
  %to = xetile.init_tile %out[0, 0] : memref<64x32xf32> -> !xetile.tile<64x32xf32, #blocks>
  xetile.store_tile %0, %to : vector<4x2x16x16xf32>, !xetile.tile<64x32xf32, #blocks>
  return
}

// CHECK: func.func @unpack
func.func @unpack(%from: memref<64x32xf32>, %out: memref<64x32xf32>) {
  %in = xetile.init_tile %from[0, 0] : memref<64x32xf32> -> !xetile.tile<64x32xf32, #tall>
  %1 = xetile.load_tile %in : !xetile.tile<64x32xf32, #tall> -> vector<1x2x64x16xf32>
  %0 = xetile.tile_unpack %1 {inner_blocks = array<i64: 64, 16>} : vector<1x2x64x16xf32> -> vector<64x32xf32>
  %to = xetile.init_tile %out[0, 0] : memref<64x32xf32> -> !xetile.tile<64x32xf32>
  xetile.store_tile %0, %to : vector<64x32xf32>, !xetile.tile<64x32xf32>
  return
}

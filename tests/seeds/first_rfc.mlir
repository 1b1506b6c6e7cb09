// RUN: xetl-opt %s | filecheck %s
// First XeTile RFC (seed 000), "XeTile Dialect": each snippet and each row of its table,
// on tiles of the document's shapes, with what makes its effect visible around it.
// Corrected: `XeTile.` is `xetile.`, a tile is `!xetile.tile<...>`, `%tile_offset:2` two names;
// `xb16` is bf16 and `float` f32; store_tile takes value and tile, as its syntax says, not
// tile and vector; the types of tile_mma stand in the order of its operands a, b, c; the
// table's update_nd_offset of a tensor_desc is update_tile_offset of a tile.

// CHECK: func.func @init_tile_static
func.func @init_tile_static(%base_memref: memref<128x128xbf16>, %o0: index, %o1: index, %out: memref<8x16xbf16>) {
  %block = xetile.init_tile %base_memref, [%o0, %o1] : memref<128x128xbf16> into !xetile.tile<8x16xbf16>
  %vector = xetile.load_tile %block : !xetile.tile<8x16xbf16> into vector<8x16xbf16>
  %to = xetile.init_tile %out[0, 0] : memref<8x16xbf16> -> !xetile.tile<8x16xbf16>
  xetile.store_tile %vector, %to : vector<8x16xbf16>, !xetile.tile<8x16xbf16>
  return
}

// CHECK: func.func @init_tile_dynamic
func.func @init_tile_dynamic(%base_memref: memref<?x?xbf16>, %o0: index, %o1: index, %h: index, %w: index, %s0: index, %s1: index, %out: memref<8x16xbf16>) {
  %block = xetile.init_tile %base_memref, [%o0, %o1], [%h, %w], [%s0, %s1] : memref<?x?xbf16> into !xetile.tile<8x16xbf16>
  %vector = xetile.load_tile %block : !xetile.tile<8x16xbf16> into vector<8x16xbf16>
  %to = xetile.init_tile %out[0, 0] : memref<8x16xbf16> -> !xetile.tile<8x16xbf16>
  xetile.store_tile %vector, %to : vector<8x16xbf16>, !xetile.tile<8x16xbf16>
  return
}

// CHECK: func.func @init_tile_address
func.func @init_tile_address(%base_addr: i64, %o0: index, %o1: index, %h: index, %w: index, %s0: index, %s1: index, %out: memref<8x16xbf16>) {
  %block = xetile.init_tile %base_addr, [%o0, %o1], [%h, %w], [%s0, %s1] : i64 into !xetile.tile<8x16xbf16>
  %vector = xetile.load_tile %block : !xetile.tile<8x16xbf16> into vector<8x16xbf16>
  %to = xetile.init_tile %out[0, 0] : memref<8x16xbf16> -> !xetile.tile<8x16xbf16>
  xetile.store_tile %vector, %to : vector<8x16xbf16>, !xetile.tile<8x16xbf16>
  return
}

// CHECK: func.func @load_and_store
func.func @load_and_store(%from: memref<64x64xbf16>, %out: memref<64x64xbf16>) {
  %tile_a = xetile.init_tile %from[0, 0] : memref<64x64xbf16> -> !xetile.tile<64x64xbf16>
  %vector_a = xetile.load_tile %tile_a : !xetile.tile<64x64xbf16> into vector<64x64xbf16>
  %to = xetile.init_tile %out[0, 0] : memref<64x64xbf16> -> !xetile.tile<64x64xbf16>
  xetile.store_tile %vector_a, %to : vector<64x64xbf16>, !xetile.tile<64x64xbf16>
  return
}

// The second RFC writes a tile_transpose instead.
// CHECK: func.func @load_transposed
// CHECK: xetile.load_tile %{{.*}} {transpose = array<i64: 1, 0>} : !xetile.tile<32x64xbf16> -> vector<64x32xbf16>
func.func @load_transposed(%from: memref<32x64xbf16>, %out: memref<64x32xbf16>) {
  %tile_a = xetile.init_tile %from[0, 0] : memref<32x64xbf16> -> !xetile.tile<32x64xbf16>
  %vector_a = xetile.load_tile %tile_a {transpose = [1, 0]} : !xetile.tile<32x64xbf16> into vector<64x32xbf16>
  %to = xetile.init_tile %out[0, 0] : memref<64x32xbf16> -> !xetile.tile<64x32xbf16>
  xetile.store_tile %vector_a, %to : vector<64x32xbf16>, !xetile.tile<64x32xbf16>
  return
}

// The table's row: 64x32 transposed to 32x64, padded with 0.
// CHECK: func.func @load_transposed_padded
func.func @load_transposed_padded(%from: memref<60x30xbf16>, %out: memref<32x64xbf16>) {
  %tile_a = xetile.init_tile %from[0, 0] : memref<60x30xbf16> -> !xetile.tile<64x32xbf16>
  %vector_a = xetile.load_tile %tile_a {transpose = [1,0], padding=0} : !xetile.tile<64x32xbf16> into vector<32x64xbf16>
  %to = xetile.init_tile %out[0, 0] : memref<32x64xbf16> -> !xetile.tile<32x64xbf16>
  xetile.store_tile %vector_a, %to : vector<32x64xbf16>, !xetile.tile<32x64xbf16>
  return
}

// CHECK: func.func @load_padded
func.func @load_padded(%from: memref<60x50xbf16>, %out: memref<64x64xbf16>) {
  %tile_a = xetile.init_tile %from[0, 0] : memref<60x50xbf16> -> !xetile.tile<64x64xbf16>
  %vector_a = xetile.load_tile %tile_a {padding = 1.0} : !xetile.tile<64x64xbf16> into vector<64x64xbf16>
  %to = xetile.init_tile %out[0, 0] : memref<64x64xbf16> -> !xetile.tile<64x64xbf16>
  xetile.store_tile %vector_a, %to : vector<64x64xbf16>, !xetile.tile<64x64xbf16>
  return
}

// A prefetch, here also of what lies outside, changes nothing.
// CHECK: func.func @prefetch
func.func @prefetch(%from: memref<8x8xbf16>, %out: memref<8x8xbf16>) {
  %coop_tile = xetile.init_tile %from[0, 0] : memref<8x8xbf16> -> !xetile.tile<8x8xbf16>
  %table = xetile.init_tile %from[4, -8] : memref<8x8xbf16> -> !xetile.tile<16x32xbf16>
  xetile.prefetch_tile %coop_tile : !xetile.tile<8x8xbf16>
  xetile.prefetch_tile %table : !xetile.tile<16x32xbf16>
  %v = xetile.load_tile %coop_tile : !xetile.tile<8x8xbf16> into vector<8x8xbf16>
  %to = xetile.init_tile %out[0, 0] : memref<8x8xbf16> -> !xetile.tile<8x8xbf16>
  xetile.store_tile %v, %to : vector<8x8xbf16>, !xetile.tile<8x8xbf16>
  return
}

// CHECK: func.func @mma
func.func @mma(%a: memref<64x32xbf16>, %b: memref<32x128xbf16>, %c: memref<64x128xf32>) {
  %tile_a = xetile.init_tile %a[0, 0] : memref<64x32xbf16> -> !xetile.tile<64x32xbf16>
  %tile_b = xetile.init_tile %b[0, 0] : memref<32x128xbf16> -> !xetile.tile<32x128xbf16>
  %tile_c = xetile.init_tile %c[0, 0] : memref<64x128xf32> -> !xetile.tile<64x128xf32>
  %vector_a = xetile.load_tile %tile_a : !xetile.tile<64x32xbf16> into vector<64x32xbf16>
  %vector_b = xetile.load_tile %tile_b : !xetile.tile<32x128xbf16> into vector<32x128xbf16>
  %old = xetile.load_tile %tile_c : !xetile.tile<64x128xf32> into vector<64x128xf32>
  %vector_c = xetile.tile_mma %vector_a, %vector_b, %old : vector<64x32xbf16>, vector<32x128xbf16>, vector<64x128xf32> into vector<64x128xf32>
  xetile.store_tile %vector_c, %tile_c : vector<64x128xf32>, !xetile.tile<64x128xf32>
  return
}

// CHECK: func.func @mma_without_c
func.func @mma_without_c(%a: memref<64x32xbf16>, %b: memref<32x128xbf16>, %c: memref<64x128xf32>) {
  %tile_a = xetile.init_tile %a[0, 0] : memref<64x32xbf16> -> !xetile.tile<64x32xbf16>
  %tile_b = xetile.init_tile %b[0, 0] : memref<32x128xbf16> -> !xetile.tile<32x128xbf16>
  %tile_c = xetile.init_tile %c[0, 0] : memref<64x128xf32> -> !xetile.tile<64x128xf32>
  %vector_a = xetile.load_tile %tile_a : !xetile.tile<64x32xbf16> into vector<64x32xbf16>
  %vector_b = xetile.load_tile %tile_b : !xetile.tile<32x128xbf16> into vector<32x128xbf16>
  %vector_c = xetile.tile_mma %vector_a, %vector_b : vector<64x32xbf16>, vector<32x128xbf16> into vector<64x128xf32>
  xetile.store_tile %vector_c, %tile_c : vector<64x128xf32>, !xetile.tile<64x128xf32>
  return
}

// The snippet moves 64x64 tiles, the table's row 32x64 ones.
// CHECK: func.func @update
func.func @update(%from: memref<128x128xbf16>, %offset_x: index, %offset_y: index, %out: memref<64x64xbf16>, %out2: memref<32x64xbf16>) {
  %tile = xetile.init_tile %from[8, 8] : memref<128x128xbf16> -> !xetile.tile<64x64xbf16>
  %tile_updated = xetile.update_tile_offset %tile, %offset_x, %offset_y : !xetile.tile<64x64xbf16>, index, index into !xetile.tile<64x64xbf16>
  %v = xetile.load_tile %tile_updated : !xetile.tile<64x64xbf16> into vector<64x64xbf16>
  %to = xetile.init_tile %out[0, 0] : memref<64x64xbf16> -> !xetile.tile<64x64xbf16>
  xetile.store_tile %v, %to : vector<64x64xbf16>, !xetile.tile<64x64xbf16>
  %tdesc = xetile.init_tile %from[0, 0] : memref<128x128xbf16> -> !xetile.tile<32x64xbf16>
  %tdesc_updated = xetile.update_tile_offset %tdesc, %offset_x, %offset_y : !xetile.tile<32x64xbf16>, index, index -> !xetile.tile<32x64xbf16>
  %w = xetile.load_tile %tdesc_updated : !xetile.tile<32x64xbf16> into vector<32x64xbf16>
  %to2 = xetile.init_tile %out2[0, 0] : memref<32x64xbf16> -> !xetile.tile<32x64xbf16>
  xetile.store_tile %w, %to2 : vector<32x64xbf16>, !xetile.tile<32x64xbf16>
  return
}

// The mapping attributes: wg_map, sg_map and both in an xe_map.
#wg_map_a = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 128]>
#sg_map_a = #xetile.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>
#xe_map_a = #xetile.xe_map<wg = #wg_map_a, sg = #sg_map_a>

// CHECK: func.func @mapped
// CHECK: !xetile.tile<128x128xf16, #xetile.tile_attr<sg_map = <wi_layout = [2, 8], wi_data = [1, 2]>, wg_map = <sg_layout = [2, 2], sg_data = [32, 128]>>>
func.func @mapped(%A: memref<1024x1024xf16>, %m: index, %out: memref<128x128xf16>) {
  %c0 = arith.constant 0 : index
  %a_init_tile = xetile.init_tile %A[%m, %c0] : memref<1024x1024xf16> -> !xetile.tile<128x128xf16, #xe_map_a>
  %v = xetile.load_tile %a_init_tile : !xetile.tile<128x128xf16, #xe_map_a> -> vector<128x128xf16>
  %to = xetile.init_tile %out[0, 0] : memref<128x128xf16> -> !xetile.tile<128x128xf16, #xe_map_a>
  xetile.store_tile %v, %to : vector<128x128xf16>, !xetile.tile<128x128xf16, #xe_map_a>
  return
}

// RUN: xetl-opt %s | filecheck %s
// XeTile RFC (seed 001), "Workgroup Level XeTile extension": each operation with its map.
// Where the document derives the map of an operand, its tile has none here: what
// propagate-wg-maps finds is compared with the document in test_derived_maps.py.
// Corrected: a map is given as `map = #m` (of the source: `source_map = #m`); `float` is f32;
// the types of tile_mma stand in the order a, b, c; a tile of order [0, 1] has a
// column-major base; conv_layout of the table is tile_conv_layout.

#wg_map_tile = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 128]>
#tile_attr = #xetile.tile_attr<wg = #wg_map_tile, order = [0, 1], inner_blocks = array<i64: 32,16>>

// CHECK: func.func @tile
// CHECK: wg_map = <sg_layout = [2, 2], sg_data = [32, 128]>, order = [0, 1], inner_blocks = [32, 16]
func.func @tile(%A: memref<1024x1024xf16, strided<[1, 1024]>>, %m: index, %out: memref<128x128xf16>) {
  %c0 = arith.constant 0 : index
  %wg_tile = xetile.init_tile %A[%m, %c0] : memref<1024x1024xf16, strided<[1, 1024]>> -> !xetile.tile<128x128xf16, #tile_attr>
  %blocked = xetile.load_tile %wg_tile : !xetile.tile<128x128xf16, #tile_attr> -> vector<4x8x32x16xf16>
  %v = xetile.tile_unpack %blocked {inner_blocks = array<i64: 32, 16>} : vector<4x8x32x16xf16> -> vector<128x128xf16>
  %to = xetile.init_tile %out[0, 0] : memref<128x128xf16> -> !xetile.tile<128x128xf16, #wg_map_tile>
  xetile.store_tile %v, %to : vector<128x128xf16>, !xetile.tile<128x128xf16, #wg_map_tile>
  return
}

#wg_map_d = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 64]>

// CHECK: func.func @mma
func.func @mma(%a: memref<256x32xbf16>, %b: memref<32x256xbf16>, %c: memref<256x256xf32>) {
  %tile_a = xetile.init_tile %a[0, 0] : memref<256x32xbf16> -> !xetile.tile<256x32xbf16>
  %tile_b = xetile.init_tile %b[0, 0] : memref<32x256xbf16> -> !xetile.tile<32x256xbf16>
  %tile_c = xetile.init_tile %c[0, 0] : memref<256x256xf32> -> !xetile.tile<256x256xf32>
  %vector_a = xetile.load_tile %tile_a : !xetile.tile<256x32xbf16> -> vector<256x32xbf16>
  %vector_b = xetile.load_tile %tile_b : !xetile.tile<32x256xbf16> -> vector<32x256xbf16>
  %vector_c = xetile.load_tile %tile_c : !xetile.tile<256x256xf32> -> vector<256x256xf32>
  %vector_d = xetile.tile_mma %vector_a, %vector_b, %vector_c {map = #wg_map_d} : vector<256x32xbf16>, vector<32x256xbf16>, vector<256x256xf32> into vector<256x256xf32>
  xetile.store_tile %vector_d, %tile_c : vector<256x256xf32>, !xetile.tile<256x256xf32>
  return
}

#wg_map_sums = #xetile.wg_map<sg_layout = [32, 1], sg_data = [8, 1]>

// CHECK: func.func @reduce
func.func @reduce(%from: memref<256x128xf32>, %out: memref<256x1xf32>) {
  %in = xetile.init_tile %from[0, 0] : memref<256x128xf32> -> !xetile.tile<256x128xf32>
  %vector_b = xetile.load_tile %in : !xetile.tile<256x128xf32> -> vector<256x128xf32>
  %vector_a = xetile.tile_reduce <add> %vector_b [1] {map = #wg_map_sums} : vector<256x128xf32> into vector<256x1xf32>
  %to = xetile.init_tile %out[0, 0] : memref<256x1xf32> -> !xetile.tile<256x1xf32>
  xetile.store_tile %vector_a, %to : vector<256x1xf32>, !xetile.tile<256x1xf32>
  return
}

#wg_map_rows = #xetile.wg_map<sg_layout = [16, 1], sg_data = [16, 256]>

// CHECK: func.func @broadcast
func.func @broadcast(%from: memref<256x1xf32>, %out: memref<256x256xf32>) {
  %in = xetile.init_tile %from[0, 0] : memref<256x1xf32> -> !xetile.tile<256x1xf32>
  %vector_b = xetile.load_tile %in : !xetile.tile<256x1xf32> -> vector<256x1xf32>
  %vector_a = xetile.tile_broadcast %vector_b [1] {map = #wg_map_rows} : vector<256x1xf32> into vector<256x256xf32>
  %to = xetile.init_tile %out[0, 0] : memref<256x256xf32> -> !xetile.tile<256x256xf32>
  xetile.store_tile %vector_a, %to : vector<256x256xf32>, !xetile.tile<256x256xf32>
  return
}

#wg_map_turned = #xetile.wg_map<sg_layout = [4, 8], sg_data = [32, 64]>

// CHECK: func.func @transpose
func.func @transpose(%from: memref<512x128xf32>, %out: memref<128x512xf32>) {
  %in = xetile.init_tile %from[0, 0] : memref<512x128xf32> -> !xetile.tile<512x128xf32>
  %vector_b = xetile.load_tile %in : !xetile.tile<512x128xf32> -> vector<512x128xf32>
  %vector_a = xetile.tile_transpose %vector_b [1, 0] {map = #wg_map_turned} : vector<512x128xf32> into vector<128x512xf32>
  %to = xetile.init_tile %out[0, 0] : memref<128x512xf32> -> !xetile.tile<128x512xf32>
  xetile.store_tile %vector_a, %to : vector<128x512xf32>, !xetile.tile<128x512xf32>
  return
}

#wg_map_b = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 64]>  // used for cooperative load/prefetch
#wg_map_a = #xetile.wg_map<sg_layout = [32, 1], sg_data = [8, 256]> // used as mma's input matrix A

// CHECK: func.func @conv_layout_of_stated_source
// CHECK: xetile.tile_conv_layout %{{.*}} {map = #xetile.wg_map<sg_layout = [32, 1], sg_data = [8, 256]>, source_map = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 64]>}
func.func @conv_layout_of_stated_source(%from: memref<256x256xf32>, %out: memref<256x256xf32>) {
  %in = xetile.init_tile %from[0, 0] : memref<256x256xf32> -> !xetile.tile<256x256xf32, #wg_map_b>
  %vector_b = xetile.load_tile %in : !xetile.tile<256x256xf32, #wg_map_b> -> vector<256x256xf32>
  %vector_a = xetile.tile_conv_layout %vector_b {map = #wg_map_a, source_map = #wg_map_b} : vector<256x256xf32> into vector<256x256xf32>
  %to = xetile.init_tile %out[0, 0] : memref<256x256xf32> -> !xetile.tile<256x256xf32, #wg_map_a>
  xetile.store_tile %vector_a, %to : vector<256x256xf32>, !xetile.tile<256x256xf32, #wg_map_a>
  return
}

// CHECK: func.func @conv_layout
func.func @conv_layout(%from: memref<256x256xf32>, %out: memref<256x256xf32>) {
  %in = xetile.init_tile %from[0, 0] : memref<256x256xf32> -> !xetile.tile<256x256xf32, #wg_map_b>
  %vector_b = xetile.load_tile %in : !xetile.tile<256x256xf32, #wg_map_b> -> vector<256x256xf32>
  %vector_a = xetile.tile_conv_layout %vector_b {map = #wg_map_a} : vector<256x256xf32> into vector<256x256xf32>
  %to = xetile.init_tile %out[0, 0] : memref<256x256xf32> -> !xetile.tile<256x256xf32, #wg_map_a>
  xetile.store_tile %vector_a, %to : vector<256x256xf32>, !xetile.tile<256x256xf32, #wg_map_a>
  return
}

// The table: the same operations on 64x32 and 32x64, here by four subgroups.
#mp_c = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 64]>
#mp_t = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 32]>
#mp_r = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 1]>
#mp_n = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 16]>

// CHECK: func.func @table_mma
func.func @table_mma(%a: memref<64x32xbf16>, %b: memref<32x128xbf16>, %c: memref<64x128xf32>) {
  %tile_a = xetile.init_tile %a[0, 0] : memref<64x32xbf16> -> !xetile.tile<64x32xbf16>
  %tile_b = xetile.init_tile %b[0, 0] : memref<32x128xbf16> -> !xetile.tile<32x128xbf16>
  %tile_c = xetile.init_tile %c[0, 0] : memref<64x128xf32> -> !xetile.tile<64x128xf32>
  %vector_a = xetile.load_tile %tile_a : !xetile.tile<64x32xbf16> -> vector<64x32xbf16>
  %vector_b = xetile.load_tile %tile_b : !xetile.tile<32x128xbf16> -> vector<32x128xbf16>
  %old = xetile.load_tile %tile_c : !xetile.tile<64x128xf32> -> vector<64x128xf32>
  %vector_c = xetile.tile_mma %vector_a, %vector_b, %old {map = #mp_c} : vector<64x32xbf16>, vector<32x128xbf16>, vector<64x128xf32> into vector<64x128xf32>
  xetile.store_tile %vector_c, %tile_c : vector<64x128xf32>, !xetile.tile<64x128xf32>
  return
}

// CHECK: func.func @table_values
func.func @table_values(%from: memref<64x32xf32>, %turned: memref<32x64xf32>, %sums: memref<64x1xf32>, %row: memref<1x32xf32>, %rows: memref<64x32xf32>) {
  %in = xetile.init_tile %from[0, 0] : memref<64x32xf32> -> !xetile.tile<64x32xf32>
  %vector_b = xetile.load_tile %in : !xetile.tile<64x32xf32> -> vector<64x32xf32>
  %0 = xetile.tile_transpose %vector_b [1, 0] {map = #mp_t} : vector<64x32xf32> into vector<32x64xf32>
  %1 = xetile.tile_reduce <add> %vector_b [1] {map = #mp_r} : vector<64x32xf32> into vector<64x1xf32>
  %t0 = xetile.init_tile %turned[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32>
  %t1 = xetile.init_tile %sums[0, 0] : memref<64x1xf32> -> !xetile.tile<64x1xf32>
  xetile.store_tile %0, %t0 : vector<32x64xf32>, !xetile.tile<32x64xf32>
  xetile.store_tile %1, %t1 : vector<64x1xf32>, !xetile.tile<64x1xf32>
  %one = xetile.init_tile %row[0, 0] : memref<1x32xf32> -> !xetile.tile<1x32xf32>
  %r = xetile.load_tile %one : !xetile.tile<1x32xf32> -> vector<1x32xf32>
  %2 = xetile.tile_broadcast %r [0] {map = #mp_n} : vector<1x32xf32> into vector<64x32xf32>
  %t2 = xetile.init_tile %rows[0, 0] : memref<64x32xf32> -> !xetile.tile<64x32xf32>
  xetile.store_tile %2, %t2 : vector<64x32xf32>, !xetile.tile<64x32xf32>
  return
}

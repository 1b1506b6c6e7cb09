// RUN: xetl-opt %s | filecheck %s
// The review page on layouts (seed 002): its examples, as `#xetile.layout`.
// Corrected: the tile of the first example is 128x128, as its text and a reviewer say, not
// 16x128; the types of dpas stand in the order of its operands. XeGPU's names are those of
// XeTile: create_nd_tdesc is init_tile, dpas is tile_mma, sg_order is order.

#sg_map_a = #xetile.layout<sg_layout = [2, 2], sg_data = [32, 128], lane_layout = [1, 16], lane_data = [1, 1], order = [1, 0]>

// Rows 0 to 31 and 64 to 95 are of subgroups 0 and 1, the others of 2 and 3.
// CHECK: func.func @rounds
// CHECK: wg_map = #xetile.layout<sg_layout = [2, 2], sg_data = [32, 128], lane_layout = [1, 16], lane_data = [1, 1]>
func.func @rounds(%A: memref<1024x1024xf16>, %m: index, %out: memref<128x128xf16>) {
  %c0 = arith.constant 0 : index
  %wg_tdesc = xetile.init_tile %A[%m, %c0] : memref<1024x1024xf16> -> !xetile.tile<128x128xf16, #sg_map_a>
  %v = xetile.load_tile %wg_tdesc : !xetile.tile<128x128xf16, #sg_map_a> -> vector<128x128xf16>
  %to = xetile.init_tile %out[0, 0] : memref<128x128xf16> -> !xetile.tile<128x128xf16, #sg_map_a>
  xetile.store_tile %v, %to : vector<128x128xf16>, !xetile.tile<128x128xf16, #sg_map_a>
  return
}

#sg_map_d = #xetile.layout<sg_layout = [8, 4], sg_data = [32, 64], lane_layout = [1, 16], lane_data = [1, 1], order = [1, 0]>

// The operands' maps are derived (test_derived_maps.py).
// CHECK: func.func @dpas
func.func @dpas(%a: memref<256x32xbf16>, %b: memref<32x256xbf16>, %c: memref<256x256xf32>) {
  %tile_a = xetile.init_tile %a[0, 0] : memref<256x32xbf16> -> !xetile.tile<256x32xbf16>
  %tile_b = xetile.init_tile %b[0, 0] : memref<32x256xbf16> -> !xetile.tile<32x256xbf16>
  %tile_c = xetile.init_tile %c[0, 0] : memref<256x256xf32> -> !xetile.tile<256x256xf32>
  %vector_a = xetile.load_tile %tile_a : !xetile.tile<256x32xbf16> -> vector<256x32xbf16>
  %vector_b = xetile.load_tile %tile_b : !xetile.tile<32x256xbf16> -> vector<32x256xbf16>
  %vector_c = xetile.load_tile %tile_c : !xetile.tile<256x256xf32> -> vector<256x256xf32>
  %vector_d = xetile.tile_mma %vector_a, %vector_b, %vector_c {map = #sg_map_d} : vector<256x32xbf16>, vector<32x256xbf16>, vector<256x256xf32> into vector<256x256xf32>
  xetile.store_tile %vector_d, %tile_c : vector<256x256xf32>, !xetile.tile<256x256xf32>
  return
}

// A reviewer: "sg_data_a = [32, 16] and sg_data_b = [16, 64] must still be a valid choice".
#fine_a = #xetile.layout<sg_layout = [8, 4], sg_data = [32, 16]>
#fine_b = #xetile.layout<sg_layout = [8, 4], sg_data = [16, 64]>

// CHECK: func.func @dpas_of_finer_operands
func.func @dpas_of_finer_operands(%a: memref<256x32xbf16>, %b: memref<32x256xbf16>, %c: memref<256x256xf32>) {
  %tile_a = xetile.init_tile %a[0, 0] : memref<256x32xbf16> -> !xetile.tile<256x32xbf16, #fine_a>
  %tile_b = xetile.init_tile %b[0, 0] : memref<32x256xbf16> -> !xetile.tile<32x256xbf16, #fine_b>
  %tile_c = xetile.init_tile %c[0, 0] : memref<256x256xf32> -> !xetile.tile<256x256xf32, #sg_map_d>
  %vector_a = xetile.load_tile %tile_a : !xetile.tile<256x32xbf16, #fine_a> -> vector<256x32xbf16>
  %vector_b = xetile.load_tile %tile_b : !xetile.tile<32x256xbf16, #fine_b> -> vector<32x256xbf16>
  %vector_d = xetile.tile_mma %vector_a, %vector_b {map = #sg_map_d} : vector<256x32xbf16>, vector<32x256xbf16> into vector<256x256xf32>
  xetile.store_tile %vector_d, %tile_c : vector<256x256xf32>, !xetile.tile<256x256xf32, #sg_map_d>
  return
}

// "convert_layout op, which accepts identical map": it states a layout and moves nothing.
// CHECK: func.func @convert_to_itself
func.func @convert_to_itself(%from: memref<256x256xf32>, %out: memref<256x256xf32>) {
  %in = xetile.init_tile %from[0, 0] : memref<256x256xf32> -> !xetile.tile<256x256xf32>
  %vector_b = xetile.load_tile %in : !xetile.tile<256x256xf32> -> vector<256x256xf32>
  %vector_a = xetile.tile_conv_layout %vector_b {map = #sg_map_d, source_map = #sg_map_d} : vector<256x256xf32> into vector<256x256xf32>
  %to = xetile.init_tile %out[0, 0] : memref<256x256xf32> -> !xetile.tile<256x256xf32>
  xetile.store_tile %vector_a, %to : vector<256x256xf32>, !xetile.tile<256x256xf32>
  return
}

// A reviewer's question: a 64x64 operand by 2 x 2 subgroups, of 32x64 each.
#shared = #xetile.layout<sg_layout = [2, 2], sg_data = [32, 64], lane_layout = [1, 16], lane_data = [1, 1], order = [1, 0]>

// CHECK: func.func @shared_columns
func.func @shared_columns(%from: memref<64x64xf16>, %out: memref<64x64xf16>) {
  %in = xetile.init_tile %from[0, 0] : memref<64x64xf16> -> !xetile.tile<64x64xf16, #shared>
  %v = xetile.load_tile %in : !xetile.tile<64x64xf16, #shared> -> vector<64x64xf16>
  %to = xetile.init_tile %out[0, 0] : memref<64x64xf16> -> !xetile.tile<64x64xf16, #shared>
  xetile.store_tile %v, %to : vector<64x64xf16>, !xetile.tile<64x64xf16, #shared>
  return
}

// A reviewer's nested walk, of a row: subgroup 0 has columns 0 to 31 and 64 to 95, its lane 0
// has 0, 16, 64 and 80.
#nested = #xetile.layout<sg_layout = [1, 2], sg_data = [1, 32], lane_layout = [1, 16], lane_data = [1, 1], order = [1, 0]>

// CHECK: func.func @nested_walk
func.func @nested_walk(%from: memref<1x128xf16>, %out: memref<1x128xf16>) {
  %in = xetile.init_tile %from[0, 0] : memref<1x128xf16> -> !xetile.tile<1x128xf16, #nested>
  %v = xetile.load_tile %in : !xetile.tile<1x128xf16, #nested> -> vector<1x128xf16>
  %to = xetile.init_tile %out[0, 0] : memref<1x128xf16> -> !xetile.tile<1x128xf16, #nested>
  xetile.store_tile %v, %to : vector<1x128xf16>, !xetile.tile<1x128xf16, #nested>
  return
}

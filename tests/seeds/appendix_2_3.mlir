// RUN: xetl-opt %s | filecheck %s
// XeTile RFC (seed 001), appendix 2.3: the transpose of 2.2 under two mappings of what is
// loaded. The tests also run 2.2 with the second one.
// Corrected: the permutation is written; maps are those of source and result.

#mp_b     = #xetile.wg_map<sg_layout=[8,4], sg_data=[32,64]>
#mp_bt    = #xetile.wg_map<sg_layout=[4,8], sg_data=[64,32]>
#mp_bt_optimized = #xetile.wg_map<sg_layout=[32,1], sg_data=[64,32]>

// Subgroup 1 needs columns 64 to 127 of the result, and loads rows 0 to 63.
// CHECK: func.func @across_subgroups
func.func @across_subgroups(%bt: memref<256x32xf16>, %b: memref<32x256xf16>) {
  %2 = xetile.init_tile %bt[0, 0] : memref<256x32xf16> -> !xetile.tile<256x32xf16, #mp_bt>
  %10 = xetile.load_tile %2 : !xetile.tile<256x32xf16, #mp_bt> -> vector<256x32xf16>
  %5 = xetile.tile_transpose %10 [1, 0] {source_map = #mp_bt, map = #mp_b} : vector<256x32xf16> -> vector<32x256xf16>
  %to = xetile.init_tile %b[0, 0] : memref<32x256xf16> -> !xetile.tile<32x256xf16, #mp_b>
  xetile.store_tile %5, %to : vector<32x256xf16>, !xetile.tile<32x256xf16, #mp_b>
  return
}

// Each subgroup loads what it needs: the transpose can be done in registers.
// CHECK: func.func @in_registers
func.func @in_registers(%bt: memref<256x32xf16>, %b: memref<32x256xf16>) {
  %2 = xetile.init_tile %bt[0, 0] : memref<256x32xf16> -> !xetile.tile<256x32xf16, #mp_bt_optimized>
  %10 = xetile.load_tile %2 : !xetile.tile<256x32xf16, #mp_bt_optimized> -> vector<256x32xf16>
  %5 = xetile.tile_transpose %10 [1, 0] {source_map = #mp_bt_optimized, map = #mp_b} : vector<256x32xf16> -> vector<32x256xf16>
  %to = xetile.init_tile %b[0, 0] : memref<32x256xf16> -> !xetile.tile<32x256xf16, #mp_b>
  xetile.store_tile %5, %to : vector<32x256xf16>, !xetile.tile<32x256xf16, #mp_b>
  return
}

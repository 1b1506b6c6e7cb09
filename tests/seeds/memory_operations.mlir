// RUN: xetl-opt %s | filecheck %s
// XeTile RFC (seed 001), "XeTile Dialect": what touches memory, beyond the forms that the
// first RFC has as well (first_rfc.mlir).
// Corrected: an affine_map layout is written `affine_map<(d0, d1) -> (d1, d0)>`; store_tile
// has no result and takes the value; the atomic's kind is of arith; the table's load_tile
// of a 64x32 tile gives a 64x32 vector; `xb16` is bf16.

#tile_attr = #xetile.tile_attr<order = [0, 1]>

// "init_tile with an order" and "load_tile loads a tile according to the tile's order".
// CHECK: func.func @load_column_major
// CHECK: !xetile.tile<64x32xbf16, #xetile.tile_attr<order = [0, 1]>>
func.func @load_column_major(%base_memref: memref<128x128xbf16, affine_map<(d0, d1) -> (d1, d0)>>, %o0: index, %o1: index, %out: memref<64x32xbf16>) {
  %tile0 = xetile.init_tile %base_memref, [%o0, %o1] : memref<128x128xbf16, affine_map<(d0, d1) -> (d1, d0)>> into !xetile.tile<64x32xbf16, #tile_attr>
  %vector_a = xetile.load_tile %tile0 : !xetile.tile<64x32xbf16, #tile_attr> into vector<64x32xbf16>
  %to = xetile.init_tile %out[0, 0] : memref<64x32xbf16> -> !xetile.tile<64x32xbf16>
  xetile.store_tile %vector_a, %to : vector<64x32xbf16>, !xetile.tile<64x32xbf16>
  return
}

// "store_tile stores a tile according to the tile's order".
// CHECK: func.func @store_column_major
func.func @store_column_major(%from: memref<64x32xbf16>, %base_memref: memref<128x128xbf16, strided<[1, 128]>>, %o0: index, %o1: index) {
  %in = xetile.init_tile %from[0, 0] : memref<64x32xbf16> -> !xetile.tile<64x32xbf16>
  %vector_a = xetile.load_tile %in : !xetile.tile<64x32xbf16> into vector<64x32xbf16>
  %tile_a = xetile.init_tile %base_memref, [%o0, %o1] : memref<128x128xbf16, strided<[1, 128]>> into !xetile.tile<64x32xbf16, #tile_attr>
  xetile.store_tile %vector_a, %tile_a : vector<64x32xbf16>, !xetile.tile<64x32xbf16, #tile_attr>
  return
}

// CHECK: func.func @table_load
func.func @table_load(%from: memref<60x30xbf16>, %out: memref<64x32xbf16>) {
  %tile_a = xetile.init_tile %from[0, 0] : memref<60x30xbf16> -> !xetile.tile<64x32xbf16>
  %vector_a = xetile.load_tile %tile_a {padding = 0} : !xetile.tile<64x32xbf16> into vector<64x32xbf16>
  %to = xetile.init_tile %out[0, 0] : memref<64x32xbf16> -> !xetile.tile<64x32xbf16>
  xetile.store_tile %vector_a, %to : vector<64x32xbf16>, !xetile.tile<64x32xbf16>
  return
}

// CHECK: func.func @prefetch
// CHECK: xetile.prefetch_tile %{{.*}} locality<3> : !xetile.tile<8x32xbf16>
func.func @prefetch(%from: memref<8x32xbf16>, %out: memref<8x32xbf16>) {
  %coop_tile = xetile.init_tile %from[0, 0] : memref<8x32xbf16> -> !xetile.tile<8x32xbf16>
  xetile.prefetch_tile %coop_tile locality<3> : !xetile.tile<8x32xbf16>
  xetile.prefetch_tile %coop_tile locality<0> : !xetile.tile<8x32xbf16>
  %v = xetile.load_tile %coop_tile : !xetile.tile<8x32xbf16> -> vector<8x32xbf16>
  %to = xetile.init_tile %out[0, 0] : memref<8x32xbf16> -> !xetile.tile<8x32xbf16>
  xetile.store_tile %v, %to : vector<8x32xbf16>, !xetile.tile<8x32xbf16>
  return
}

// Both spellings of the document: `atomic_rmw <addf>`, and `atomic_rmw_tile <add>` of the table.
// CHECK: func.func @atomic
// CHECK-COUNT-2: xetile.atomic_rmw_tile <add>
func.func @atomic(%base: memref<8x16xbf16>, %by: memref<8x16xbf16>, %out: memref<8x16xbf16>, %out2: memref<8x16xbf16>) {
  %tile = xetile.init_tile %base[0, 0] : memref<8x16xbf16> -> !xetile.tile<8x16xbf16>
  %in = xetile.init_tile %by[0, 0] : memref<8x16xbf16> -> !xetile.tile<8x16xbf16>
  %value = xetile.load_tile %in : !xetile.tile<8x16xbf16> -> vector<8x16xbf16>
  %ret_value = xetile.atomic_rmw <addf> %value, %tile : vector<8x16xbf16>, !xetile.tile<8x16xbf16> to vector<8x16xbf16>
  %vector_a = xetile.atomic_rmw_tile <add> %value, %tile : vector<8x16xbf16>, !xetile.tile<8x16xbf16> to vector<8x16xbf16>
  %to = xetile.init_tile %out[0, 0] : memref<8x16xbf16> -> !xetile.tile<8x16xbf16>
  %to2 = xetile.init_tile %out2[0, 0] : memref<8x16xbf16> -> !xetile.tile<8x16xbf16>
  xetile.store_tile %ret_value, %to : vector<8x16xbf16>, !xetile.tile<8x16xbf16>
  xetile.store_tile %vector_a, %to2 : vector<8x16xbf16>, !xetile.tile<8x16xbf16>
  return
}

// RUN: xetl-opt %s | filecheck %s
// XeTile RFC (seed 001), "support for load_gather and store_scatter".
// Corrected: `%tile_0` is `%tile0`; `#scatter` is `#xetile.tile_attr<scattered = true>` (the
// parser knows the short name, too).

// CHECK: func.func @gather
// CHECK: xetile.load_gather %{{.*}} {padding = 1.000000e+00 : f64} : !xetile.tile<1x256xbf16, #xetile.tile_attr<scattered = true>>, vector<1x256xi1> -> vector<1x256xbf16>
func.func @gather(%base_addr: i64, %out: memref<1x256xbf16>, %limit: index) {
  %n = vector.step : vector<256xindex>
  %row = vector.shape_cast %n : vector<256xindex> to vector<1x256xindex>
  %three = arith.constant dense<3> : vector<1x256xindex>
  %tile_offsets = arith.muli %row, %three : vector<1x256xindex>
  %bound = vector.broadcast %limit : index to vector<1x256xindex>
  %mask = arith.cmpi slt, %row, %bound : vector<1x256xindex>
  %tile0 = xetile.init_tile %base_addr, %tile_offsets : i64, vector<1x256xindex> into !xetile.tile<1x256xbf16, #scatter>
  %vector_a = xetile.load_gather %tile0, %mask, {padding = 1.0} : !xetile.tile<1x256xbf16, #scatter> into vector<1x256xbf16>
  %to = xetile.init_tile %out[0, 0] : memref<1x256xbf16> -> !xetile.tile<1x256xbf16>
  xetile.store_tile %vector_a, %to : vector<1x256xbf16>, !xetile.tile<1x256xbf16>
  return
}

// CHECK: func.func @scatter
// CHECK: xetile.store_scatter
func.func @scatter(%from: memref<1x256xbf16>, %base_addr: i64, %limit: index) {
  %n = vector.step : vector<256xindex>
  %row = vector.shape_cast %n : vector<256xindex> to vector<1x256xindex>
  %three = arith.constant dense<3> : vector<1x256xindex>
  %tile_offsets = arith.muli %row, %three : vector<1x256xindex>
  %bound = vector.broadcast %limit : index to vector<1x256xindex>
  %mask = arith.cmpi slt, %row, %bound : vector<1x256xindex>
  %in = xetile.init_tile %from[0, 0] : memref<1x256xbf16> -> !xetile.tile<1x256xbf16>
  %vector_a = xetile.load_tile %in : !xetile.tile<1x256xbf16> -> vector<1x256xbf16>
  %tile0 = xetile.init_tile %base_addr, %tile_offsets : i64, vector<1x256xindex> into !xetile.tile<1x256xbf16, #scatter>
  xetile.store_scatter %vector_a, %mask, %tile0 : vector<1x256xbf16> into !xetile.tile<1x256xbf16, #scatter>
  return
}

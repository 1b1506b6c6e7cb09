// RUN: xetl-opt %s | filecheck %s
// Forms that only the RFC writes: `into` for the arrow, offsets as operands, an
// attribute dictionary after a comma, types of masks left out.

#m = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 128]>
#t = #xetile.tile_attr<wg = #m, order = [0, 1], inner_blocks = array<i64: 32, 16>>

// CHECK-LABEL: @blocks
func.func @blocks(%m: memref<1024x1024xf16, strided<[1, 1024]>>, %b: memref<128x128xbf16>, %o: index) {
  // CHECK: !xetile.tile<128x128xf16, #xetile.tile_attr<wg_map = <sg_layout = [2, 2], sg_data = [32, 128]>, order = [0, 1], inner_blocks = [32, 16]>>
  %0 = xetile.init_tile %m[%o, 0] : memref<1024x1024xf16, strided<[1, 1024]>> -> !xetile.tile<128x128xf16, #t>
  // CHECK: xetile.init_tile %b[%o, %o] : memref<128x128xbf16> -> !xetile.tile<64x64xbf16>
  %1 = xetile.init_tile %b, [%o, %o] : memref<128x128xbf16> into !xetile.tile<64x64xbf16>
  // CHECK: xetile.load_tile %{{.*}} {padding = 1.000000e+00 : f64} : !xetile.tile<64x64xbf16> -> vector<64x64xbf16>
  %2 = xetile.load_tile %1 {padding = 1.0} : !xetile.tile<64x64xbf16> into vector<64x64xbf16>
  // CHECK: xetile.update_tile_offset %{{.*}}, [%o, %o] : !xetile.tile<64x64xbf16>
  %3 = xetile.update_tile_offset %1, %o, %o : !xetile.tile<64x64xbf16>, index, index into !xetile.tile<64x64xbf16>
  return
}

// CHECK-LABEL: @values
func.func @values(%v: vector<64x32xf32>) {
  // CHECK: xetile.tile_transpose %v, [1, 0] : vector<64x32xf32> -> vector<32x64xf32>
  %0 = xetile.tile_transpose [1, 0] %v : vector<64x32xf32> into vector<32x64xf32>
  // CHECK: xetile.tile_reduce <add>, %v [1] : vector<64x32xf32> -> vector<64x1xf32>
  %1 = xetile.tile_reduce <add> %v [1] : vector<64x32xf32> into vector<64x1xf32>
  return
}

// CHECK-LABEL: @scattered
func.func @scattered(%p: i64, %i: vector<1x256xindex>, %k: vector<1x256xi1>) {
  // CHECK: xetile.init_tile %p, %i : i64, vector<1x256xindex> -> !xetile.tile<1x256xbf16, #xetile.tile_attr<scattered = true>>
  %t = xetile.init_tile %p, %i : i64, vector<1x256xindex> into !xetile.tile<1x256xbf16, #scatter>
  // CHECK: xetile.load_gather %t, %k {padding = 1.000000e+00 : f64} : !xetile.tile<1x256xbf16, #xetile.tile_attr<scattered = true>>, vector<1x256xi1> -> vector<1x256xbf16>
  %v = xetile.load_gather %t, %k, {padding = 1.0} : !xetile.tile<1x256xbf16, #scatter> into vector<1x256xbf16>
  // CHECK: xetile.store_scatter %v, %k, %t : vector<1x256xbf16>, vector<1x256xi1>, !xetile.tile
  xetile.store_scatter %v, %k, %t : vector<1x256xbf16> into !xetile.tile<1x256xbf16, #scatter>
  return
}

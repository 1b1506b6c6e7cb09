// What the RFC writes: `into`, sizes by commas, braces after a comma, map names of the first document.
// launch: k (1) (1)
// A: 16x32 f32 integers
// B: 32x16 f32 zeros
// G: 64 f32 integers
// H: 64 f32 zeros
// expect B = A.T + 1
// expect H = np.where(np.arange(64) < 40, G, 2.0)
#wg = #xetile.wg_map<sg_layout = [1, 1], sg_data = [16, 32]>
func.func @k(%A: memref<16x32xf32>, %B: memref<32x16xf32>, %G: memref<64xf32>, %H: memref<64xf32>) attributes {xetile.level = "subgroup"} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %m8 = arith.constant -8 : index
  %t = xetile.init_tile %A[%c8, %c0] : memref<16x32xf32> -> !xetile.tile<16x32xf32, #xetile.tile_attr<>>
  %u = xetile.update_tile_offset %t, %m8, %c0 : !xetile.tile<16x32xf32>, index, index -> !xetile.tile<16x32xf32>
  xetile.prefetch_tile %u locality<3> : !xetile.tile<16x32xf32>
  %v = xetile.load_tile %u {padding = 0} : !xetile.tile<16x32xf32> into vector<16x32xf32>
  %w = xetile.tile_transpose %v [1, 0] : vector<16x32xf32> -> vector<32x16xf32>
  %one = arith.constant dense<1.0> : vector<32x16xf32>
  %x = arith.addf %w, %one : vector<32x16xf32>
  %o = xetile.init_tile %B[0, 0] : memref<32x16xf32> -> !xetile.tile<32x16xf32>
  xetile.store_tile %x, %o : vector<32x16xf32>, !xetile.tile<32x16xf32>
  %n = vector.step : vector<64xindex>
  %c40 = arith.constant 40 : index
  %c64 = arith.constant 64 : index
  %mask = vector.create_mask %c40 : vector<64xi1>
  %all = vector.create_mask %c64 : vector<64xi1>
  %g = xetile.init_tile %G, %n : memref<64xf32>, vector<64xindex> into !xetile.tile<64xf32, #scatter>
  %h = xetile.init_tile %H, %n : memref<64xf32>, vector<64xindex> -> !xetile.tile<64xf32, #scatter>
  %y = xetile.load_gather %g, %mask, {padding = 2.0} : !xetile.tile<64xf32, #scatter>, vector<64xi1> into vector<64xf32>
  xetile.store_scatter %y, %all, %h : vector<64xf32>, vector<64xi1>, !xetile.tile<64xf32, #scatter>
  return
}

// error: X0701 5:40 3 maps for source_map, map
#m = #wg_map<sg_layout = [1, 1], sg_data = [16, 16]>
func.func @f() {
  %v = arith.constant dense<0.0> : vector<16x16xf32>
  %w = xetile.tile_transpose %v [1, 0] {#m, #m, #m} : vector<16x16xf32> -> vector<16x16xf32>
  return
}

// error: X0702 3:8 the mask is vector<16x8xi1>, expected vector<16x16xi1>
func.func @f(%t: !xetile.tile<16x16xf16, #xetile.tile_attr<scattered = true>>, %m: vector<16x8xi1>) {
  %v = xetile.load %t, %m : !xetile.tile<16x16xf16, #xetile.tile_attr<scattered = true>>, vector<16x8xi1> -> vector<16x16xf16>
  return
}

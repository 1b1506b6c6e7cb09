// error: X0702 3:8 a scattered tile is loaded by load_gather
func.func @f(%t: !xetile.tile<16x16xf16, #xetile.tile_attr<scattered = true>>) {
  %v = xetile.load_tile %t : !xetile.tile<16x16xf16, #xetile.tile_attr<scattered = true>> -> vector<16x16xf16>
  return
}

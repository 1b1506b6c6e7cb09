// error: X0702 3:8 but the tile holds vector<16x16xf16>
func.func @f(%t: !xetile.tile<16x16xf16>) {
  %v = xetile.load_tile %t : !xetile.tile<16x16xf16> -> vector<16x32xf16>
  return
}

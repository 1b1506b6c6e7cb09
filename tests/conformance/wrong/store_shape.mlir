// error: X0702 3:3 but the tile holds vector<16x16xf16>
func.func @f(%t: !xetile.tile<16x16xf16>, %v: vector<8x16xf16>) {
  xetile.store_tile %v, %t : vector<8x16xf16>, !xetile.tile<16x16xf16>
  return
}

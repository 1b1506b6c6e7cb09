// error: X0702 3:8 both sides need one element type
func.func @f(%a: vector<8x16xf16>, %b: vector<16x16xbf16>) {
  %0 = xetile.tile_mma %a, %b : vector<8x16xf16>, vector<16x16xbf16> -> vector<8x16xf32>
  return
}

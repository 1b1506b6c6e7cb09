// error: X0702 3:8 the product has shape
func.func @f(%a: vector<8x16xf16>, %b: vector<16x16xf16>) {
  %0 = xetile.tile_mma %a, %b : vector<8x16xf16>, vector<16x16xf16> -> vector<16x8xf32>
  return
}

// error: X0702 3:8 the addend is vector<8x16xf16>, but the result is vector<8x16xf32>
func.func @f(%a: vector<8x16xf16>, %b: vector<16x16xf16>, %c: vector<8x16xf16>) {
  %0 = xetile.tile_mma %a, %b, %c : vector<8x16xf16>, vector<16x16xf16>, vector<8x16xf16> -> vector<8x16xf32>
  return
}

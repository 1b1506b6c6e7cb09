// error: X0702 7:8 has 16 columns, the right side 32 rows
func.func @f(%a: vector<8x16xf16>, %b: vector<32x16xf16>) {


  // K of both sides must agree.
  %c = arith.constant 0 : index
  %0 = xetile.tile_mma %a, %b : vector<8x16xf16>, vector<32x16xf16> -> vector<8x16xf32>
  return
}

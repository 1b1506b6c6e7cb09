// error: X0702 3:8 cannot be accumulated
func.func @f(%a: vector<8x16xi8>, %b: vector<16x16xi8>) {
  %0 = xetile.tile_mma %a, %b : vector<8x16xi8>, vector<16x16xi8> -> vector<8x16xf32>
  return
}

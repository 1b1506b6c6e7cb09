// error: X0702 3:8 must have size 1 in dimension 0
func.func @f(%a: vector<2x16xf32>) {
  %0 = xetile.broadcast %a [0] : vector<2x16xf32> -> vector<8x16xf32>
  return
}

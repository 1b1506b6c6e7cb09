// error: X0702 3:8 must stay 16
func.func @f(%a: vector<1x16xf32>) {
  %0 = xetile.broadcast %a [0] : vector<1x16xf32> -> vector<8x32xf32>
  return
}

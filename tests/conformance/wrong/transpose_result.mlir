// error: X0702 3:8 transposes to vector<16x8xf32>
func.func @f(%a: vector<8x16xf32>) {
  %0 = xetile.transpose %a, [1, 0] : vector<8x16xf32> -> vector<8x16xf32>
  return
}

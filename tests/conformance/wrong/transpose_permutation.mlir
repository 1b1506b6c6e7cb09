// error: X0702 3:8 the permutation must be [1, 0]
func.func @f(%a: vector<8x16xf32>) {
  %0 = xetile.transpose %a, [0, 1] : vector<8x16xf32> -> vector<8x16xf32>
  return
}

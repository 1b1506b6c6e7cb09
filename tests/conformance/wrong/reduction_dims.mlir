// error: X0702 3:8 dimensions must be different and below 2
func.func @f(%a: vector<8x16xf32>) {
  %0 = xetile.reduction <add>, %a [2] : vector<8x16xf32> -> vector<8x16xf32>
  return
}

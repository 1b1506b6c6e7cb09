// error: X0702 3:8 keeps size 1
func.func @f(%a: vector<8x16xf32>) {
  %0 = xetile.reduction <add>, %a [0] : vector<8x16xf32> -> vector<2x16xf32>
  return
}

// error: X0701 3:25 `plus` is no kind of reduction
func.func @f(%a: vector<8x16xf32>) {
  %0 = xetile.reduction <plus>, %a [0] : vector<8x16xf32> -> vector<1x16xf32>
  return
}

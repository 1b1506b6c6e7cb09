// error: X0702 3:8 `maxsi` does not reduce elements of type f32
func.func @f(%a: vector<8x16xf32>) {
  %0 = xetile.reduction <maxsi>, %a [0] : vector<8x16xf32> -> vector<1x16xf32>
  return
}

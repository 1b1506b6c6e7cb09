// error: X0702 3:8 reduction_size 5 does not divide
func.func @f(%a: vector<8x16xf32>) {
  %0 = xetile.reduction <add>, %a [1] {reduction_size = 5 : i64} : vector<8x16xf32> -> vector<8x3xf32>
  return
}

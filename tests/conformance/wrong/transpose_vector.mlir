// error: X0702 3:8
func.func @f(%a: vector<8x16xf32>) {
  %0 = vector.transpose %a, [1, 0] : vector<8x16xf32> to vector<8x16xf32>
  return
}

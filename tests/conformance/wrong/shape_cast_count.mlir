// error: X0702 3:8
func.func @f(%a: vector<4x8xf32>) {
  %0 = vector.shape_cast %a : vector<4x8xf32> to vector<31xf32>
  return
}

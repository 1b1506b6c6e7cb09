// error: X0702 3:8 gives vector<8xf32>
func.func @f(%a: vector<8x16xf32>, %b: vector<16xf32>) {
  %0 = vector.multi_reduction <add>, %a, %b [1] : vector<8x16xf32> to vector<16xf32>
  return
}

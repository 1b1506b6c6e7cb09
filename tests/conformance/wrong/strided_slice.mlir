// error: X0702 3:8 leave
func.func @f(%a: vector<8x16xf32>) {
  %0 = vector.extract_strided_slice %a {offsets = [4, 0], sizes = [8, 16], strides = [1, 1]} : vector<8x16xf32> to vector<8x16xf32>
  return
}

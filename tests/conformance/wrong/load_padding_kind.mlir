// error: X0702 3:8 does not fit elements of type i32
func.func @f(%t: !xetile.tile<16x16xi32>) {
  %v = xetile.load_tile %t {padding = 0.5 : f32} : !xetile.tile<16x16xi32> -> vector<16x16xi32>
  return
}

// error: X0702 3:8
func.func @f(%t: f32) {
  %0 = "xetile.load_tile"(%t) : (f32) -> vector<8x8xf32>
  return
}

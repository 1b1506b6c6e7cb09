// error: X0702 3:8
func.func @f(%t: f32) {
  %0 = "arith.addf"(%t) : (f32) -> f32
  return
}

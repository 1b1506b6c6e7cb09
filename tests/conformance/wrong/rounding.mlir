// error: X0701 3:24 not toward_zero
func.func @f(%a: f32) {
  %0 = arith.truncf %a toward_zero : f32 to f16
  return
}

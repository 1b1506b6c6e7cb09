// error: X0702 3:8 must be wider
func.func @f(%a: f32) {
  %0 = arith.extf %a : f32 to f16
  return
}

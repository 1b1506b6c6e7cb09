// error: X0701 4:
func.func @f(%a: f32) {
  %0 = arith.addf %a, %a : f32
  %1 = arith.addf %0, %0 : f64
  return
}

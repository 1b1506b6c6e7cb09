// error: X0701 4:8 already defined
func.func @f(%a: f32) {
  %0 = arith.addf %a, %a : f32
  %0 = arith.addf %a, %a : f32
  return
}

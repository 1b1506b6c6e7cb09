// error: X0702 3:8 used before it is defined
func.func @f(%a: f32) {
  %0 = arith.addf %1, %a : f32
  %1 = arith.addf %a, %a : f32
  return
}

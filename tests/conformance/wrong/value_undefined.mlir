// error: X0701 3:14 value %b is used but not defined
func.func @f(%a: f32) {
  arith.addf %b, %a : f32
  return
}

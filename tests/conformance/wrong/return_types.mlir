// error: X0702 3:3
func.func @f(%a: f32) -> i32 {
  return %a : f32
}

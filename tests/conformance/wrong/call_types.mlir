// error: X0702 4:3
func.func @f(%a: f32) {
  %c = arith.constant 1 : i32
  func.call @g(%c) : (i32) -> ()
  return
}
func.func @g(%a: f32) {
  return
}

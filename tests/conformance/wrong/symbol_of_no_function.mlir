// error: X0702 3:3 no function `nobody`
func.func @f(%a: f32) {
  func.call @nobody(%a) : (f32) -> ()
  return
}

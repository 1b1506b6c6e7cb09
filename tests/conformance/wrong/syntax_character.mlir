// error: X0701 3:8 Unexpected character
func.func @f() {
  %0 = ~arith.constant 1 : index
  return
}

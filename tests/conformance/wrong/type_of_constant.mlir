// error: X0701 3:8 not valid for integer type
func.func @f() {
  %0 = arith.constant 1.5 : index
  return
}

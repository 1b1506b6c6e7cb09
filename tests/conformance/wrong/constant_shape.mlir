// error: X0701 3:8 Shape mismatch
func.func @f() {
  %0 = arith.constant dense<[1.0, 2.0, 3.0]> : vector<4xf32>
  return
}

// error: X0701 4:6
func.func @f(%a: memref<4xf32>) {
  return
  %c = arith.constant 0 : index
  return
}

// error: X0701
func.func @f() attributes {a = [[[[[[[[[[[[[[[[[[[[[} {
  return
}

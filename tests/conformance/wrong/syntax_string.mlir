// error: X0701 2:
func.func @f() attributes {a = "x} {
  return
}

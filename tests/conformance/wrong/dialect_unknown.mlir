// error: X0701 3:3 Operation toy.print is not registered
func.func @f() {
  toy.print
  return
}

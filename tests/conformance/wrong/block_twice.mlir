// error: X0701 6:1 re-declaration of block 'a'
func.func @f() {
  return
^a:
  return
^a:
  return
}

// error: X0703 3:3 only chains of blocks
func.func @f() {
  cf.br ^a
^a:
  cf.br ^b
^b:
  cf.br ^a
}

// error: X0701
func.func @f(%c: i1) {
  cf.br ^a
}

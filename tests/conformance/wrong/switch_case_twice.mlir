// error: X0702 3:3 a case is given twice
func.func @f(%i: index) {
  scf.index_switch %i
  case 1 {
  }
  case 1 {
  }
  default {
  }
  return
}

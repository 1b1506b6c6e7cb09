// error: X0702 3:8 expected float elements, found i32
func.func @f(%a: i32) {
  %0 = arith.addf %a, %a : i32
  return
}

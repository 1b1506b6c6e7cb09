// error: X0701 8:
func.func @f(%c: i1, %a: f32) {
  scf.if %c {
    %x = arith.addf %a, %a : f32
  } else {
    %y = arith.addf %a, %a : f32
  }
  %z = arith.addf %x, %a : f32
  return
}

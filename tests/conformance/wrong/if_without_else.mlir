// error: X0702 3:8 needs an else region
func.func @f(%c: i1, %a: f32) {
  %r = scf.if %c -> (f32) {
    scf.yield %a : f32
  }
  return
}

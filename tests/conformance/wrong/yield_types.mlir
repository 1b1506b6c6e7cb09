// error: X0702 4:8 the body yields
func.func @f(%n: index, %a: f32) {
  %z = arith.constant 0 : index
  %r = scf.for %i = %n to %n step %n iter_args(%x = %a) -> (f32) {
    scf.yield %i : index
  }
  return
}

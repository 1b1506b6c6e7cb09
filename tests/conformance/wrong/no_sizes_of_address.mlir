// error: X0702 3:8 a base of unknown shape needs 2 sizes
func.func @f(%a: i64) {
  %t = xetile.init_tile %a[0, 0] : i64 -> !xetile.tile<16x16xf16>
  return
}

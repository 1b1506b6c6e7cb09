// error: X0702 3:8 padding "x" does not fit
func.func @f(%t: !xetile.tile<16x16xf16>) {
  %v = xetile.load_tile %t {padding = "x"} : !xetile.tile<16x16xf16> -> vector<16x16xf16>
  return
}

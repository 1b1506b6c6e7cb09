// error: X0701 3:8 xetile.load_tyle
func.func @f(%t: !xetile.tile<8x16xf32>) {
  %0 = xetile.load_tyle %t : !xetile.tile<8x16xf32> -> vector<8x16xf32>
  return
}

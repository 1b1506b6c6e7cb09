// error: X0701 3:28
func.func @f(%t: !xetile.tile<8x16xf32>) {
  %0 = xetile.load_tile %t !xetile.tile<8x16xf32> -> vector<8x16xf32>
  return
}

// error: X0701 5:1 the text ends too early
func.func @f(%t: !xetile.tile<8x16xf32>) {
  %0 = xetile.load_tile %t : !xetile.tile<8x16xf32> -> vector<8x16xf32>
  return

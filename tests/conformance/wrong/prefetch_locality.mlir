// error: X0702 3:3 locality is 0, 1, 2 or 3, found 4
func.func @f(%t: !xetile.tile<8x16xf32>) {
  xetile.prefetch_tile %t locality<4> : !xetile.tile<8x16xf32>
  return
}

// error: X0702 3:8 a tile moves by two offsets, found 1
func.func @f(%t: !xetile.tile<16x16xf16>) {
  %u = xetile.update_tile_offset %t, [8] : !xetile.tile<16x16xf16>
  return
}

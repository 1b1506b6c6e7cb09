// error: X0702 3:8 array_length 2 gives as many vectors, found 1
func.func @f(%t: !xetile.tile<16x16xf16, #xetile.tile_attr<array_length = 2>>) {
  %v = xetile.load_tile %t : !xetile.tile<16x16xf16, #xetile.tile_attr<array_length = 2>> -> vector<16x16xf16>
  return
}

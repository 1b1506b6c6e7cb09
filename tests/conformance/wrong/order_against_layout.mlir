// error: X0702 3:8 order [0, 1] needs stride 1 in dimension 0
func.func @f(%a: memref<64x32xf16>) {
  %t = xetile.init_tile %a[0, 0] : memref<64x32xf16> -> !xetile.tile<16x16xf16, #xetile.tile_attr<order = [0, 1]>>
  return
}

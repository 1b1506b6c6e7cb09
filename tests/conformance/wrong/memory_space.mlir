// error: X0702 3:8 the base is in memory space 3, the tile in 0
func.func @f(%a: memref<64x32xf16, 3>) {
  %t = xetile.init_tile %a[0, 0] : memref<64x32xf16, 3> -> !xetile.tile<16x16xf16>
  return
}

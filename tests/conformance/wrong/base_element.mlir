// error: X0702 3:8 the base holds f16, the tile f32
func.func @f(%a: memref<64x32xf16>) {
  %t = xetile.init_tile %a[0, 0] : memref<64x32xf16> -> !xetile.tile<16x16xf32>
  return
}

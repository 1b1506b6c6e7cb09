// error: X0702 3:8 expected 3 offsets, found 2
func.func @f(%a: memref<2x64x32xf16>) {
  %t = xetile.init_tile %a[0, 0] : memref<2x64x32xf16> -> !xetile.tile<16x16xf16>
  return
}

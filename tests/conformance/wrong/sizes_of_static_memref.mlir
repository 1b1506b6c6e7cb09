// error: X0702 3:8 states them itself
func.func @f(%a: memref<64x32xf16>, %n: index) {
  %t = xetile.init_tile %a[0, 0], [%n, %n], [%n, 1] : memref<64x32xf16> -> !xetile.tile<16x16xf16>
  return
}

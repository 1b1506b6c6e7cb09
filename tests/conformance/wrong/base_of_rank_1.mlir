// error: X0702 3:8 has rank 2 or more, found rank 1
func.func @f(%a: memref<64xf16>) {
  %t = xetile.init_tile %a[0, 0] : memref<64xf16> -> !xetile.tile<16x16xf16>
  return
}

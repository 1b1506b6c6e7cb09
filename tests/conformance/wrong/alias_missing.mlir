// error: X0701 3:
func.func @f(%a: memref<64x64xf16>) {
  %t = xetile.init_tile %a[0, 0] : memref<64x64xf16> -> !xetile.tile<32x64xf16, #nobody>
  return
}

// error: X0701 3:69 does not divide extent 64
func.func @f(%a: memref<64x64xf16>) {
  %t = xetile.init_tile %a[0, 0] : memref<64x64xf16> -> !xetile.tile<64x64xf16, #xetile.wg_map<sg_layout = [2, 2], sg_data = [24, 32]>>
  return
}

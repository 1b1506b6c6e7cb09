// error: X0701 4:69 neither divides the other
#m = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>
func.func @f(%a: memref<96x64xf16>) {
  %t = xetile.init_tile %a[0, 0] : memref<96x64xf16> -> !xetile.tile<96x64xf16, #m>
  return
}

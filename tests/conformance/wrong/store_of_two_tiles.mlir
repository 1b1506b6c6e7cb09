// error: X0702 5:3
#m = #wg_map<sg_layout = [1, 1], sg_data = [16, 16]>
func.func @f(%A: memref<16x16xf32>) {
  %t = xetile.init_tile %A[0, 0] : memref<16x16xf32> -> !xetile.tile<16x16xf32>
  xetile.store_tile %t, %t : !xetile.tile<16x16xf32> into !xetile.tile<16x16xf32>
  return
}

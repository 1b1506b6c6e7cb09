// error: X0702 3:8
func.func @f(%t: memref<8x8xf32>) {
  %0 = "xetile.init_tile"(%t) : (memref<8x8xf32>) -> !xetile.tile<8x8xf32>
  return
}

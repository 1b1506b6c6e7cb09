// error: X0701 2:42 a layout is a sum of its dimensions times numbers
func.func private @f(%A: memref<8x8xf32, affine_map<(d0, d1) -> (d0 * d1)>>)

// error: X0701 2:42 the layout is of rank 1, the memref of rank 2
func.func private @f(%A: memref<8x8xf32, affine_map<(d0) -> (d0)>>)

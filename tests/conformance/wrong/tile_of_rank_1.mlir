// error: X0701 2:30 a tile of rank 1 must be scattered
func.func @f(%t: !xetile.tile<128xf32>) { return }

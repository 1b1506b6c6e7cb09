// error: X0701 2:30 a tile has rank 2
func.func @f(%t: !xetile.tile<2x4x8xf32>) { return }

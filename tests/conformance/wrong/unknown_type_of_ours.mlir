// error: X0701 2:19 xetile.tiles
func.func @f(%t: !xetile.tiles<8x8xf32>) { return }

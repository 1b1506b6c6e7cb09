// error: X0701 2:30 static shape
func.func @f(%t: !xetile.tile<?x8xf32>) { return }

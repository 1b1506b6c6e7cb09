// error: X0701 2:57 `array_length` must be 1, 2 or 4
func.func @f(%t: !xetile.tile<4x8xf32, #xetile.tile_attr<array_length = 3 : i64>>) { return }

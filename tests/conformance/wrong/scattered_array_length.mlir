// error: X0701 2:57 a scattered tile cannot have an `array_length`
func.func @f(%t: !xetile.tile<4x8xf32, #xetile.tile_attr<scattered = true, array_length = 2>>) { return }

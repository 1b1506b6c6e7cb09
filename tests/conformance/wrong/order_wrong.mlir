// error: X0701 2:57 `order` must be [1, 0] or [0, 1]
func.func @f(%t: !xetile.tile<8x8xf32, #xetile.tile_attr<order = [1, 1]>>) { return }

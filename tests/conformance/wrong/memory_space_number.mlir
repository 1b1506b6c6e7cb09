// error: X0701 2:57 `memory_space` must be 0 (global) or 3 (shared)
func.func @f(%t: !xetile.tile<8x8xf32, #xetile.tile_attr<memory_space = 2>>) { return }

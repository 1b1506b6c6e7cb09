// error: X0701 2:20 must be positive
#m = #xetile.wg_map<sg_layout = [0, 2], sg_data = [32, 32]>
func.func @f() { return }

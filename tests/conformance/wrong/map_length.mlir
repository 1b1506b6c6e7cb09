// error: X0701 2:20 must have two entries
#m = #xetile.wg_map<sg_layout = [2, 2, 1], sg_data = [32, 32]>
func.func @f() { return }

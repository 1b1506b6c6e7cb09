// error: X0701 2:41 given twice
#m = #xetile.wg_map<sg_layout = [2, 2], sg_layout = [2, 2], sg_data = [1, 1]>
func.func @f() { return }

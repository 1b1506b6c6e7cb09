// error: X0701 3:
#a = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>
#a = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>
func.func @f() { return }

// error: X0701 2:20 needs `sg_data`
#m = #xetile.wg_map<sg_layout = [2, 2]>
func.func @f() { return }

// error: X0701 2:7 xetile.wgmap
#m = #xetile.wgmap<sg_layout = [2, 2], sg_data = [32, 32]>
func.func @f() { return }

// error: X0701 2:41 unknown parameter `sg_dat`
#m = #xetile.wg_map<sg_layout = [2, 2], sg_dat = [32, 32]>
func.func @f() { return }

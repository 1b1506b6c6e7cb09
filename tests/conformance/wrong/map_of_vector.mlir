// error: X0702 4:8 neither divides the other
#m = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>
func.func @f(%a: vector<96x64xf32>) {
  %0 = xetile.convert_layout %a {wg_map_result = #m} : vector<96x64xf32>
  return
}

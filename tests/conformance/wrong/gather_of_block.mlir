// error: X0702 3:8 load_gather needs a scattered tile
func.func @f(%t: !xetile.tile<16x16xf16>, %m: vector<16x16xi1>) {
  %v = xetile.load %t, %m : !xetile.tile<16x16xf16>, vector<16x16xi1> -> vector<16x16xf16>
  return
}
